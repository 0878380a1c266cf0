"""Forecasters of sktime as encoders: fitted on a schedule to the last targets, and updated in between."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from nashcast.encoders.adapters.refitted import BuiltRefitted, Schedule
from nashcast.encoders.black_box.answers import checked_levels
from nashcast.encoders.black_box.black_box_call import BlackBoxCall
from nashcast.errors import InvalidInput
from nashcast.extras import needed


@dataclass(frozen=True, eq=False)
class Sktime:
    """A forecaster of sktime, of one target or of several.

    forecaster: cloned, never fitted itself.   context: targets it is fitted to at most.
    refit_every: steps between fits. In between it gets the new targets by `update(update_params=False)`.
    quantiles: levels asked for by `predict_quantiles`; () for forecasts only.
    timeout: seconds for a fit or a forecast. Inputs are not used: those of the steps ahead are not known.
    """

    forecaster: Any
    refit_every: int = 24
    context: int = 500
    quantiles: Sequence[float] = ()
    timeout: float | None = None

    def __post_init__(self):
        base = needed("sktime.forecasting.base", "sktime", "sktime", "encoder")
        self._schedule.check()
        object.__setattr__(self, "quantiles", checked_levels("quantiles", self.quantiles))
        if not isinstance(self.forecaster, base.BaseForecaster):
            got = f"an object of type {type(self.forecaster).__name__}"
            raise InvalidInput("forecaster", got, "Pass a forecaster of sktime, for example NaiveForecaster(sp=24).")
        if self.quantiles and not self.forecaster.get_tags().get("capability:pred_int", False):
            got = f"{self.quantiles} for a {type(self.forecaster).__name__}, which gives none"
            raise InvalidInput("quantiles", got, "Leave it out.")
        object.__setattr__(self, "forecaster", BlackBoxCall()(self.forecaster.clone))

    @property
    def _schedule(self) -> Schedule:
        return Schedule(self.context, self.refit_every, self.timeout)

    def build(self, x_dim: int, y_dim: int) -> BuiltRefitted:
        return BuiltRefitted(self._fit, self._predict, y_dim, self._schedule, tuple(self.quantiles))

    def _parts(self, targets: np.ndarray) -> list[np.ndarray]:
        """Targets as a forecaster takes them: all together, or one by one if it is univariate.

        Sktime would fit copies to several targets too, but `deepcopy` of such a forecaster shares them.
        """
        tags = self.forecaster.get_tags()  # the tag's name depends on the version
        together = tags.get("scitype:y") in ("multivariate", "both") or tags.get("capability:multivariate") is True
        return [targets] if together else [targets[:, k : k + 1] for k in range(targets.shape[1])]

    def _fit(self, targets: np.ndarray, horizon: int) -> Any:
        steps = list(range(1, horizon + 1))
        return [self.forecaster.clone().fit(_table(part, 0), fh=steps) for part in self._parts(targets)], len(targets)

    def _predict(self, fitted: tuple[list[Any], int], past: np.ndarray, age: int, horizon: int) -> np.ndarray:
        models, rows = fitted
        parts = zip(models, self._parts(past), strict=True)
        return np.concatenate(
            [self._of_part(deepcopy(model), part, rows, age, horizon) for model, part in parts], axis=1
        )

    def _of_part(self, model: Any, past: np.ndarray, rows: int, age: int, horizon: int) -> np.ndarray:
        """(horizon, targets of the part, levels or 1)"""
        if age:
            model.update(_table(past[len(past) - age :], rows), update_params=False)
        steps, y_dim = list(range(1, horizon + 1)), past.shape[1]
        if not self.quantiles:
            return np.asarray(model.predict(fh=steps), dtype=float).reshape(horizon, y_dim, 1)
        quantiles = model.predict_quantiles(fh=steps, alpha=list(self.quantiles))
        return np.asarray(quantiles, dtype=float).reshape(horizon, y_dim, len(self.quantiles))


def _table(targets: np.ndarray, first: int) -> Any:
    """Targets with the index first, first + 1, …: a series for one target, a table for several."""
    pandas = needed("pandas", "pandas", "sktime", "encoder")
    index = pandas.RangeIndex(first, first + len(targets))
    if targets.shape[1] == 1:
        return pandas.Series(targets[:, 0], index=index)
    return pandas.DataFrame(targets, index=index, columns=[str(k) for k in range(targets.shape[1])])
