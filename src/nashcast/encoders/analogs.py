"""Analogs: what followed the windows of the past that are most like the present one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast.encoders.base import BuiltForecaster, Context
from nashcast.validation import integer

LAGS = 4
NEAREST, LOCAL = 5, 24
MOST_INPUTS = 6
# Ridge of the local line, relative to the mean squared distance of the neighbours.
_RIDGE = 0.1
_FEWEST = 6
# Kinds of windows: values, changes, and values with inputs.
_KINDS = 3


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
        y = context.targets
        # Window i ends at target LAGS + i; the last one is the present.
        past = min(len(y) - LAGS - 1, len(context.inputs))
        if past < _FEWEST:
            return np.broadcast_to(y[-1], (self.forecasts, horizon, self._y_dim)).copy()
        y = y[len(y) - past - LAGS - 1 :].T
        differences = self._differences(context, y, past)
        # One search for each kind of window and target, kinds first.
        searches = differences.reshape(_KINDS * self._y_dim, -1, past)
        near, distances = _nearest(searches)
        followed = _followed(y[:, LAGS:], near, horizon)
        changes = _analog_changes(searches, near, distances, followed)  # (searches, 2, horizon)
        by_kind = changes.reshape(_KINDS, self._y_dim, 2, horizon).transpose(0, 2, 3, 1)
        return y[:, -1] + by_kind.reshape(self.forecasts, horizon, self._y_dim)

    def _differences(self, context: Context, y: np.ndarray, past: int) -> np.ndarray:
        """Past windows less the present one, (kinds, y_dim, numbers of a window, windows); 0 where a kind has fewer.

        y: the targets that windows are made of, (y_dim, LAGS + windows + 1).
        """
        beside = slice(2, 2 + self._used)
        found = np.zeros((_KINDS, self._y_dim, max(LAGS, beside.stop), past))
        values, changes, both = found
        value = y[:, 1:] * context.scales.inverse_spread[:, None]
        change = (y[:, 1:] - y[:, :-1]) * context.scales.inverse_change[:, None]
        for lag in range(LAGS):
            # Number `lag` of window i stands at i + lag.
            now = slice(lag + past, lag + past + 1)
            np.subtract(value[:, lag : lag + past], value[:, now], out=values[:, lag])
            np.subtract(change[:, lag : lag + past], change[:, now], out=changes[:, lag])
        both[:, :2] = values[:, LAGS - 2 : LAGS]
        if self._used:
            scale = context.input_scales.inverse_spread[: self._used]
            inputs = context.inputs[len(context.inputs) - past :, : self._used]
            both[:, beside] = (inputs * scale - context.x[: self._used] * scale).T
        return found


def _nearest(differences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The LOCAL nearest windows and their squared distances, nearest first; both (searches, neighbours)."""
    distances = np.einsum("swi,swi->si", differences, differences)
    search, count = np.arange(len(distances))[:, None], min(LOCAL, distances.shape[1])
    near = distances.argpartition(count - 1, axis=1)[:, :count]
    found = distances[search, near]
    order = found.argsort(axis=1, kind="stable")
    return near[search, order], found[search, order]


def _followed(y: np.ndarray, near: np.ndarray, horizon: int) -> np.ndarray:
    """The changes that followed windows within `horizon` steps, (searches, neighbours, horizon).

    y: where each window ends, (y_dim, windows + 1). Changes that are not known yet are the mean of the known ones, 0 if
    there is none.
    """
    last, target = y.shape[1] - 1, (np.arange(len(near)) % len(y))[:, None]
    ends = y[target, near][:, :, None]
    if horizon == 1:  # the next target of a past window is always known
        return y[target, near + 1][:, :, None] - ends
    after = near[:, :, None] + np.arange(1, horizon + 1)
    changes = y[target[:, None], np.minimum(after, last)] - ends
    known = after <= last
    if not known.all():
        means = np.where(known, changes, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        changes = np.where(known, changes, means[:, None])
    return changes


def _analog_changes(differences, near: np.ndarray, distances: np.ndarray, followed: np.ndarray) -> np.ndarray:
    """Mean of the nearest, and intercept of the local line, (searches, 2, horizon)."""
    (searches, numbers, _), count = differences.shape, near.shape[1]
    design = np.empty((searches, 1 + numbers, count))
    design[:, 0] = 1.0
    design[:, 1:] = differences[np.arange(searches)[:, None, None], np.arange(numbers)[:, None], near[:, None]]
    gram = np.matmul(design, design.swapaxes(1, 2))
    ridge = _RIDGE * (distances.sum(axis=1) / count) + 1e-12
    # Every entry of the diagonals but the first, which belongs to the intercept.
    gram.reshape(searches, -1)[:, 2 + numbers :: 2 + numbers] += ridge[:, None]
    changes = np.empty((searches, 2, followed.shape[2]))
    nearest = followed[:, :NEAREST]
    changes[:, 0] = nearest.sum(axis=1) / nearest.shape[1]
    changes[:, 1] = np.linalg.solve(gram, np.matmul(design, followed))[:, 0]
    return changes
