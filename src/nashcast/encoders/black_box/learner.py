"""Models that learn by themselves, from every label, inside a federation."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from nashcast import validation as check
from nashcast.encoders.base import BuiltLearner, Context
from nashcast.encoders.black_box.black_box_call import BlackBoxCall
from nashcast.encoders.black_box.lag_row import LagRow
from nashcast.encoders.black_box.model_state import NotPlain, from_arrays, to_arrays
from nashcast.errors import InvalidInput

MOST_LAGS = 2048


@dataclass(frozen=True)
class Learner:
    """A stateful model: `predict(x)` forecasts the next target, `learn(x, y)` learns it when it comes.

    make: called without arguments for each federation; returns an object with `predict` and `learn`, or a pair of
        functions. y is a number, or an array of y_dim numbers for several targets. If the object also has `get_state`
        and `set_state` (numbers, texts, arrays, lists and dicts of those), its state is saved with the federation;
        if not, it learns its last 20,000 labelled rows again when the federation is loaded.
    lags: how many of the last targets x contains after the input, the newest first. With lags the model forecasts
        further steps from its own forecasts, without lags the next step only.
    timeout: seconds for a forecast or for learning a label.

    A late label is learnt when it comes, with the x of its own step; a missing or suspect one is not learnt.

    >>> import nashcast as nc
    >>> class Mean:
    ...     total, count = 0.0, 0
    ...     def predict(self, x):
    ...         return self.total / max(self.count, 1)
    ...     def learn(self, x, y):
    ...         self.total, self.count = self.total + y, self.count + 1
    >>> federation = nc.Federation([nc.Agent(nc.encoders.Learner(Mean), name="mean")])
    """

    make: Function[[], Any]
    lags: int = 0
    timeout: float | None = None

    def __post_init__(self):
        if not callable(self.make):
            remedy = "Pass a class, or a function that makes a model; Learner(lambda: model) shares one model."
            raise InvalidInput("make", check.describe(self.make), remedy)
        check.integer("lags", self.lags, min=0, max=MOST_LAGS)
        if self.timeout is not None:
            check.number("timeout", self.timeout, above=0.0)

    def build(self, x_dim: int, y_dim: int) -> BuiltOnline:
        row = LagRow(x_dim, y_dim, self.lags)
        return BuiltOnline(_Pair(self.make(), row, y_dim), row, self.timeout)


class OnlineModel(Protocol):
    """The model inside a learner."""

    def forecast(self, row: np.ndarray, horizon: int) -> np.ndarray:
        """(horizon, y_dim), NaN beyond its horizon."""
        ...

    def learn(self, row: np.ndarray, target: np.ndarray) -> None: ...

    def save(self) -> dict[str, np.ndarray] | None:
        """None if its state cannot be saved."""
        ...

    def restore(self, saved: dict[str, np.ndarray]) -> None: ...


class BuiltOnline(BuiltLearner):
    """A model, and the row it sees.   accepts_missing: whether rows may contain NaN."""

    def __init__(self, model: OnlineModel, row: LagRow, timeout: float | None = None, accepts_missing: bool = False):
        self._model, self._row, self._call = model, row, BlackBoxCall(timeout)
        self.past_targets, self.accepts_missing = row.lags, accepts_missing

    @property
    def row_size(self) -> int:
        return self._row.size

    def row(self, context: Context) -> np.ndarray:
        return self._row.of(context)

    def forecast_row(self, row: np.ndarray, horizon: int) -> np.ndarray:
        return self._call(self._model.forecast, row.copy(), horizon)[None]

    def learn_row(self, row: np.ndarray, target: np.ndarray) -> None:
        self._call(self._model.learn, row, target)

    def save_state(self) -> dict[str, np.ndarray] | None:
        return self._model.save()

    def restore_state(self, saved: dict[str, np.ndarray]) -> None:
        self._model.restore(saved)


class _Pair:
    """An object with predict and learn, or a pair of functions."""

    def __init__(self, model: Any, row: LagRow, y_dim: int):
        pair: Any = (
            model if isinstance(model, tuple) else (getattr(model, "predict", None), getattr(model, "learn", None))
        )
        if len(pair) != 2 or not all(callable(one) for one in pair):
            remedy = "Return an object with predict(x) and learn(x, y), or a pair of functions."
            raise InvalidInput("make", f"a function that returned {check.describe(model)}", remedy)
        self._predict: Function[..., Any] = pair[0]
        self._learn: Function[..., Any] = pair[1]
        self._model: Any = model
        self._row, self._y_dim = row, y_dim
        self._saves = all(callable(getattr(model, name, None)) for name in ("get_state", "set_state"))

    def forecast(self, row: np.ndarray, horizon: int) -> np.ndarray:
        return self._row.forecasts(
            lambda one: next_target("make", self._predict(one.copy()), self._y_dim), row, horizon
        )

    def learn(self, row: np.ndarray, target: np.ndarray) -> None:
        self._learn(row, float(target[0]) if self._y_dim == 1 else target)

    def save(self) -> dict[str, np.ndarray] | None:
        return plain_or_none(self._model.get_state()) if self._saves else None

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        if not self._saves:
            raise InvalidInput("saved model", "a state", "Load it into a learner that has set_state.")
        self._model.set_state(from_arrays(saved))


def next_target(name: str, answer: Any, y_dim: int) -> np.ndarray:
    """An answer as y_dim numbers."""
    forecast = check.numbers(name, answer, ("y_dim",)).ravel()
    if forecast.size != y_dim:
        remedy = f"A forecast must have y_dim = {y_dim} numbers, one for each target."
        raise InvalidInput(name, f"a forecast of {forecast.size} numbers", remedy)
    return forecast


def plain_or_none(state: Any) -> dict[str, np.ndarray] | None:
    """A state as arrays; None if any part of it would have to be pickled."""
    try:
        return to_arrays(state)
    except NotPlain:
        return None
