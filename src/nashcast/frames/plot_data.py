"""The data of both kinds of plots of a backtest: the last rows, errors by steps ahead, weights, and the members."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.frames.backtest import Backtest
from nashcast.frames.scores import mean

# How many members are drawn by name; the others are summed.
MOST_NAMED = 6
OTHERS = "others"


class PlotData(NamedTuple):
    """One target of a backtest, in its units."""

    target: str
    when: Any  # times of the rows shown
    actual: np.ndarray  # (rows shown,)
    next_when: Any  # times of the last forecast
    forecast: np.ndarray  # (horizon,)
    low: np.ndarray | None  # at `coverage`, (horizon,)
    high: np.ndarray | None
    one_ahead: np.ndarray  # the forecasts of the rows shown made one step before
    coverage: float | None
    steps: np.ndarray  # 1 … horizon
    mae: np.ndarray  # (horizon,)
    persistence: np.ndarray  # (horizon,)
    best: tuple[str, np.ndarray]  # the member with the lowest own error, and its errors
    weights_when: Any
    weights: dict[str, np.ndarray]  # by member, smoothed over the rows of a day
    members: list[str]
    own: np.ndarray  # own errors, over all steps ahead
    loss_without: np.ndarray


def plot_data(result: Backtest, last: int = 168, target: str | None = None) -> PlotData:
    check.integer("last", last, min=1)
    layout, names = result.layout, result.layout.targets
    j = names.index(target) if target in names else 0
    n = len(result.places)
    shown = slice(max(0, n - last), n)
    _, when = layout.index(result.places[shown])
    _, next_when = layout.index(result.places[-1] + 1 + np.arange(result.horizon))
    before = np.concatenate([np.full(1, np.nan), result.forecasts[:-1, 0, j]])
    low = high = coverage = None
    if result.coverages:
        c = int(np.argmin(np.abs(np.array(result.coverages) - 0.8)))
        low, high, coverage = result.bounds[-1, c, 0, :, j], result.bounds[-1, c, 1, :, j], result.coverages[c]
    sizes = [np.abs(result.errors(result.own[:, i])[..., j]) for i in range(len(result.members))]
    own = np.array([float(mean(size)) for size in sizes])
    # Persistence has a line of its own.
    best = int(np.nanargmin(own[1:])) + 1 if len(own) > 1 else 0
    repeated = np.repeat(result.targets[:, None], result.horizon, axis=1)
    return PlotData(
        names[j], when, result.targets[shown, j], next_when, result.forecasts[-1, :, j], low, high, before[shown],
        coverage, np.arange(1, result.horizon + 1), mean(np.abs(result.errors()[..., j]), axis=0),
        mean(np.abs(result.errors(repeated)[..., j]), axis=0), (result.members[best], mean(sizes[best], axis=0)),
        layout.index(result.places)[1], _weights(result), result.members, own,
        np.array([one.loss_without for one in result.trust]),
    )  # fmt: skip


def _weights(result: Backtest) -> dict[str, np.ndarray]:
    weights = _smoothed(np.nan_to_num(result.weights), max(1, min(24, len(result.places) // 10)))
    order = np.argsort(-weights.mean(axis=0), kind="stable")
    found = {result.members[i]: weights[:, i] for i in order[:MOST_NAMED]}
    if len(order) > MOST_NAMED:
        found[OTHERS] = weights[:, order[MOST_NAMED:]].sum(axis=1)
    return found


def _smoothed(values: np.ndarray, window: int) -> np.ndarray:
    """Means over the last rows."""
    sums = np.cumsum(np.vstack([np.zeros(values.shape[1]), values]), axis=0)
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - window)
    return (sums[ends] - sums[starts]) / (ends - starts)[:, None]
