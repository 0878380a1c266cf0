"""Black boxes as encoders: one that forecasts the target itself, and what the adapters of other packages share."""

from __future__ import annotations

import importlib
from collections.abc import Callable as Function
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.encoders.base import BuiltEncoder, BuiltForecaster, Context
from nashcast.encoders.callable import Callable
from nashcast.errors import InvalidInput

# What a black box is: inputs (steps, x_dim) in, for every input one row of numbers out.
Answers = Function[[np.ndarray], Iterable[Any]]


@dataclass(frozen=True)
class Forecaster:
    """`function(x)` returns y_dim numbers: its forecast of the next target, in the target's own units.

    The function must not learn: the same input must always give the same forecast.
    """

    function: Function[[np.ndarray], Any]

    def __post_init__(self):
        if not callable(self.function):
            raise InvalidInput("function", check.describe(self.function), "Pass something that can be called with x.")

    def build(self, x_dim: int, y_dim: int) -> BlackBox:
        return BlackBox("function", lambda inputs: [self.function(x) for x in inputs], y_dim)


class BlackBox(BuiltForecaster):
    """A model that gives y_dim numbers for an input: its forecast. `argument` is what messages call it."""

    def __init__(self, argument: str, answers: Answers, y_dim: int):
        self._argument, self._answers, self._y_dim = argument, answers, y_dim

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        said = np.full((1, horizon, self._y_dim), np.nan)
        said[0, 0] = self._forecasts(context.x[None])[0, :, 0]
        return said

    def encode_series(self, inputs: np.ndarray, state: None, key: int, first_step: int) -> tuple[np.ndarray, None]:
        return self._forecasts(inputs), None

    def _forecasts(self, inputs: np.ndarray) -> np.ndarray:
        # Filled, not stacked: a black box may answer with a buffer of its own that it writes to again.
        forecasts = np.empty((len(inputs), self._y_dim, 1))
        for t, row in enumerate(self._answers(inputs)):
            forecast = check.numbers(self._argument, row, ("y_dim",)).ravel()
            if forecast.size != self._y_dim:
                remedy = f"A forecast must have y_dim = {self._y_dim} numbers, one for each target."
                raise InvalidInput(self._argument, f"a forecast of {forecast.size} numbers", remedy)
            forecasts[t, :, 0] = forecast
        return forecasts


class BuiltFeatures(BuiltEncoder):
    """Rows of numbers as features: y_dim·features of them, or more, brought down by the projection of `Callable`."""

    def __init__(self, argument: str, answers: Answers, features: int, seed: int | None, dimensions: tuple[int, int]):
        self._argument, self._answers = argument, answers
        self._project = Callable(lambda row: row, features, seed).build(*dimensions)
        self._shape, self._seeded = (dimensions[1], features), seed is not None
        self.features = features

    def encode(self, context: Context) -> np.ndarray:
        return self._projected(context.x[None])[0]

    def encode_series(self, inputs: np.ndarray, state: None, key: int, first_step: int) -> tuple[np.ndarray, None]:
        return self._projected(inputs), None

    def _projected(self, inputs: np.ndarray) -> np.ndarray:
        features = np.empty((len(inputs), *self._shape))
        for t, row in enumerate(self._answers(inputs)):
            values = check.numbers(self._argument, row, "numbers").ravel()
            self._check_size(values.size)
            features[t] = self._project.projected(values)
        return features

    def _check_size(self, size: int) -> None:
        # `Callable` would refuse these too, but speak of a function the user never passed.
        wanted = self._shape[0] * self._shape[1]
        if size < wanted:
            remedy = f"It must give at least y_dim·features = {wanted} numbers: ask for fewer features."
        elif size > wanted and not self._seeded:
            remedy = f"That is more than y_dim·features = {wanted}: give a seed for a random projection."
        else:
            return
        raise InvalidInput(self._argument, f"an answer of {size} numbers", remedy)


def optional(module: str, package: str, extra: str) -> Any:
    """A module of a package that is not installed with nashcast itself; if it is missing, the message says how."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        remedy = f"Install it: pip install 'nashcast[{extra}]'."
        raise InvalidInput("encoder", f"no package {package}", remedy) from error
