"""Scikit-learn models as encoders: a transformer gives features; a regressor forecasts, and may go on learning."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.base import BuiltForecaster, Context
from nashcast.encoders.black_box.black_box_call import BlackBoxCall
from nashcast.encoders.black_box.features import BuiltFeatures
from nashcast.encoders.black_box.forecaster import BlackBox
from nashcast.encoders.black_box.lag_row import LagRow
from nashcast.encoders.black_box.learner import MOST_LAGS, BuiltOnline, next_target, plain_or_none
from nashcast.encoders.black_box.model_state import from_arrays
from nashcast.errors import InvalidInput
from nashcast.extras import needed

_CALL = BlackBoxCall()


@dataclass(frozen=True)
class SklearnTransformer:
    """`model.transform` gives y_dim·features numbers, or more, which a random projection reduces to that.

    model: fitted, with or without column names, and not fitted again while in use.   features: how many are used.
    seed: for the projection, needed only if the model gives more.
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
        return self.build_named(x_dim, y_dim, None)

    def build_named(self, x_dim: int, y_dim: int, names: Sequence[str] | None) -> BuiltFeatures:
        table = _Table(self.model, x_dim, names)

        def transform(inputs: np.ndarray) -> np.ndarray:
            rows = _CALL(self.model.transform, table.of(inputs))
            return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows)

        return BuiltFeatures("model", transform, self.features, self.seed, (x_dim, y_dim))


# Compared by identity: models with equal settings may be fitted differently.
@dataclass(frozen=True, eq=False)
class SklearnRegressor:
    """`model.predict` gives y_dim numbers: its forecast of the next target, in the target's own units.

    model: fitted, with or without column names; columns are found by name where the federation's inputs have names.
    lags: how many of the last targets it sees after the inputs, newest first, as columns "lag_1", "lag_2", …; it then
        forecasts further steps from its own forecasts.
    learn: whether it goes on learning from every label by `partial_fit`, as a copy of its own. It need not be fitted
        then. Its state is saved if it is plain numbers, else it learns its last 20,000 labelled rows again.
    """

    model: Any
    lags: int = 0
    learn: bool = False

    def __post_init__(self):
        check.integer("lags", self.lags, min=0, max=MOST_LAGS)
        if not self.learn:
            _check_fitted(self.model, "predict", "regressor")
            return
        needed("sklearn.exceptions", "scikit-learn", "sklearn", "encoder")
        if isinstance(self.model, type) or not callable(getattr(self.model, "partial_fit", None)):
            name = self.model.__name__ if isinstance(self.model, type) else type(self.model).__name__
            raise InvalidInput("model", f"a {name} without partial_fit", "Pass learn=False, or a model that can learn.")
        object.__setattr__(self, "model", deepcopy(self.model))

    def build(self, x_dim: int, y_dim: int) -> BuiltForecaster:
        return self.build_named(x_dim, y_dim, None)

    def build_named(self, x_dim: int, y_dim: int, names: Sequence[str] | None) -> BuiltForecaster:
        row = LagRow(x_dim, y_dim, self.lags)
        columns = None if names is None else row.names(list(names))
        model = deepcopy(self.model) if self.learn else self.model
        table = _Table(model, row.size, columns)
        if self.learn:
            return BuiltOnline(_Online(model, row, table, y_dim), row)
        if self.lags:
            return _Lagged(model, row, table, y_dim)
        return BlackBox("model", lambda inputs: np.asarray(_CALL(model.predict, table.of(inputs))), y_dim)


class _Table:
    """Rows of numbers as a model takes them.

    size: numbers in a row.   names: its columns' names, if any. A model that was fitted on named columns is passed
    tables with these, in its own order, so that it does not warn of missing names.
    """

    def __init__(self, model: Any, size: int, names: Sequence[str] | None):
        fitted = getattr(model, "feature_names_in_", None)
        self._names = None if fitted is None else [str(name) for name in fitted]
        self._order: np.ndarray | None = None
        if self._names is not None and names is not None:
            absent = [name for name in self._names if name not in names]
            if absent:
                got = f"a {type(model).__name__} fitted on {', '.join(absent)}"
                raise InvalidInput("model", got, f"There are only {', '.join(names)}: pass these columns too.")
            self._order = np.array([list(names).index(name) for name in self._names])
        else:
            _check_inputs(model, size)
        self._frame = None
        if self._names is not None:
            try:
                self._frame = needed("pandas", "pandas", "sklearn", "encoder").DataFrame
            except InvalidInput:  # fitted on tables of another library: its warning is suppressed
                self._names = None

    def of(self, rows: np.ndarray) -> Any:
        if self._order is not None:
            rows = rows[:, self._order]
        return rows if self._frame is None else self._frame(rows, columns=self._names)


class _Lagged(BuiltForecaster):
    """A fitted model that sees the last targets."""

    def __init__(self, model: Any, row: LagRow, table: _Table, y_dim: int):
        self._model, self._row, self._table, self._y_dim = model, row, table, y_dim
        self.past_targets = row.lags

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        return _CALL(self._row.forecasts, self._next, self._row.of(context), horizon)[None]

    def _next(self, row: np.ndarray) -> np.ndarray:
        return next_target("model", self._model.predict(self._table.of(row[None])), self._y_dim)


class _Online:
    """A model that learns by partial_fit."""

    def __init__(self, model: Any, row: LagRow, table: _Table, y_dim: int):
        self._model, self._row, self._table, self._y_dim = model, row, table, y_dim

    def forecast(self, row: np.ndarray, horizon: int) -> np.ndarray:
        def predict(one: np.ndarray) -> np.ndarray:
            return next_target("model", self._model.predict(self._table.of(one[None])), self._y_dim)

        return self._row.forecasts(predict, row, horizon)

    def learn(self, row: np.ndarray, target: np.ndarray) -> None:
        self._model.partial_fit(self._table.of(row[None]), target if self._y_dim == 1 else target[None])

    def save(self) -> dict[str, np.ndarray] | None:
        return plain_or_none(vars(self._model))

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        state = from_arrays(saved)
        if not isinstance(state, dict) or not all(isinstance(name, str) and name.isidentifier() for name in state):
            raise InvalidInput("saved model", "no attributes", "Load it into a federation made with the same agents.")
        parameters = self._model.get_params(deep=False)
        if any(name not in state or repr(state[name]) != repr(value) for name, value in parameters.items()):
            raise InvalidInput("saved model", "another model's state", "Load it into a federation made the same way.")
        vars(self._model).update(state)


def _check_fitted(model, method: str, kind: str) -> None:
    validation = needed("sklearn.utils.validation", "scikit-learn", "sklearn", "encoder")
    exceptions = needed("sklearn.exceptions", "scikit-learn", "sklearn", "encoder")
    # A class has the method too, but no instance.
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
