"""The mixture of a federation: the adaptive one, or a single expert rule by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.mixing.adaptive import RULES as ADAPTIVE_RULES
from nashcast.mixing.adaptive import AdaptiveMixture, Mixed
from nashcast.mixing.aggregation import RULES, aggregation_rule
from nashcast.mixing.expert_rule import RuleFactory, made_rule

ADAPTIVE = "adaptive"
_OTHERS = tuple(name for name in RULES if name != "paper")


def mixture_of(name: str | RuleFactory) -> Callable:
    """The factory of a mixture: a function of columns, prior weights and horizons of the columns."""
    if name == ADAPTIVE:
        return AdaptiveMixture
    if not isinstance(name, str):
        return partial(RuleMixture, partial(made_rule, name))
    if name not in _OTHERS:
        remedy = f"Pass one of {', '.join((ADAPTIVE, *_OTHERS))}; for the paper's weights see `paper_federation`."
        raise InvalidInput("mixing", repr(name), remedy)
    return partial(RuleMixture, partial(aggregation_rule, name))


class RuleMixture:
    """One expert rule for each column, with the interface of `AdaptiveMixture`."""

    def __init__(self, factory: RuleFactory, columns: int, prior: np.ndarray, horizons: np.ndarray | None = None):
        self._rules = [factory(len(prior), 1) for _ in range(columns)]

    def mix(self, forecasts: np.ndarray, leverage: np.ndarray, awake: np.ndarray) -> Mixed:
        parts = zip(self._rules, forecasts, awake, strict=True)
        weights = np.array([rule.weights(here, column[:, None]) for rule, column, here in parts])
        forecast = (weights * np.where(awake, forecasts, 0.0)).sum(axis=1)
        empty = np.zeros((len(forecasts), 1 + ADAPTIVE_RULES))
        return Mixed(forecast, weights, weights[:, None], empty)

    def learn(self, mixed, forecasts, leverage, awake, target, labelled) -> None:
        for column in np.flatnonzero(labelled):
            self._rules[column].learn(forecasts[column][:, None], target[column : column + 1], awake[column])

    def save(self) -> dict[str, np.ndarray]:
        return {f"{i}.{name}": value for i, rule in enumerate(self._rules) for name, value in rule.save().items()}

    def restore(self, fields) -> None:
        for i, rule in enumerate(self._rules):
            rule.restore(fields.part(f"{i}.").rest())
