"""A backtest as one matplotlib figure of four panels."""

from __future__ import annotations

import datetime as dt
from io import BytesIO
from typing import Any

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.frames.backtest import Backtest
from nashcast.frames.plot_data import plot_data

_BLUE, _GREY, _ORANGE = "#1f5fa8", "#8a8f98", "#d9822b"


def figure(result: Backtest, last: int = 168, target: str | None = None) -> Any:
    """Forecast with bounds, errors by steps ahead, weights over time, trust in members. Returns a Figure."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        remedy = "Install it: pip install 'nashcast[report]'."
        raise InvalidInput("engine", "no package matplotlib", remedy) from None
    data = plot_data(result, last, target)

    class NotebookFigure(Figure):
        """A figure that notebooks show as a picture, even if pyplot was not imported."""

        def _repr_png_(self) -> bytes:
            out = BytesIO()
            self.savefig(out, format="png", dpi=80)
            return out.getvalue()

    made = NotebookFigure(figsize=(11, 7.5), layout="constrained")
    axes = made.subplots(2, 2)
    _forecast(axes[0, 0], data)
    _errors(axes[0, 1], data)
    _weights(axes[1, 0], data)
    _members(axes[1, 1], data)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    return made


def _forecast(axis, data) -> None:
    axis.plot(data.when, data.actual, color=_GREY, lw=1.2, label="actual")
    axis.plot(data.when, data.one_ahead, color=_BLUE, lw=0.8, ls=":", label="forecast one step before")
    axis.plot(data.next_when, data.forecast, color=_BLUE, lw=1.8, label="forecast")
    if data.coverage is not None and np.isfinite(data.low).all():
        label = f"{100 * data.coverage:g} % bounds"
        axis.fill_between(data.next_when, data.low, data.high, color=_BLUE, alpha=0.2, lw=0, label=label)
    axis.set_title(f"{data.target}: the next {len(data.steps)} steps")
    _dates(axis, data.when)
    axis.legend(fontsize=8, loc="lower left", framealpha=0.9)


def _dates(axis, when) -> None:
    """Short date labels, if the table has dates."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    first = when[0]
    if isinstance(first, dt.datetime | np.datetime64):
        zone = getattr(first, "tzinfo", None)
        locator = AutoDateLocator(tz=zone, maxticks=7)
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=zone))


def _errors(axis, data) -> None:
    marker = "o" if len(data.steps) == 1 else None
    axis.plot(data.steps, data.persistence, color=_GREY, marker=marker, label="persistence")
    axis.plot(data.steps, data.best[1], color=_ORANGE, marker=marker, label=f"best member: {data.best[0]}")
    axis.plot(data.steps, data.mae, color=_BLUE, marker=marker, lw=2, label="federation")
    axis.set(title="Mean absolute error", xlabel="steps ahead", ylim=(0, None))
    axis.legend(fontsize=8, frameon=False)


def _weights(axis, data) -> None:
    axis.stackplot(data.weights_when, *data.weights.values(), labels=list(data.weights), alpha=0.85)
    axis.set(title="Weights of the forecasts one step ahead", ylim=(0, 1.02))
    _dates(axis, data.weights_when)
    axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def _members(axis, data) -> None:
    order = np.argsort(data.own)[::-1]
    names = [data.members[i] for i in order]
    axis.barh(names, data.own[order], color=[_GREY if name == "baselines" else _BLUE for name in names], height=0.6)
    federation = float(np.nanmean(data.mae))
    axis.axvline(federation, color=_ORANGE, lw=1.5, label=f"federation: {federation:.4g}")
    for place, i in enumerate(order):
        axis.annotate(f" without it {100 * data.loss_without[i]:+.1f} %", (data.own[i], place), fontsize=7, va="center")
    axis.set(title="Whom to trust: own mean absolute error", xlim=(0, 1.3 * np.nanmax(data.own)))
    axis.legend(fontsize=8, frameon=False, loc="upper right")
