"""River models: regressors and forecasters that learn from every label, and transformers, which are frozen."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.base import BuiltEncoder
from nashcast.encoders.black_box.features import BuiltFeatures
from nashcast.encoders.black_box.forecaster import BlackBox
from nashcast.encoders.black_box.lag_row import LagRow
from nashcast.encoders.black_box.learner import MOST_LAGS, BuiltOnline, next_target
from nashcast.errors import InvalidInput
from nashcast.extras import needed

_REGRESSOR, _FORECASTER, _TRANSFORMER = "regressor", "forecaster", "transformer"


# Compared by identity: every description has its own copy of the model.
@dataclass(frozen=True, eq=False)
class RiverModel:
    """A regressor or a forecaster (`river.time_series`) of the only target, or a transformer that gives features.

    model: copied, as it is. A regressor or forecaster goes on learning inside the federation, from every label.
    features: how many the agent uses; only for a transformer, whose numbers are taken in the order of their names.
    names: names of the entries of x; those of the federation's inputs, or "0", "1", … by default.
    seed: for the projection, needed only if a transformer gives more than y_dim·features numbers.
    learn: False for a frozen regressor.
    lags: how many of the last targets a regressor sees as "lag_1", "lag_2", …; with them it forecasts further steps.

    River's models cannot be saved without pickling them: after a federation is loaded, they learn their last 20,000
    labelled rows again.
    """

    model: Any
    features: int | None = None
    names: Sequence[str] | None = None
    seed: int | None = None
    learn: bool = True
    lags: int = 0

    def __post_init__(self):
        kind = _kind(self.model)
        if kind != _TRANSFORMER and self.features is not None:
            raise InvalidInput("features", check.describe(self.features), "Omit it: a regressor has one feature.")
        if kind == _TRANSFORMER:
            check.integer("features", self.features, min=1)
        check.integer("lags", self.lags, min=0, max=MOST_LAGS)
        if self.lags and (kind != _REGRESSOR or not self.learn):
            raise InvalidInput("lags", f"{self.lags}", f"Omit it: it is for regressors that learn, not a {kind}.")
        if kind == _FORECASTER and not self.learn:
            raise InvalidInput("learn", "False", "A forecaster must learn: it goes on from the last target.")
        if self.seed is not None:
            seeds.key(self.seed)
        if self.names is not None:
            object.__setattr__(self, "names", _checked_names(self.names))
        object.__setattr__(self, "model", deepcopy(self.model))

    def build(self, x_dim: int, y_dim: int) -> BuiltEncoder:
        return self.build_named(x_dim, y_dim, None)

    def build_named(self, x_dim: int, y_dim: int, names: Sequence[str] | None) -> BuiltEncoder:
        row = LagRow(x_dim, y_dim, self.lags)
        if self.names is not None and len(self.names) != x_dim:
            raise InvalidInput("names", f"{len(self.names)} names", f"Name each of the x_dim = {x_dim} entries of x.")
        chosen = self.names if self.names is not None else names
        keys = tuple(row.names(None if chosen is None else list(chosen)))
        if self.features is not None:
            return BuiltFeatures(
                "model", lambda inputs: [_ordered(self.model.transform_one(_entries(keys, x))) for x in inputs],
                self.features, self.seed, (x_dim, y_dim),
            )  # fmt: skip
        if y_dim != 1:
            remedy = f"It forecasts one target and there are y_dim = {y_dim}: wrap one model for each in a Forecaster."
            raise InvalidInput("model", f"a {type(self.model).__name__}", remedy)
        if not self.learn:
            return BlackBox("model", lambda inputs: [self.model.predict_one(_entries(keys, x)) for x in inputs], y_dim)
        # Copied again: each federation trains its own.
        model = deepcopy(self.model)
        if _kind(model) == _FORECASTER:
            return BuiltOnline(_Forecaster(model), row, accepts_missing=True)
        return BuiltOnline(_Regressor(model, row, keys), row)


class _Regressor:
    def __init__(self, model: Any, row: LagRow, names: tuple[str, ...]):
        self._model, self._row, self._names = model, row, names

    def forecast(self, row: np.ndarray, horizon: int) -> np.ndarray:
        def predict(one: np.ndarray) -> np.ndarray:
            return next_target("model", self._model.predict_one(_entries(self._names, one)), 1)

        return self._row.forecasts(predict, row, horizon)

    def learn(self, row: np.ndarray, target: np.ndarray) -> None:
        self._model.learn_one(_entries(self._names, row), float(target[0]))

    def save(self) -> None:
        return None

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        raise InvalidInput("saved model", "a state", "A river model learns its labelled rows again.")


class _Forecaster(_Regressor):
    """A model of the targets alone, which counts its own steps: it forecasts the target after its last label."""

    def __init__(self, model: Any):
        self._model = model

    def forecast(self, row: np.ndarray, horizon: int) -> np.ndarray:
        forecasts = check.numbers("model", self._model.forecast(horizon=horizon), ("horizon",))
        if forecasts.shape != (horizon,):
            raise InvalidInput("model", f"forecasts of shape {forecasts.shape}", f"It must give {horizon} forecasts.")
        return forecasts[:, None]

    def learn(self, row: np.ndarray, target: np.ndarray) -> None:
        self._model.learn_one(float(target[0]))


def _entries(names: tuple[str, ...], x: np.ndarray) -> dict[str, float]:
    return dict(zip(names, x.tolist(), strict=True))


def _ordered(values: dict) -> list:
    # Sorted by text, because river's names may mix words, numbers and tuples.
    return [values[name] for name in sorted(values, key=str)]


def _kind(model: Any) -> str:
    """The kind of a model; for a pipeline, that of its last step."""
    base, compose = (
        needed("river.base", "river", "river", "encoder"),
        needed("river.compose", "river", "river", "encoder"),
    )
    time_series = needed("river.time_series.base", "river", "river", "encoder")
    last = model
    while isinstance(last, compose.Pipeline) and last.steps:
        last = list(last.steps.values())[-1]
    if isinstance(last, base.Regressor):
        return _REGRESSOR
    if isinstance(last, time_series.Forecaster):
        return _FORECASTER
    if isinstance(last, base.BaseTransformer):
        return _TRANSFORMER
    got = f"an object of type {type(model).__name__}"
    remedy = "Pass a river regressor, forecaster or transformer, or a pipeline of them."
    raise InvalidInput("model", got, remedy)


def _checked_names(names) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
        raise InvalidInput("names", check.describe(names), "Pass a list of words, one for each entry of x.")
    if len(set(names)) < len(names):
        raise InvalidInput("names", check.describe(names), "Give every entry of x a different name.")
    return tuple(names)
