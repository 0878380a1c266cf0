"""A study's figures as PNG and PDF, by matplotlib without its global state."""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nashcast.extras import needed
from nashcast.records.study import Figure, Panel
from nashcast.reports.files import write_whole
from nashcast.reports.line_styles import Look, looks
from nashcast.reports.series import Drawable, Series, drawable, few_ticks, legend_labels

# Inches: one column of a two-column page.
COLUMN_WIDTH, ROW_HEIGHT, LEGEND_ROW = 3.4, 2.25, 0.17
FONT = 8.0
DPI = 220
# More than twice the dots of a column: thinning is not visible.
POINTS = 3000
_DASHES = {"solid": "-", "dash": (0, (5, 1.6)), "dashdot": (0, (6, 1.6, 1.2, 1.6)), "dot": (0, (1.2, 1.3))}
_MARKERS = {
    "circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "triangle-down": "v", "cross": "P", "x": "X",
}  # fmt: skip
_SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": FONT,
    "axes.titlesize": FONT,
    "axes.labelsize": FONT,
    "xtick.labelsize": FONT - 1,
    "ytick.labelsize": FONT - 1,
    "legend.fontsize": FONT - 0.5,
    "figure.titlesize": FONT + 1,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.formatter.useoffset": False,
    "axes.formatter.limits": (-3, 5),
    "path.simplify": True,
    "pdf.fonttype": 42,
}


def draw(
    figure: Figure, arrays: Mapping[str, np.ndarray], folder: Path, stem: str, formats: Sequence[str] = ("png", "pdf")
) -> list[Path]:
    """Write the figure as folder/stem.png and folder/stem.pdf."""
    drawn = rendered(figure, arrays, formats)
    return [write_whole(Path(folder) / f"{stem}.{kind}", content) for kind, content in drawn.items()]


def rendered(
    figure: Figure, arrays: Mapping[str, np.ndarray], formats: Sequence[str], among: Sequence[Figure] = ()
) -> dict[str, bytes]:
    """The figure's files by format, without a creation time: the same bytes each time. among: see `looks`."""
    matplotlib, files = _matplotlib(), {}
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        # A name may have letters that the font lacks; they are drawn as boxes.
        warnings.filterwarnings("ignore", message=".*Glyph")
        paper = figure_on_paper(figure, arrays, among)
        for kind in formats:
            target = io.BytesIO()
            metadata = {"CreationDate": None} if kind == "pdf" else {"Software": None}
            paper.savefig(target, format=kind, dpi=DPI, metadata=metadata)
            files[kind] = target.getvalue()
    return files


def figure_on_paper(figure: Figure, arrays: Mapping[str, np.ndarray], among: Sequence[Figure] = ()):
    """The figure as a matplotlib Figure, before it is saved."""
    matplotlib = _matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Paper
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    panels = [drawable(panel, arrays, POINTS) for panel in figure.panels]
    look, labels = looks(figure, among), legend_labels(panels)
    shared = _share_a_legend(figure)
    with matplotlib.rc_context(_SETTINGS):
        room = ConstrainedLayoutEngine(w_pad=0.04, h_pad=0.04, wspace=0.03, hspace=0.05)
        paper = Paper(layout=room, facecolor="white")
        FigureCanvasAgg(paper)
        axes = paper.subplots(rows, columns, squeeze=False).ravel()
        for ax, panel, lines in zip(axes, figure.panels, panels, strict=False):
            _draw_panel(ax, panel, lines, look)
        for ax in axes[len(panels) :]:
            ax.set_visible(False)
        shown = list(labels) if shared else max((_names(panel) for panel in figure.panels), key=len)
        per_row = _legend_columns([labels[name] for name in shown], columns if shared else 1)
        below = -(-len(shown) // per_row) * LEGEND_ROW if shown else 0
        paper.set_size_inches(COLUMN_WIDTH * columns, ROW_HEIGHT * rows + below * (1 if shared else rows))
        if shared and shown:
            keys = [_key(look[name], _style_of(figure, name)) for name in shown]
            texts = [_text(labels[name]) for name in shown]
            paper.legend(keys, texts, loc="outside lower center", ncols=per_row, frameon=False, handlelength=2.6)
        elif shown:
            for ax, panel, lines in zip(axes, figure.panels, panels, strict=False):
                _legend_below(ax, panel, lines, look)
    return paper


def _matplotlib():
    return needed("matplotlib", "matplotlib", "report", "figures")


def _draw_panel(ax, panel: Panel, lines: Drawable, look: Mapping[str, Look]) -> None:
    if panel.log_x:
        ax.set_xscale("log")
    if panel.log_y:
        ax.set_yscale("log")
    ax.grid(visible=True, which="major", color="#E4E4E4", linewidth=0.5)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if panel.reference is not None:
        ax.axhline(panel.reference, color="#B2182B", linewidth=0.9, zorder=1.5)
    for series in lines.series:
        _draw_line(ax, series, look[series.label])
    if lines.limits is not None:
        ax.set_ylim(*lines.limits)
    if ticks := few_ticks(panel, lines):
        ax.set_xticks(ticks, labels=[f"{value:g}" for value in ticks])
        ax.set_xticks([], minor=True)
    ax.set_title(_text(textwrap.fill(panel.title, 44)), loc="left")
    ax.set_xlabel(_text(panel.x_label))
    ax.set_ylabel(_text(textwrap.fill(panel.y_label, 28)))


def _draw_line(ax, series: Series, look: Look) -> None:
    options = _options(look, series.style)
    count = len(series.y)
    if series.style == "line+points" and count > 30:
        options["markevery"] = count // 15
    options["drawstyle"] = "steps-post" if series.style == "step" else "default"
    # Thin lines are drawn above thick ones, which would hide them.
    ax.plot(series.x, series.y, label=_text(series.label), zorder=3 if look.thin else 2.5, **options)


def _options(look: Look, style: str) -> dict[str, Any]:
    """The style of both the line and its key in the legend."""
    dash = "none" if style == "points" else _DASHES[look.dash]
    marker = _MARKERS[look.marker] if "points" in style else "none"
    width, size = (0.8 if look.thin else 1.2), (2.2 if style == "points" else 3.5)
    faint = 0.65 if style == "points" else 1.0
    return {
        "color": look.colour, "linestyle": dash, "marker": marker, "linewidth": width, "markersize": size,
        "markeredgewidth": 0, "alpha": faint,
    }  # fmt: skip


def _key(look: Look, style: str):
    from matplotlib.lines import Line2D

    options: dict[str, Any] = {**_options(look, style), "alpha": 1.0, "markersize": 4.0}
    return Line2D([], [], **options)


def _legend_below(ax, panel: Panel, lines: Drawable, look: Mapping[str, Look]) -> None:
    labels = legend_labels([lines])
    styles = {line.label: line.style for line in panel.lines}
    keys = [_key(look[name], styles[name]) for name in labels]
    texts = [_text(text) for text in labels.values()]
    per_row = _legend_columns(list(labels.values()), 1)
    ax.legend(
        keys, texts, loc="upper center", bbox_to_anchor=(0.5, -0.26), ncols=per_row, frameon=False, handlelength=2.6
    )


def _legend_columns(labels: list[str], columns: int) -> int:
    """Number of legend columns that fit: a letter is about 0.55 of the font's size wide, a key line five letters."""
    longest = max(map(len, labels), default=1)
    inches = (longest + 7) * 0.55 * FONT / 72
    return max(1, min(len(labels), int(COLUMN_WIDTH * columns / inches)))


def _names(panel: Panel) -> list[str]:
    return list(dict.fromkeys(line.label for line in panel.lines))


def _share_a_legend(figure: Figure) -> bool:
    """Whether one legend serves all panels: not if they share few of many names."""
    everything = {name for panel in figure.panels for name in _names(panel)}
    return len(everything) <= max(8, max(len(_names(panel)) for panel in figure.panels))


def _style_of(figure: Figure, label: str) -> str:
    return next(line.style for panel in figure.panels for line in panel.lines if line.label == label)


def _text(text: str) -> str:
    """Escape dollar signs: names are not formulas."""
    return str(text).replace("$", r"\$")
