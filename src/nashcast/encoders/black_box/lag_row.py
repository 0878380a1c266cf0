"""The row that a regression model sees of a step: the input, and the last targets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nashcast.encoders.base import Context


class LagRow:
    """x_dim inputs, then the last `lags` targets, the newest first, each with its y_dim numbers.

    >>> LagRow(x_dim=2, y_dim=1, lags=3).names(["sun", "wind"])
    ['sun', 'wind', 'lag_1', 'lag_2', 'lag_3']
    """

    def __init__(self, x_dim: int, y_dim: int, lags: int):
        self._x_dim, self._y_dim, self.lags = x_dim, y_dim, lags
        self.size = x_dim + lags * y_dim

    def of(self, context: Context) -> np.ndarray:
        """The row of a step. At the start of a stream, the oldest target is repeated for those before it."""
        if not self.lags:
            return context.x
        past = context.targets[-self.lags :][::-1]
        missing = np.repeat(past[-1:], self.lags - len(past), axis=0)
        return np.concatenate([context.x, past.ravel(), missing.ravel()])

    def forecasts(self, predict: Callable[[np.ndarray], np.ndarray], row: np.ndarray, horizon: int) -> np.ndarray:
        """(horizon, y_dim) of a model that forecasts the next target from a row.

        With lags it is called again for each further step, with its own forecasts as lags and the present input.
        Without lags, further steps are NaN.
        """
        forecasts = np.full((horizon, self._y_dim), np.nan)
        forecasts[0] = predict(row)
        if self.lags:
            row = row.copy()
            for h in range(1, horizon):
                row[self._x_dim + self._y_dim :] = row[self._x_dim : -self._y_dim].copy()
                row[self._x_dim : self._x_dim + self._y_dim] = forecasts[h - 1]
                forecasts[h] = predict(row)
        return forecasts

    def names(self, inputs: list[str] | None) -> list[str]:
        names = [str(i) for i in range(self._x_dim)] if inputs is None else list(inputs)
        for lag in range(1, self.lags + 1):
            names += [f"lag_{lag}"] if self._y_dim == 1 else [f"lag_{lag}_{k}" for k in range(self._y_dim)]
        return names
