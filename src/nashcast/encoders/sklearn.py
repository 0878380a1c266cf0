"""Fitted scikit-learn models as encoders: a transformer gives features, a regressor gives a forecast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.forecaster import BlackBox, BuiltFeatures, optional
from nashcast.errors import InvalidInput


@dataclass(frozen=True)
class SklearnTransformer:
    """`model.transform` gives y_dim·features numbers, or more, which a random projection brings down.

    model: fitted, and not fitted again while in use.   features: how many the agent uses.
    seed: of the projection, needed only if the model gives more.
    """

    model: Any
    features: int
    seed: int | None = None

    def __post_init__(self):
        _check_fitted(self.model, "transform", "transformer")
        check.integer("features", self.features, min=1)
        if self.seed is not None:
            seeds.key(self.seed)

    def build(self, x_dim: int, y_dim: int) -> BuiltFeatures:
        _check_inputs(self.model, x_dim)
        return BuiltFeatures("model", self._transform, self.features, self.seed, (x_dim, y_dim))

    def _transform(self, inputs: np.ndarray) -> np.ndarray:
        rows = self.model.transform(inputs)
        return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)


@dataclass(frozen=True)
class SklearnRegressor:
    """`model.predict` gives y_dim numbers: its forecast of the next target, in the target's own units.

    model: fitted, and not fitted again while in use.
    """

    model: Any

    def __post_init__(self):
        _check_fitted(self.model, "predict", "regressor")

    def build(self, x_dim: int, y_dim: int) -> BlackBox:
        _check_inputs(self.model, x_dim)
        return BlackBox("model", lambda inputs: np.asarray(self.model.predict(inputs)), y_dim)


def _check_fitted(model, method: str, kind: str) -> None:
    validation = optional("sklearn.utils.validation", "scikit-learn", "sklearn")
    exceptions = optional("sklearn.exceptions", "scikit-learn", "sklearn")
    # A class has the method too, but nothing to call it on.
    if isinstance(model, type) or not callable(getattr(model, method, None)) or not hasattr(model, "fit"):
        remedy = f"Pass a fitted scikit-learn {kind}: an object with fit and {method}."
        got = f"the class {model.__name__}" if isinstance(model, type) else f"an object of type {type(model).__name__}"
        raise InvalidInput("model", got, remedy)
    try:
        validation.check_is_fitted(model)
    except exceptions.NotFittedError:
        raise InvalidInput("model", f"a {type(model).__name__} that is not fitted", "Call its fit first.") from None


def _check_inputs(model, x_dim: int) -> None:
    fitted = getattr(model, "n_features_in_", x_dim)
    if fitted != x_dim:
        got = f"a {type(model).__name__} fitted on inputs of {fitted} numbers"
        raise InvalidInput("model", got, f"Fit it on inputs of x_dim = {x_dim} numbers.")
