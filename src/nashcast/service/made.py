"""From a federation file to the federation behind the service. Agents elsewhere get in here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nashcast.experiments.build import agent_names, maker, without_game
from nashcast.experiments.config import AgentConfig
from nashcast.federation import Federation
from nashcast.service.settings import ServedConfig

# Encoders that run nobody else's code: they may be called for practice, and do the same every time.
_OURS = ("persistence", "linear", "quadratic_lags", "seasonal", "random_features", "echo_state", "transformer")


class Made(NamedTuple):
    """make: a federation that has learnt nothing.   beside: the same agents anchored and without a game, or None.

    repeats: whether a step computed again from the same observations is the same, bit for bit. Where it may not be
        (somebody else's code, deadlines, agents elsewhere), all that is learnt is saved after every step.
    """

    names: list[str]
    make: Callable[[], Federation]
    beside: Callable[[], Federation] | None
    repeats: bool = True


def make_federation(config: ServedConfig) -> Made:
    """In this process, for now."""
    described, serve = config.federation, config.serve
    make = maker(described, serve.y_dim, deadline=serve.deadline)
    beside = None
    if serve.compare and described.game is not None:
        beside = maker(without_game(described, anchored=True), serve.y_dim, deadline=serve.deadline)
    repeats = serve.deadline is None and all(agent.encoder in _OURS for agent in described.agents)
    return Made(agent_names(described), make, beside, repeats)


def warm_up(config: ServedConfig) -> None:
    """Compile what a step needs before anybody waits for one, on numbers that mean nothing."""
    described, serve = config.federation, config.serve
    ours = tuple(agent for agent in described.agents if agent.encoder in _OURS)
    ours = ours or (AgentConfig(1, None, "persistence", {}, 1.0, 0.0, 5, None),)
    practice = ServedConfig(replace(described, agents=tuple(replace(a, count=1) for a in ours)), serve)
    made = make_federation(practice)
    lookback = 0 if described.game is None else described.game.lookback
    for make in filter(None, (made.make, made.beside)):
        federation = make()
        for t in range(lookback + 4):
            x, y = np.full(serve.x_dim, np.sin(t)), np.full(serve.y_dim, np.cos(t))
            federation.learn_one(x, y)
            federation.predict_one(x)
        federation.learn_late(federation.step - 1, np.zeros(serve.y_dim))
