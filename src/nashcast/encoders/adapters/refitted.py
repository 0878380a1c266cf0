"""The common part of adapters of forecasting libraries: models of the past targets, fitted again on a schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.encoders.base import BuiltForecaster, Context, ForecastSet, State
from nashcast.encoders.black_box.answers import quantile_forecasts
from nashcast.encoders.black_box.black_box_call import BlackBoxCall
from nashcast.encoders.black_box.refits import Refits
from nashcast.errors import NashcastError

MOST_CONTEXT = 2048


class Schedule(NamedTuple):
    """context: targets a model is fitted to at most.   refit_every: steps between fits.   timeout: seconds."""

    context: int
    refit_every: int
    timeout: float | None

    def check(self) -> None:
        check.integer("context", self.context, min=1, max=MOST_CONTEXT)
        check.integer("refit_every", self.refit_every, min=1)
        if self.timeout is not None:
            check.number("timeout", self.timeout, above=0.0)


# Makes a model of targets (rows, y_dim) for a horizon.
Fit = Callable[[np.ndarray, int], Any]
# A model's forecast, (horizon, y_dim, levels or 1), given the past (rows, y_dim), `age` rows of it after the fit.
Predict = Callable[[Any, np.ndarray, int, int], np.ndarray]


class BuiltRefitted(BuiltForecaster):
    """levels: levels of the model's quantiles; empty if it gives forecasts only."""

    def __init__(self, fit: Fit, predict: Predict, y_dim: int, schedule: Schedule, levels: tuple[float, ...] = ()):
        self._call, self._predict, self.levels = BlackBoxCall(schedule.timeout), predict, levels
        self._refits = Refits(schedule.refit_every, y_dim, lambda targets, horizon: self._call(fit, targets, horizon))
        self._y_dim, self.past_targets = y_dim, schedule.context
        self.forecasts = 3 if len(levels) > 1 else 1

    def start(self) -> State:
        return self._refits.start()

    def advance(self, context: Context) -> State:
        return self._refits.advance(context)

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        return self.forecast_set(context, horizon).forecasts

    def forecast_set(self, context: Context, horizon: int) -> ForecastSet:
        fitted_to, age = context.state
        model = self._refits.model(fitted_to, horizon)
        values = np.asarray(self._call(self._predict, model, context.targets.copy(), age, horizon), dtype=float)
        wanted = (horizon, self._y_dim, max(1, len(self.levels)))
        if values.shape != wanted:
            raise NashcastError(f"it gave an answer of shape {values.shape}, not {wanted}")
        if self.levels:
            return quantile_forecasts(self.levels, values)
        return ForecastSet(values[None, ..., 0])
