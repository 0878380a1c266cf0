"""A study's figures for the page's script: styles, ranges and packed numbers."""

from __future__ import annotations

import base64

import numpy as np

from nashcast.records.study import Figure, Panel, Study
from nashcast.reports.line_styles import INK, looks
from nashcast.reports.series import Drawable, drawable, few_ticks, legend_labels

# Maximum points of one line and characters of all lines: a page stays under 6 MB, most of it plotly.
POINTS, LETTERS = 2000, 1_000_000
_SINGLE = np.finfo(np.float32)


class Pool:
    """Arrays by number, each stored once."""

    def __init__(self):
        self.packed: list[list[str]] = []
        self.letters = 0
        self._numbers: dict[tuple[str, bytes], int] = {}

    def add(self, values: np.ndarray, distinct: bool = False) -> int:
        """distinct: neighbours that differ stay different."""
        small = values.astype(_smallest(values, distinct))
        key = small.dtype.str, small.tobytes()
        if key not in self._numbers:
            self._numbers[key] = len(self.packed)
            text = base64.b64encode(key[1]).decode()
            self.packed.append([small.dtype.str[1:], text])
            self.letters += len(text)
        return self._numbers[key]


def plots(study: Study) -> dict:
    """`figures`, and the `arrays` they refer to by number: [type, base64 of its little-endian bytes]."""
    most = POINTS
    while True:
        pool = Pool()
        figures = [_figure(figure, study, most, pool) for figure in study.figures]
        if pool.letters <= LETTERS or most <= 8:
            return {"figures": figures, "arrays": pool.packed}
        most = max(8, int(most * 0.95 * LETTERS / pool.letters))


def _smallest(values: np.ndarray, distinct: bool) -> str:
    """Integers as integers; other numbers in single precision (seven digits), unless that merges distinct values."""
    finite = values[np.isfinite(values)]
    if finite.size == values.size > 0 and (values == np.round(values)).all():
        low, high = values.min(), values.max()
        if low >= 0 and high < 2**16:
            return "<u2"
        if low >= -(2**31) and high < 2**31:
            return "<i4"
    sizes = np.abs(finite[finite != 0])
    if sizes.size and not (sizes.min() > _SINGLE.tiny and sizes.max() < _SINGLE.max):
        return "<f8"
    # For example, single precision cannot resolve minutes in seconds since 1970.
    lost = distinct and ((np.diff(values.astype(np.float32)) == 0) & (np.diff(values) != 0)).any()
    return "<f8" if lost else "<f4"


def _figure(figure: Figure, study: Study, most: int, pool: Pool) -> dict:
    panels = [drawable(panel, study.arrays, most) for panel in figure.panels]
    texts, look = legend_labels(panels), looks(figure, study.figures)
    styles = {line.label: line.style for panel in reversed(figure.panels) for line in reversed(panel.lines)}
    names = list(look)
    labels = [
        {
            "label": name, "text": texts[name], "colour": "ink" if look[name].colour == INK else look[name].colour,
            "dash": look[name].dash, "marker": look[name].marker, "thin": look[name].thin, "style": styles[name],
        }
        for name in names
    ]  # fmt: skip
    drawn = [_panel(panel, lines, names, pool) for panel, lines in zip(figure.panels, panels, strict=True)]
    columns = min(figure.columns, len(figure.panels))
    return {"name": figure.name, "columns": columns, "labels": labels, "panels": drawn}


def _panel(panel: Panel, lines: Drawable, names: list[str], pool: Pool) -> dict:
    series = []
    for each in lines.series:
        counted = np.array_equal(each.x, np.arange(len(each.x)))
        x = None if counted else pool.add(each.x, distinct=True)
        series.append({"label": names.index(each.label), "style": each.style, "x": x, "y": pool.add(each.y)})
    return {
        "title": panel.title, "x_label": panel.x_label, "y_label": panel.y_label, "log_x": bool(panel.log_x),
        "log_y": bool(panel.log_y), "reference": panel.reference, "limits": lines.limits,
        "ticks": few_ticks(panel, lines), "decades": _decades(lines) if panel.log_y else None, "lines": series,
    }  # fmt: skip


def _decades(lines: Drawable) -> float:
    """Number of powers of ten that a logarithmic panel spans."""
    values = np.concatenate([each.y for each in lines.series] or [np.zeros(0)])
    low, high = lines.limits or (np.nanmin(values, initial=np.inf), np.nanmax(values, initial=0.0))
    return float(np.log10(high / low)) if 0 < low < high < np.inf else 1.0
