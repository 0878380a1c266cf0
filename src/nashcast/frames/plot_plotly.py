"""A backtest as one plotly figure of four panels."""

from __future__ import annotations

from typing import Any

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.frames.backtest import Backtest
from nashcast.frames.plot_data import plot_data

_BLUE, _GREY, _ORANGE = "#1f5fa8", "#8a8f98", "#d9822b"


def figure(result: Backtest, last: int = 168, target: str | None = None) -> Any:
    """The panels of `plot_matplotlib`, interactive."""
    try:
        from plotly import graph_objects as go
        from plotly.subplots import make_subplots
    except ModuleNotFoundError:
        remedy = "Install it: pip install 'nashcast[report]'."
        raise InvalidInput("engine", "no package plotly", remedy) from None
    data = plot_data(result, last, target)
    titles = (
        f"{data.target}: the next {len(data.steps)} steps", "Mean absolute error by steps ahead",
        "Weights of the forecasts one step ahead", "Whom to trust: own mean absolute error; line: the federation's",
    )  # fmt: skip
    made = make_subplots(rows=2, cols=2, subplot_titles=titles, horizontal_spacing=0.14, vertical_spacing=0.14)

    def line(x: Any, y: np.ndarray, name: str, place: tuple[int, int], **style: Any) -> None:
        made.add_trace(go.Scatter(x=list(x), y=y, name=name, mode="lines", **style), *place)

    if data.coverage is not None and np.isfinite(data.low).all():  # pyright: ignore[reportArgumentType, reportCallIssue]
        label = f"{100 * data.coverage:g} % bounds"
        edge = {"line": {"width": 0}, "showlegend": False}
        line(data.next_when, np.asarray(data.high), label, (1, 1), **edge)
        filled = {"fill": "tonexty", "fillcolor": "rgba(31,95,168,0.2)", "line": {"width": 0}}
        line(data.next_when, np.asarray(data.low), label, (1, 1), **filled)
    line(data.when, data.actual, "actual", (1, 1), line={"color": _GREY})
    line(
        data.when, data.one_ahead, "forecast one step before", (1, 1), line={"color": _BLUE, "width": 1, "dash": "dot"}
    )
    line(data.next_when, data.forecast, "forecast", (1, 1), line={"color": _BLUE, "width": 2})
    line(data.steps, data.persistence, "persistence", (1, 2), line={"color": _GREY})
    line(data.steps, data.best[1], f"best member: {data.best[0]}", (1, 2), line={"color": _ORANGE})
    line(data.steps, data.mae, "federation", (1, 2), line={"color": _BLUE, "width": 3})
    for name, weights in data.weights.items():
        line(data.weights_when, weights, f"weight of {name}", (2, 1), stackgroup="weights", line={"width": 0.5})
    order = np.argsort(data.own)[::-1]
    bars = go.Bar(
        x=data.own[order], y=[data.members[i] for i in order], orientation="h", marker_color=_BLUE, showlegend=False,
        text=[f"without it {100 * data.loss_without[i]:+.1f} %" for i in order], textposition="outside",
    )  # fmt: skip
    made.add_trace(bars, 2, 2)
    here: Any = {"row": 2, "col": 2}
    made.add_vline(x=float(np.nanmean(data.mae)), line_color=_ORANGE, **here)
    made.update_yaxes(rangemode="tozero", row=1, col=2)
    made.update_xaxes(range=[0, 1.4 * float(np.nanmax(data.own))], row=2, col=2)
    made.update_layout(height=760, width=1200, template="plotly_white", legend={"font": {"size": 10}})
    return made
