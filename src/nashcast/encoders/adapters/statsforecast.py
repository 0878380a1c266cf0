"""Models of statsforecast as encoders: fitted on a schedule to the last targets, and updated in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.encoders.adapters.refitted import BuiltRefitted, Schedule
from nashcast.encoders.black_box.answers import checked_levels
from nashcast.errors import InvalidInput
from nashcast.extras import needed


@dataclass(frozen=True, eq=False)
class StatsForecast:
    """A model of `statsforecast.models`, by name or as an object: AutoETS, AutoTheta, AutoARIMA, SeasonalNaive, …

    model: a name, for example "AutoETS", or a model, for example AutoARIMA(season_length=24).
    season: its length in steps, if the model is given by name.   context: targets it is fitted to at most.
    refit_every: steps between fits. In between, the model's parameters stay and it sees the new targets (`forward`);
        a model without `forward` repeats its forecasts of these steps from its last fit.
    quantiles: levels asked for, in pairs round the median; () for a model without intervals.
    timeout: seconds for a fit or a forecast. Several targets have a model each; inputs are not used.
    """

    model: Any
    season: int = 1
    refit_every: int = 24
    context: int = 500
    quantiles: Sequence[float] = (0.1, 0.5, 0.9)
    timeout: float | None = None

    def __post_init__(self):
        models = needed("statsforecast.models", "statsforecast", "statsforecast", "encoder")
        check.integer("season", self.season, min=1)
        self._schedule.check()
        levels = checked_levels("quantiles", self.quantiles)
        if any(abs(1.0 - level - levels[-1 - i]) > 1e-9 for i, level in enumerate(levels)):
            raise InvalidInput("quantiles", f"{levels}", "Pass pairs round the median, for example (0.1, 0.5, 0.9).")
        object.__setattr__(self, "quantiles", levels)
        if isinstance(self.model, str):
            made = getattr(models, self.model, None)
            if not isinstance(made, type) or not hasattr(made, "forecast"):
                remedy = "Pass a class of statsforecast.models, for example AutoETS, AutoTheta or AutoARIMA."
                raise InvalidInput("model", repr(self.model), remedy)
            object.__setattr__(self, "model", _made(made, self.season))
        elif isinstance(self.model, type) or not all(hasattr(self.model, name) for name in ("fit", "predict", "new")):
            remedy = "Pass a model of statsforecast.models, or its name."
            raise InvalidInput("model", check.describe(self.model), remedy)

    @property
    def _schedule(self) -> Schedule:
        return Schedule(self.context, self.refit_every, self.timeout)

    def build(self, x_dim: int, y_dim: int) -> BuiltRefitted:
        return BuiltRefitted(self._fit, self._predict, y_dim, self._schedule, tuple(self.quantiles))

    def _fit(self, targets: np.ndarray, horizon: int) -> list[Any]:
        return [self.model.new().fit(y=np.ascontiguousarray(column)) for column in targets.T]

    def _predict(self, models: list[Any], past: np.ndarray, age: int, horizon: int) -> np.ndarray:
        columns = [self._of_one(model, column, age, horizon) for model, column in zip(models, past.T, strict=True)]
        return np.stack(columns, axis=1)

    def _of_one(self, model: Any, past: np.ndarray, age: int, horizon: int) -> np.ndarray:
        """(horizon, levels or 1)"""
        lower = [level for level in self.quantiles if level < 0.5 - 1e-9]
        percent = [round(100.0 * (1.0 - 2.0 * level), 6) for level in lower]
        percent = [int(one) if one == int(one) else one for one in percent]
        asked: dict[str, Any] = {"level": sorted(percent)} if percent else {}
        if age and hasattr(model, "forward"):
            found, skip = model.forward(y=np.ascontiguousarray(past), h=horizon, **asked), 0
        else:
            found, skip = model.predict(h=horizon + age, **asked), age
        mean = np.asarray(found["mean"], dtype=float)
        if not self.quantiles:
            return mean[skip:, None]
        middle = [mean] if 0.5 in self.quantiles else []
        low = [_finite(found[f"lo-{one}"], mean) for one in percent]
        high = [_finite(found[f"hi-{one}"], mean) for one in reversed(percent)]
        return np.stack([*low, *middle, *high], axis=1)[skip:]


def _finite(bound: Any, mean: np.ndarray) -> np.ndarray:
    """A bound; the forecast itself where there is none, as after a series without any error."""
    bound = np.asarray(bound, dtype=float)
    return np.where(np.isfinite(bound), bound, mean)


def _made(model: type, season: int) -> Any:
    try:
        return model(season_length=season)
    except TypeError:
        pass
    try:
        return model()
    except TypeError as error:
        remedy = f"Make it yourself, for example {model.__name__}(…), and pass that."
        raise InvalidInput("model", repr(model.__name__), remedy) from error
