"""Any Python function that turns an input into numbers as an encoder: a vendor's model, a network, a lookup."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import dataclass

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.base import BuiltEncoder, Context
from nashcast.errors import InvalidInput


@dataclass(frozen=True)
class Callable:
    r"""`function(x)` returns numbers: exactly y_dim·features of them, or more, which a random projection reduces.

    features: how many the agent uses.   seed: for the projection, needed only if the function returns more.
    The function must not learn: the same input must always give the same numbers.
    """

    function: Function[[np.ndarray], np.ndarray]
    features: int
    seed: int | None = None

    def __post_init__(self):
        if not callable(self.function):
            raise InvalidInput("function", check.describe(self.function), "Pass something that can be called with x.")
        check.integer("features", self.features, min=1)
        if self.seed is not None:
            seeds.key(self.seed)

    def build(self, x_dim: int, y_dim: int) -> _Built:
        return _Built(self, y_dim)


class _Built(BuiltEncoder):
    def __init__(self, description: Callable, y_dim: int):
        self._description = description
        self._shape = (y_dim, description.features)
        self._projections: dict[int, np.ndarray] = {}
        self.features = description.features

    def encode(self, context: Context) -> np.ndarray:
        return self.projected(check.numbers("function", self._description.function(context.x), "numbers").ravel())

    def projected(self, values: np.ndarray) -> np.ndarray:
        """Numbers as features (y_dim, features), reduced by the projection if there are more."""
        if values.size == self._shape[0] * self._shape[1]:
            return values.reshape(self._shape)
        return (self._projection(values.size) @ values).reshape(self._shape)

    def _projection(self, size: int) -> np.ndarray:
        wanted = self._shape[0] * self._shape[1]
        if size < wanted:
            remedy = f"Return at least y_dim·features = {wanted} numbers, or ask for fewer features."
            raise InvalidInput("function", f"{size} numbers", remedy)
        if self._description.seed is None:
            remedy = f"Return exactly y_dim·features = {wanted} numbers, or give a seed for a random projection."
            raise InvalidInput("function", f"{size} numbers", remedy)
        if size not in self._projections:
            rng = seeds.generator(self._description.seed, "projection", size)
            self._projections[size] = rng.standard_normal((wanted, size)) / np.sqrt(size)
        return self._projections[size]
