"""Prepares a panel's arrays for drawing: thinned without losing peaks, clipped where a line diverges."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nashcast.records.study import Line, Panel
from nashcast.reports.formats import DIVERGED, DIVERGES

# A line diverges relative to the size of the panel's data, which may be thousands or millions, up to this size.
_LARGEST_SCALE = 1e9
# On a linear axis a line larger by this factor makes the others invisible.
_BEYOND_LINEAR = 1e4


class Series(NamedTuple):
    """One line, ready to draw: values are finite, or NaN for a gap."""

    label: str
    style: str
    x: np.ndarray
    y: np.ndarray
    diverges: bool


class Drawable(NamedTuple):
    """A panel's lines, and the range of y if the data's own range is not useful."""

    series: list[Series]
    limits: tuple[float, float] | None


def drawable(panel: Panel, arrays: Mapping[str, np.ndarray], most: int) -> Drawable:
    """All lines of a panel, with at most `most` points each."""
    chosen = [_points(line, panel, arrays) for line in panel.lines]
    beyond = (DIVERGED if panel.log_y else _BEYOND_LINEAR) * _scale([y for _, y in chosen])
    diverging = [_diverges(y, beyond, panel.log_y) for _, y in chosen]
    limits = None
    if any(diverging) or any(np.isinf(y).any() for _, y in chosen):
        bounded = [y for (_, y), bad in zip(chosen, diverging, strict=True) if not bad]
        limits = _limits(bounded or [y[np.abs(y) <= beyond / 10] for _, y in chosen], panel)
    result = []
    for line, (x, y), bad in zip(panel.lines, chosen, diverging, strict=True):
        if limits is not None:
            y = _clipped(y, limits, panel.log_y, line.style, bad)
        chosen_points = thin(x, y, most, panel.log_x)
        result.append(Series(line.label, line.style, x[chosen_points], y[chosen_points], bad))
    return Drawable(result, limits)


def legend_labels(panels: list[Drawable]) -> dict[str, str]:
    """The legend's text for each label; it marks lines that diverge."""
    count: dict[str, list[bool]] = {}
    for panel in panels:
        for series in panel.series:
            count.setdefault(series.label, []).append(series.diverges)
    texts = {}
    for label, diverging in count.items():
        note = ""
        if any(diverging):
            where = "" if all(diverging) else f" in {sum(diverging)} of {len(diverging)}"
            note = f" ({DIVERGES}{where})"
        texts[label] = label + note
    return texts


def thin(x: np.ndarray, y: np.ndarray, most: int, log_x: bool = False) -> np.ndarray:
    """Indices of at most `most` points: both ends, and the lowest and the highest of each stretch.

    >>> y = np.zeros(10_000); y[1234], y[7777] = 9, -9
    >>> kept = thin(np.arange(10_000), y, 100)
    >>> len(kept) <= 100, 1234 in kept, 7777 in kept
    (True, True, True)
    """
    n = len(y)
    if n <= max(most, 4):
        return np.arange(n)
    stretches = max((most - 2) // 2, 1)
    edges = np.linspace(0, n, stretches + 1).astype(int)
    if log_x and x[0] > 0 and (np.diff(x) >= 0).all():
        # Equal widths on the axis as it is drawn: a logarithmic one shows its beginning largest.
        inner = np.searchsorted(x, np.geomspace(x[0], x[-1], stretches + 1)[1:-1])
        edges = np.unique([0, *inner, n])
    gaps = np.isnan(y)
    low, high = np.where(gaps, np.inf, y), np.where(gaps, -np.inf, y)
    kept = {0, n - 1}
    for start, stop in pairwise(edges):
        if stop > start:
            kept |= {start + int(low[start:stop].argmin()), start + int(high[start:stop].argmax())}
    return np.array(sorted(kept))


def few_ticks(panel: Panel, lines: Drawable) -> list[float] | None:
    """Ticks of a logarithmic axis with few distinct values of x: those values."""
    if not panel.log_x or not lines.series:
        return None
    values = np.unique(np.concatenate([each.x for each in lines.series]))
    few = 0 < values.size <= 10 and not np.allclose(np.log10(values) % 1, 0)
    return [float(value) for value in values] if few else None


def _points(line: Line, panel: Panel, arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    y = np.array(arrays[line.y], dtype=float)
    x = np.arange(len(y), dtype=float) if line.x is None else np.array(arrays[line.x], dtype=float)
    if panel.log_y:
        y[y <= 0] = np.nan
    seen = np.isfinite(x) & ((x > 0) if panel.log_x else True)
    return x[seen], y[seen]


def _scale(lines: list[np.ndarray]) -> float:
    """The size of the panel's smallest line, which diverges only if all lines do."""
    sizes = [np.quantile(np.abs(y[np.isfinite(y)]), 0.9) for y in lines if np.isfinite(y).any()]
    return float(np.clip(min(sizes, default=1.0), 1.0, _LARGEST_SCALE))


def _diverges(y: np.ndarray, beyond: float, log: bool) -> bool:
    """On a logarithmic axis single huge values may be data (ratios to an error near 0), so the last values decide."""
    known = np.abs(y[~np.isnan(y)])
    if not known.size:
        return False
    if not log:
        return bool((known >= beyond).any())
    return bool(np.median(known[-max(len(known) // 10, 1) :]) >= beyond)


def _limits(lines: list[np.ndarray], panel: Panel) -> tuple[float, float]:
    values = np.concatenate(lines) if lines else np.zeros(0)
    values = values[np.isfinite(values)]
    if panel.reference is not None and (panel.reference > 0 or not panel.log_y):
        values = np.append(values, panel.reference)
    if not values.size:
        values = np.array([0.1, 10.0] if panel.log_y else [-1.0, 1.0])
    low, high = float(values.min()), float(values.max())
    if panel.log_y:
        room = max(10 ** (0.05 * (np.log10(high) - np.log10(low))), 1.5)
        return low / room, high * room
    room = 0.08 * (high - low) or max(abs(high), 1.0) * 0.1
    return low - room, high + room


def _clipped(y: np.ndarray, limits: tuple[float, float], log: bool, style: str, diverges: bool) -> np.ndarray:
    """Clip a line outside the panel, and end it there if it diverges; points stay at the edge."""
    low, high = limits
    if style != "points":
        low, high = (low / 100, high * 100) if log else (2 * low - high, 2 * high - low)
    clipped = np.clip(y, low, high)
    outside = np.flatnonzero((y < low) | (y > high))
    if diverges and style != "points" and outside.size:
        # It would oscillate through the panel and cover the other lines.
        clipped[outside[0] + 1 :] = np.nan
    return clipped
