"""Analogs: what followed the windows of the past that are most like the present one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast.encoders.base import BuiltForecaster, Context
from nashcast.encoders.rows import inverse
from nashcast.validation import integer

LAGS = 4
NEAREST, LOCAL = 5, 24
MOST_INPUTS = 6
# Ridge of the local line, relative to the mean squared distance of the neighbours.
_RIDGE = 0.1
_FEWEST = 6


@dataclass(frozen=True)
class Analogs:
    """Six forecasts: for windows of four values, of four changes, and of two values with up to six inputs, the mean
    change that followed the five nearest windows, and a ridge-local line through the 24 nearest.

    memory: how many past windows are searched.
    """

    memory: int = 2048

    def __post_init__(self):
        integer("memory", self.memory, min=_FEWEST)

    def build(self, x_dim: int, y_dim: int) -> BuiltForecaster:
        return _Built(self.memory, x_dim, y_dim)


class _Built(BuiltForecaster):
    forecasts = 6
    calibrated = True
    fills_missing = True

    def __init__(self, memory: int, x_dim: int, y_dim: int):
        self.past_targets, self.past_inputs = memory + LAGS + 1, memory
        self._used, self._y_dim = min(x_dim, MOST_INPUTS), y_dim

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        y, now = context.targets, context.targets[-1]
        result = np.full((self.forecasts, horizon, self._y_dim), now)
        # Row i of a window ends at target LAGS + i; the last one is the present.
        past = min(len(y) - LAGS - 1, len(context.inputs))
        if past < _FEWEST:
            return result
        y = y[len(y) - past - LAGS - 1 :]
        spread, change = inverse(context.scales.spread), inverse(context.scales.change)
        beside = self._beside(context, past)
        for k in range(self._y_dim):
            windows = np.lib.stride_tricks.sliding_window_view(y[:, k], LAGS + 1)
            values = windows[:, 1:] * spread[k]
            changes = (windows[:, 1:] - windows[:, :-1]) * change[k]
            followed = _followed(y[LAGS:, k], horizon)
            for place, window in enumerate((values, changes, np.concatenate([values[:, -2:], beside], axis=1))):
                result[2 * place : 2 * place + 2, :, k] += _analog_changes(window[:-1] - window[-1], followed)
        return result

    def _beside(self, context: Context, past: int) -> np.ndarray:
        """The inputs beside each window, in spreads, the present ones last."""
        used = slice(0, self._used)
        inputs = np.concatenate([context.inputs[len(context.inputs) - past :, used], context.x[None, used]])
        return inputs * inverse(context.input_scales.spread[used])


def _followed(column: np.ndarray, horizon: int) -> np.ndarray:
    """The changes that followed each window within `horizon` steps, (windows, horizon); NaN where not known yet."""
    past = len(column) - 1
    padded = np.concatenate([column, np.full(horizon - 1, np.nan)])
    return np.lib.stride_tricks.sliding_window_view(padded[1:], horizon)[:past] - column[:past, None]


def _analog_changes(differences: np.ndarray, followed: np.ndarray) -> np.ndarray:
    """Mean of the nearest and local line, (2, horizon). differences: of past windows from the present one."""
    distance = np.einsum("ij,ij->i", differences, differences)
    count = min(LOCAL, len(distance))
    near = np.argpartition(distance, count - 1)[:count]
    near = near[np.argsort(distance[near], kind="stable")]
    after = followed[near]
    if np.isnan(after[:, -1]).any():
        after = np.where(np.isnan(after), _known_mean(after), after)
    nearest = after[:NEAREST].mean(axis=0)
    design = np.empty((count, 1 + differences.shape[1]))
    design[:, 0], design[:, 1:] = 1.0, differences[near]
    gram = design.T @ design
    ridge = _RIDGE * distance[near].mean() + 1e-12
    gram[np.arange(1, len(gram)), np.arange(1, len(gram))] += ridge
    return np.stack([nearest, np.linalg.solve(gram, design.T @ after)[0]])


def _known_mean(after: np.ndarray) -> np.ndarray:
    """Mean over the neighbours whose change is known, for each horizon; 0 where none is."""
    known = ~np.isnan(after)
    return np.where(known, after, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
