"""The style of a line, by its label: the same in every panel, in figures and on the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nashcast.records.study import Figure

# Okabe and Ito's colours, safe for colour-blind readers, without their yellow, which is invisible on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK, GREY = "#000000", "#7F7F7F"
DASHES = ("solid", "dash", "dashdot", "dot")
MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")


class Look(NamedTuple):
    """colour: "#rrggbb", or INK for the text's colour.   dash: one of DASHES.   marker: one of MARKERS."""

    colour: str
    dash: str
    marker: str
    thin: bool = False


# Reference lines have the same style everywhere.
FIXED = {
    "target": Look(INK, "solid", "circle", thin=True),
    "persistence": Look(GREY, "dash", "x", thin=True),
}


def looks(figure: Figure, among: Sequence[Figure] = ()) -> dict[str, Look]:
    """A style for each label, in the order of first occurrence. The first 24 differ in colour or dash.

    among: the figures of the same report; if there are enough colours for all of them, a label has the same in each.
    """
    labels, everywhere = _labels([figure]), _labels([*among, figure])
    free = [label for label in everywhere if label not in FIXED]
    if len(free) > len(COLOURS):
        free = [label for label in labels if label not in FIXED]
    return {label: FIXED[label] if label in FIXED else _look(free.index(label)) for label in labels}


def _labels(figures: Sequence[Figure]) -> list[str]:
    return list(dict.fromkeys(line.label for each in figures for panel in each.panels for line in panel.lines))


def _look(number: int) -> Look:
    rounds, colour = divmod(number, len(COLOURS))
    return Look(COLOURS[colour], DASHES[(colour + rounds) % len(DASHES)], MARKERS[number % len(MARKERS)])
