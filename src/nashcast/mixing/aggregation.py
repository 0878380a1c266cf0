"""The expert rules by name, behind one interface: see `AggregationRule`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nashcast.errors import InvalidInput
from nashcast.mixing.boa import BOA
from nashcast.mixing.expert_rule import AggregationRule
from nashcast.mixing.exponential_weights import ExponentialWeights, FixedShare
from nashcast.mixing.log_score import LogScore
from nashcast.mixing.ml_poly import MLPoly
from nashcast.mixing.online_ridge import OnlineRidge
from nashcast.mixing.paper_weights import PaperWeights
from nashcast.mixing.windowed_weights import WindowedWeights

RULES: dict[str, Callable[..., AggregationRule]] = {
    rule.name: rule
    for rule in (PaperWeights, WindowedWeights, ExponentialWeights, FixedShare, BOA, MLPoly, OnlineRidge, LogScore)
}


def aggregation_rule(name: str, experts: int, y_dim: int = 1, **options: Any) -> AggregationRule:
    """A new expert rule; options are those of its class.

    >>> rule = aggregation_rule("ml-poly", experts=2)
    >>> for target in (1.0, 3.0, 2.0):
    ...     rule.learn([[target + 1.0], [target]], [target])
    >>> rule.weights()
    array([0., 1.])
    """
    if name not in RULES:
        raise InvalidInput("rule", repr(name), f"Pass one of {', '.join(RULES)}.")
    try:
        return RULES[name](experts, y_dim, **options)
    except TypeError as error:
        raise InvalidInput(f"rule {name!r}", f"an unknown option ({error})", "Pass options of its class.") from None
