"""Analogs: forecasts from the past windows nearest to the present one."""

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
# Kinds of windows: values, changes, and values with inputs; and their number.
_VALUES, _, _BOTH, _KINDS = range(4)


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
    accepts_missing = True  # a missing input keeps its last value

    def __init__(self, memory: int, x_dim: int, y_dim: int):
        self.past_targets, self.past_inputs = memory + LAGS + 1, memory
        self._used, self._y_dim = min(x_dim, MOST_INPUTS), y_dim
        self._numbers = max(LAGS, 2 + self._used)  # in a window of the largest kind
        searches = np.arange(_KINDS * y_dim)
        self._search, self._target = searches[:, None], (searches % y_dim)[:, None, None]
        # The index of a window among all of a search.
        self._number = np.arange(_KINDS * y_dim * self._numbers).reshape(-1, self._numbers, 1)
        self._intercept = np.eye(1 + self._numbers, 1)
        self._scratch = self._new_scratch(64)

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        y = context.targets
        # Window i ends at target LAGS + i; the last one is the present.
        past = min(len(y) - LAGS - 1, len(context.inputs))
        if past < _FEWEST:
            return np.broadcast_to(y[-1], (self.forecasts, horizon, self._y_dim)).copy()
        y = y[len(y) - past - LAGS - 1 :].T
        # One search for each kind of window and target, kinds first.
        searches = self._differences(context, y, past)
        near = self._nearest(searches[:, :, :past])
        changes = self._analog_changes(searches, near, self._followed(y[:, LAGS:], near, horizon))
        by_kind = changes.reshape(_KINDS, self._y_dim, 2, horizon).transpose(0, 2, 3, 1)
        return y[:, -1] + by_kind.reshape(self.forecasts, horizon, self._y_dim)

    def _new_scratch(self, windows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Memory for `_differences`: the result, series of values and changes, and a view of these as windows.

        Allocating it at every step would take longer than filling it.
        """
        found = np.zeros((_KINDS, self._y_dim, self._numbers, windows))
        series = np.empty((2, self._y_dim, windows + LAGS))
        # Number `lag` of window i is at lag + i.
        view = np.lib.stride_tricks.sliding_window_view(series, windows + 1, axis=2)[:, :, :LAGS]
        return found, series, view

    def _differences(self, context: Context, y: np.ndarray, past: int) -> np.ndarray:
        """Past windows minus the present one, (kinds · y_dim, numbers of a window, windows and more).

        y: the targets that windows are made of, (y_dim, LAGS + windows + 1). Kinds with fewer numbers have 0 there.
        """
        if past > self._scratch[0].shape[3]:
            self._scratch = self._new_scratch(2 * past)
        found, series, windows = self._scratch
        values, changes = series[:, :, : past + LAGS]
        now = y[:, 1:]
        np.multiply(now, context.scales.inverse_spread[:, None], out=values)
        np.subtract(now, y[:, :-1], out=changes)
        changes *= context.scales.inverse_change[:, None]
        np.subtract(windows[..., :past], series[:, :, past : past + LAGS, None], out=found[:_BOTH, :, :LAGS, :past])
        both = found[_BOTH]
        both[:, :2, :past] = found[_VALUES, :, LAGS - 2 : LAGS, :past]
        if self._used:
            scale = context.input_scales.inverse_spread[: self._used, None]
            inputs = context.inputs[len(context.inputs) - past :, : self._used].T
            present = context.x[: self._used]
            missing = np.isnan(present)
            if np.count_nonzero(missing):
                present = np.where(missing, inputs[:, -1], present)
            beside = both[:, 2 : 2 + self._used, :past]
            np.multiply(inputs, scale, out=beside)
            beside -= present[:, None] * scale
        return found.reshape(_KINDS * self._y_dim, self._numbers, -1)

    def _nearest(self, differences: np.ndarray) -> np.ndarray:
        """The LOCAL nearest windows, nearest first, (searches, neighbours)."""
        distances = np.einsum("swi,swi->si", differences, differences)
        search, count = self._search, min(LOCAL, distances.shape[1])
        near = distances.argpartition(count - 1, axis=1)[:, :count]
        return near[search, distances[search, near].argsort(axis=1, kind="stable")]

    def _followed(self, y: np.ndarray, near: np.ndarray, horizon: int) -> np.ndarray:
        """The changes that followed windows within `horizon` steps, (searches, horizon, neighbours).

        y: where each window ends, (y_dim, windows + 1). Changes that are not known yet are the mean of the known ones,
        0 if there is none.
        """
        last, target, near = y.shape[1] - 1, self._target, near[:, None]
        if horizon == 1:  # the next target of a past window is always known
            return y[target, near + 1] - y[target, near]
        after = near + np.arange(1, horizon + 1)[:, None]
        changes = y[target, np.minimum(after, last)] - y[target, near]
        known = after <= last
        if np.count_nonzero(known) < known.size:
            means = np.where(known, changes, 0.0).sum(axis=2) / np.maximum(known.sum(axis=2), 1)
            changes = np.where(known, changes, means[:, :, None])
        return changes

    def _analog_changes(self, differences: np.ndarray, near: np.ndarray, followed: np.ndarray) -> np.ndarray:
        """Mean of the nearest, and intercept of the local line, (searches, 2, horizon)."""
        (searches, numbers, length), (count, horizon) = differences.shape, (near.shape[1], followed.shape[1])
        # One, the differences and the changes that followed, (searches, 1 + numbers + horizon, neighbours).
        table = np.empty((searches, 1 + numbers + horizon, count))
        table[:, 0] = 1.0
        table[:, 1 : 1 + numbers] = differences.reshape(-1).take(length * self._number + near[:, None])
        table[:, 1 + numbers :] = followed
        products = np.matmul(table[:, : 1 + numbers], table.swapaxes(1, 2))
        # All entries of the diagonals except the first, the intercept's; their sum is the sum of squared distances.
        diagonals = products.reshape(searches, -1)[:, 2 + numbers + horizon :: 2 + numbers + horizon]
        diagonals += (_RIDGE / count) * np.add.reduce(diagonals, axis=1, keepdims=True) + 1e-12
        changes = np.empty((searches, 2, horizon))
        changes[:, 0] = np.add.reduce(followed[:, :, :NEAREST], axis=2) / NEAREST
        # The intercept for each horizon: the first row of gram⁻¹ products, and the Gram matrix is symmetric.
        first_row = np.linalg.solve(products[:, :, : 1 + numbers], self._intercept)
        changes[:, 1] = np.matmul(first_row.swapaxes(1, 2), products[:, :, 1 + numbers :])[:, 0]
        return changes
