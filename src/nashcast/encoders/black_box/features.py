"""Rows of numbers that a model gives, as features: all of them, or reduced by a projection."""

from __future__ import annotations

from collections.abc import Callable as Function
from collections.abc import Iterable
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.encoders.base import BuiltEncoder, Context
from nashcast.encoders.callable import Callable
from nashcast.errors import InvalidInput

# A black box: a function of inputs (steps, x_dim) that returns one row of numbers for every input.
Answers = Function[[np.ndarray], Iterable[Any]]


class Projection:
    """Maps numbers to features (y_dim, features).

    argument: the model's name in messages.   seed: for the random projection of `Callable`; None for a model that gives
    y_dim·features numbers.   matrix: instead of a seed, (features, numbers): the same features for every target.
    """

    def __init__(self, argument: str, features: int, seed: int | None, y_dim: int, matrix: np.ndarray | None = None):
        self._argument, self._matrix = argument, matrix
        self._project = Callable(lambda row: row, features, seed).build(0, y_dim)
        self.shape, self._seeded = (y_dim, features), seed is not None

    def of(self, answer: Any) -> np.ndarray:
        values = check.numbers(self._argument, answer, "numbers").ravel()
        if self._matrix is None:
            self._check_size(values.size)
            return self._project.projected(values)
        if self._matrix.shape[1] != values.size:
            remedy = f"The projection has shape {self._matrix.shape}: its columns must be as many."
            raise InvalidInput(self._argument, f"an answer of {values.size} numbers", remedy)
        return np.tile(self._matrix @ values, (self.shape[0], 1))

    def _check_size(self, size: int) -> None:
        # `Callable` would refuse these too, but its message would name a function that the user did not pass.
        wanted = self.shape[0] * self.shape[1]
        if size < wanted:
            remedy = f"It must give at least y_dim·features = {wanted} numbers: ask for fewer features."
        elif size > wanted and not self._seeded:
            remedy = f"That is more than y_dim·features = {wanted}: give a seed for a random projection."
        else:
            return
        raise InvalidInput(self._argument, f"an answer of {size} numbers", remedy)


class BuiltFeatures(BuiltEncoder):
    """A model of the present input: y_dim·features numbers, or more, reduced by the projection of `Callable`."""

    def __init__(self, argument: str, answers: Answers, features: int, seed: int | None, dimensions: tuple[int, int]):
        self._answers = answers
        self._projection = Projection(argument, features, seed, dimensions[1])
        self.features = features

    def encode(self, context: Context) -> np.ndarray:
        return self._projected(context.x[None])[0]

    def encode_series(self, inputs: np.ndarray, state: None, key: int, first_step: int) -> tuple[np.ndarray, None]:
        return self._projected(inputs), None

    def _projected(self, inputs: np.ndarray) -> np.ndarray:
        features = np.empty((len(inputs), *self._projection.shape))
        for t, row in enumerate(self._answers(inputs)):
            features[t] = self._projection.of(row)
        return features
