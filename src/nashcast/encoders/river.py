"""A river model as an encoder, frozen as it is when given: a transformer gives features, a regressor a forecast."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.base import BuiltEncoder
from nashcast.encoders.forecaster import BlackBox, BuiltFeatures, optional
from nashcast.errors import InvalidInput


# Compared by identity: every description holds its own copy of the model.
@dataclass(frozen=True, eq=False)
class RiverModel:
    """A regressor forecasts the only target; a transformer gives features, in the order of their names.

    model: copied, so that learning goes on outside without changing the agent.
    features: how many the agent uses; only for a transformer.   names: of the entries of x; "0", "1", … by default.
    seed: of the projection, needed only if a transformer gives more than y_dim·features numbers.
    """

    model: Any
    features: int | None = None
    names: Sequence[str] | None = None
    seed: int | None = None

    def __post_init__(self):
        forecasts = _is_regressor(self.model)
        if forecasts and self.features is not None:
            raise InvalidInput("features", check.describe(self.features), "Omit it: a regressor has one feature.")
        if not forecasts:
            check.integer("features", self.features, min=1)
        if self.seed is not None:
            seeds.key(self.seed)
        if self.names is not None:
            object.__setattr__(self, "names", _checked_names(self.names))
        object.__setattr__(self, "model", deepcopy(self.model))

    def build(self, x_dim: int, y_dim: int) -> BuiltEncoder:
        names = tuple(str(i) for i in range(x_dim)) if self.names is None else self.names
        if len(names) != x_dim:
            raise InvalidInput("names", f"{len(names)} names", f"Name each of the x_dim = {x_dim} entries of x.")

        def entries(x: np.ndarray) -> dict[str, float]:
            return dict(zip(names, x.tolist(), strict=True))

        if self.features is not None:
            return BuiltFeatures(
                "model", lambda inputs: [_ordered(self.model.transform_one(entries(x))) for x in inputs],
                self.features, self.seed, (x_dim, y_dim),
            )  # fmt: skip
        if y_dim != 1:
            remedy = f"It forecasts one target and there are y_dim = {y_dim}: wrap one model for each in a Forecaster."
            raise InvalidInput("model", f"a {type(self.model).__name__}", remedy)
        return BlackBox("model", lambda inputs: [self.model.predict_one(entries(x)) for x in inputs], y_dim)


def _ordered(values: dict) -> list:
    # By text, because river's names may be words, numbers and tuples at once.
    return [values[name] for name in sorted(values, key=str)]


def _is_regressor(model) -> bool:
    """Whether it is a regressor; False for a transformer. A pipeline is what its last step is."""
    base, compose = optional("river.base", "river", "river"), optional("river.compose", "river", "river")
    last = model
    while isinstance(last, compose.Pipeline) and last.steps:
        last = list(last.steps.values())[-1]
    if isinstance(last, base.Regressor):
        return True
    if isinstance(last, base.BaseTransformer):
        return False
    got = f"an object of type {type(model).__name__}"
    raise InvalidInput("model", got, "Pass a river regressor or transformer, or a pipeline of them.")


def _checked_names(names) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(n, str) for n in names):
        raise InvalidInput("names", check.describe(names), "Pass a list of words, one for each entry of x.")
    if len(set(names)) < len(names):
        raise InvalidInput("names", check.describe(names), "Give every entry of x a different name.")
    return tuple(names)
