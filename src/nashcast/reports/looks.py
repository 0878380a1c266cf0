"""How a line looks, by its label: the same in every panel of a figure, on paper and on the page."""

from __future__ import annotations

from typing import NamedTuple

from nashcast.records.study import Figure

# Okabe and Ito's colours, told apart by colour-blind eyes; without their yellow, which white paper swallows.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
INK, GREY = "#000000", "#7F7F7F"
DASHES = ("solid", "dash", "dashdot", "dot")
MARKERS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")


class Look(NamedTuple):
    """colour: "#rrggbb", INK standing for the text's colour.   dash: of DASHES.   marker: of MARKERS."""

    colour: str
    dash: str
    marker: str
    thin: bool = False


# What is measured against should look the same everywhere.
FIXED = {
    "target": Look(INK, "solid", "circle", thin=True),
    "persistence": Look(GREY, "dash", "x", thin=True),
}


def looks(figure: Figure) -> dict[str, Look]:
    """A look for each label, in the order they first occur. The first 24 differ in colour or dash."""
    found: dict[str, Look] = {}
    free = 0
    for label in dict.fromkeys(line.label for panel in figure.panels for line in panel.lines):
        if label in FIXED:
            found[label] = FIXED[label]
            continue
        rounds, colour = divmod(free, len(COLOURS))
        dash = DASHES[(colour + rounds) % len(DASHES)]
        found[label] = Look(COLOURS[colour], dash, MARKERS[free % len(MARKERS)])
        free += 1
    return found
