"""Functions that forecast as encoders, and the common part of the adapters of other packages."""

from __future__ import annotations

import inspect
from collections.abc import Callable as Function
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.encoders.base import BuiltForecaster, Context, ForecastSet, State
from nashcast.encoders.black_box.answers import AnswerShape, checked_levels
from nashcast.encoders.black_box.black_box_call import BlackBoxCall
from nashcast.encoders.black_box.features import Answers
from nashcast.encoders.black_box.refits import Refits
from nashcast.errors import InvalidInput
from nashcast.short_repr import short_repr

# Targets that an agent stores: the largest context of a function.
MOST_CONTEXT = 2048
_CALL = BlackBoxCall()


@dataclass(frozen=True)
class Forecaster:
    """Any function that forecasts the next targets, in their own units.

    function: called with the last `context` targets, oldest first, an array (rows,), or (rows, y_dim) for several
        targets; with the input x if `context` is 0. It is also passed those of `horizon`, `x`, `inputs` (earlier
        ones, (≤ context, x_dim)) and `times` that it has parameters for. It returns 1 or `horizon` forecasts.
    context: how many targets it sees at most; fewer at the start of a stream.
    horizon: how many steps it forecasts; None for 1 or as many as the federation does.
    quantiles: levels, if it returns quantiles along a last axis; the median is the forecast.
    samples: whether it returns samples along a first axis; the mean is the forecast.
    fit: `fit(past)` makes a model; the function is then called with the model first, and then the past.
    refit_every: steps between fits; without `fit`, steps between calls: in between, its last answer is used.
    timeout: seconds. The agent sits the step out if the answer takes longer, raises, is not finite or has a wrong
        length.

    The function must not learn: the same past must always give the same forecast. See `Learner` for those that do.

    >>> import nashcast as nc
    >>> naive = nc.encoders.Forecaster(lambda past: past[-24:], context=24, horizon=24)
    >>> federation = nc.Federation([nc.Agent(naive, name="yesterday")], horizon=24)
    """

    function: Function[..., Any]
    context: int = 0
    horizon: int | None = None
    quantiles: Sequence[float] = ()
    samples: bool = False
    fit: Function[..., Any] | None = None
    refit_every: int = 1
    timeout: float | None = None

    __repr__ = short_repr

    def __post_init__(self):
        _check_callable("function", self.function, "Pass something that can be called with x or with the past.")
        check.integer("context", self.context, min=0, max=MOST_CONTEXT)
        if self.horizon is not None:
            check.integer("horizon", self.horizon, min=1)
        object.__setattr__(self, "quantiles", checked_levels("quantiles", self.quantiles))
        if self.quantiles and self.samples:
            raise InvalidInput("samples", "True beside quantiles", "Declare what the function returns: one of them.")
        if self.timeout is not None:
            check.number("timeout", self.timeout, above=0.0)
        scheduled = check.integer("refit_every", self.refit_every, min=1) > 1 or self.fit is not None
        if self.fit is not None:
            _check_callable("fit", self.fit, "Pass a function of the past that returns a model.")
        if scheduled and not self.context:
            raise InvalidInput("context", "0", "Say how many targets to fit to, for example context=168.")

    def build(self, x_dim: int, y_dim: int) -> BuiltForecaster:
        if self == Forecaster(self.function):
            return BlackBox("function", lambda inputs: [_quietly(self.function, x) for x in inputs], y_dim)
        shape = AnswerShape("function", y_dim, self.horizon, tuple(self.quantiles), self.samples)
        return BuiltFunction(self, shape, y_dim)


class BuiltFunction(BuiltForecaster):
    """A function of the past, or of a model that is fitted to it on a schedule."""

    def __init__(self, description: Forecaster, shape: AnswerShape, y_dim: int):
        self._description, self._shape, self._y_dim = description, shape, y_dim
        self.forecasts, self.levels = shape.forecasts, shape.levels
        self._call = BlackBoxCall(description.timeout)
        self._takes = _parameters(description.function, 1 if description.fit is None else 2)
        self.past_targets = description.context
        self.past_inputs = description.context if self._takes & {"inputs", "times"} else 0
        self._scheduled = description.fit is not None or description.refit_every > 1
        if self._scheduled and description.fit is None and self._takes & {"x", "inputs", "times"}:
            remedy = "A function that is called every refit_every steps may ask for the past and the horizon only."
            raise InvalidInput("function", f"one that asks for {', '.join(sorted(self._takes))}", remedy)
        self._refits = Refits(description.refit_every, y_dim, self._fitted)

    def start(self) -> State:
        return self._refits.start() if self._scheduled else None

    def advance(self, context: Context) -> State:
        return self._refits.advance(context) if self._scheduled else None

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        return self.forecast_set(context, horizon).forecasts

    def forecast_set(self, context: Context, horizon: int) -> ForecastSet:
        function, past = self._description.function, self._past(context.targets)
        if not self._scheduled:
            first = past if self._description.context else context.x
            return self._shape.read(self._call(function, first, **self._asked(context, horizon)), horizon)
        fitted_to, age = context.state
        if self._description.fit is not None:
            model = self._refits.model(fitted_to)
            return self._shape.read(self._call(function, model, past, **self._asked(context, horizon)), horizon)
        # The answer must reach as far as the last forecast before the next call needs.
        length = horizon + self._description.refit_every - 1
        return self._shape.read(self._refits.model(fitted_to, length), horizon, age, length)

    def _fitted(self, targets: np.ndarray, horizon: int) -> Any:
        past, fit = self._past(targets), self._description.fit
        if fit is not None:
            return self._call(fit, past)
        asked = {"horizon": horizon} if "horizon" in self._takes else {}
        return self._call(self._description.function, past, **asked)

    def _past(self, targets: np.ndarray) -> np.ndarray:
        return (targets[:, 0] if self._y_dim == 1 else targets).copy()

    def _asked(self, context: Context, horizon: int) -> dict[str, Any]:
        known = {"horizon": horizon, "x": context.x, "inputs": context.inputs, "times": context.times}
        return {name: known[name] for name in self._takes}


class BlackBox(BuiltForecaster):
    """A model that gives y_dim numbers for an input: its forecast. `argument` is its name in messages."""

    def __init__(self, argument: str, answers: Answers, y_dim: int):
        self._argument, self._answers, self._y_dim = argument, answers, y_dim

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        forecasts = np.full((1, horizon, self._y_dim), np.nan)
        forecasts[0, 0] = self._forecasts(context.x[None])[0, :, 0]
        return forecasts

    def encode_series(self, inputs: np.ndarray, state: None, key: int, first_step: int) -> tuple[np.ndarray, None]:
        return self._forecasts(inputs), None

    def _forecasts(self, inputs: np.ndarray) -> np.ndarray:
        # Filled, not stacked: a black box may return the same buffer again and again.
        forecasts = np.empty((len(inputs), self._y_dim, 1))
        for t, row in enumerate(self._answers(inputs)):
            forecast = check.numbers(self._argument, row, ("y_dim",)).ravel()
            if forecast.size != self._y_dim:
                remedy = f"A forecast must have y_dim = {self._y_dim} numbers, one for each target."
                raise InvalidInput(self._argument, f"a forecast of {forecast.size} numbers", remedy)
            forecasts[t, :, 0] = forecast
        return forecasts


def _parameters(function: Function[..., Any], given: int) -> set[str]:
    """The optional arguments of a function of the past that it has parameters for, after the first `given`."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[given:]
    except (TypeError, ValueError):  # some built-in functions have no signature
        return set()
    return {"horizon", "x", "inputs", "times"} & {parameter.name for parameter in parameters}


def _quietly(function: Function[..., Any], x: np.ndarray) -> Any:
    return _CALL(function, x)


def _check_callable(name: str, function: Any, remedy: str) -> None:
    if not callable(function):
        raise InvalidInput(name, check.describe(function), remedy)
