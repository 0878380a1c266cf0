"""From a federation file to the federation behind the service."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nashcast.adaptive import AdaptiveFederation, default_federation
from nashcast.adaptive.plan import AGENTS
from nashcast.experiments.build import agent_names, maker, without_game
from nashcast.experiments.config import AgentConfig, Config
from nashcast.federation.paper import PaperFederation
from nashcast.service.elsewhere import Elsewhere
from nashcast.service.settings import ServedConfig

# Encoders that run nobody else's code: they may be called for practice, and do the same every time.
_OURS = ("persistence", "linear", "quadratic_lags", "seasonal", "random_features", "echo_state", "transformer")
Served = PaperFederation | AdaptiveFederation


class Made(NamedTuple):
    """make: a federation that has learnt nothing.   beside: the same agents anchored and without a game, or None.

    repeats: whether a step computed again from the same observations is the same, bit for bit. Where it may not be
        (somebody else's code, deadlines, agents elsewhere), all that is learnt is saved after every step.
    elsewhere: the hub of agents that are not in this process, if they are not.
    """

    names: list[str]
    make: Callable[[], Served]
    beside: Callable[[], Served] | None
    repeats: bool = True
    elsewhere: Elsewhere | None = None


def make_federation(config: ServedConfig) -> Made:
    if config.hub is not None:
        elsewhere = Elsewhere(config, config.hub)
        return Made(list(config.hub.agents), elsewhere.make, None, repeats=False, elsewhere=elsewhere)
    if config.default:
        return _default(config)
    described, serve = config.federation, config.serve

    def made(described: Config) -> Callable[[], PaperFederation]:
        # The service has intervals of its own: they learn from labels that come any number of steps late.
        return maker(described, serve.y_dim, deadline=serve.deadline, coverages=())

    make, beside = made(described), None
    if serve.compare and described.game is not None:
        beside = made(without_game(described, anchored=True))
    repeats = serve.deadline is None and all(agent.encoder in _OURS for agent in described.agents)
    return Made(agent_names(described), make, beside, repeats)


def _default(config: ServedConfig) -> Made:
    serve, seed = config.serve, config.federation.seed

    def made(game: bool) -> Callable[[], AdaptiveFederation]:
        return lambda: default_federation(serve.x_dim, serve.y_dim, game=game, seed=seed, coverages=())

    return Made(list(AGENTS), made(config.game), made(False) if serve.compare and config.game else None)


def warm_up(config: ServedConfig) -> None:
    """Compile what a step needs before anybody waits for one, on numbers that mean nothing."""
    if config.hub is not None:
        from nashcast.remote.warm_up import warm_up as warm_up_games

        warm_up_games()
        return
    described, serve = config.federation, config.serve
    ours = tuple(agent for agent in described.agents if agent.encoder in _OURS)
    ours = ours or (AgentConfig(1, None, "persistence", {}, 1.0, 0.0, 5, None),)
    practice = config._replace(federation=replace(described, agents=tuple(replace(a, count=1) for a in ours)))
    made = make_federation(config if config.default else practice)
    lookback = 0 if described.game is None else described.game.lookback
    for make in filter(None, (made.make, made.beside)):
        federation = make()
        for t in range(lookback + 4):
            x, y = np.full(serve.x_dim, np.sin(t)), np.full(serve.y_dim, np.cos(t))
            federation.learn_one(x, y)
            federation.predict_one(x)
        federation.learn_late(federation.step - 1, np.zeros(serve.y_dim))
