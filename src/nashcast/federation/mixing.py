"""A federation's mixture weights: the paper's, or those of a rule with a memory of more than one step."""

from __future__ import annotations

from nashcast.errors import InvalidInput
from nashcast.mixing.aggregation import RULES, aggregation_rule
from nashcast.mixing.expert_rule import AggregationRule, RuleFactory, made_rule

PAPER = "paper"


def mixing_rule(
    name: str | RuleFactory, agents: int, y_dim: int, ridge: float, budget: float
) -> AggregationRule | None:
    """None for the paper's weights: Algorithm 1 and compiled replay compute them from the last step."""
    if not isinstance(name, str):
        return made_rule(name, agents, y_dim)
    if name not in RULES:
        raise InvalidInput("mixing", repr(name), f"Pass one of {', '.join(RULES)}.")
    if name == PAPER:
        return None
    if name == "windowed":
        return aggregation_rule(name, agents, y_dim, budget=budget)
    if budget != 1.0:
        raise InvalidInput("budget", f"{budget:g} with mixing={name!r}", "Pass 1: the weights of that rule sum to 1.")
    return aggregation_rule(name, agents, y_dim, **({"ridge": ridge} if name == "ridge" else {}))
