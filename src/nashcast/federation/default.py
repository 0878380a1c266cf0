"""Agents and a federation with default settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nashcast import encoders
from nashcast.agents.agent import Agent
from nashcast.federation.federation import Federation
from nashcast.validation import integer


def default_agents(*, inputs: Sequence[int | str] | None = None, seed: int = 0) -> list[Agent]:
    """Eight agents of eight families, the same for every stream.

    inputs: those they may see, all by default.   seed: seeds the two encoders whose weights are drawn at random.
    """
    families = {
        "trend": encoders.Trend(),
        "lags": encoders.Lags(),
        "seasonal": encoders.Seasonal(),
        "quadratic": encoders.Quadratic(),
        "random lags": encoders.RandomLags(seed=seed),
        "reservoir": encoders.Reservoir(seed=seed),
        "analogs": encoders.Analogs(),
        "seasonal smoothing": encoders.SeasonalSmoothing(),
    }
    return [Agent(encoder, name=name, inputs=inputs) for name, encoder in families.items()]


def rich_agent(*, name: str, inputs: Sequence[int | str] | None = None, seed: int = 0) -> Agent:
    """One agent with all eight families on its own inputs, and a regression over all of them."""
    families = [agent.encoders[0] for agent in default_agents(seed=seed)]
    return Agent(families, name=name, inputs=inputs)


def default_federation(
    x_dim: int, y_dim: int = 1, horizon: int = 1, *, agents: Sequence[Agent] = (), seed: int = 0, **settings: Any
) -> Federation:
    """`Federation(default_agents())` for inputs of x_dim numbers, 0 if there are none (then x is None).

    agents: further agents.   settings: further arguments of `Federation`.

    >>> import nashcast as nc
    >>> federation = nc.default_federation(0)
    >>> for y in [1.0, 3.0, 2.0] * 10:
    ...     forecast = federation.predict_one(None)
    ...     federation.learn_one(None, y)
    >>> round(federation.predict_one(None), 2)
    1.0
    """
    members = [*default_agents(seed=seed), *agents]
    x_dim = integer("x_dim", x_dim, min=0)
    return Federation(members, x_dim=x_dim, y_dim=y_dim, horizon=horizon, seed=seed, **settings)
