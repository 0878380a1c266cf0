"""From a federation file to the federation behind the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nashcast.experiments.build import maker, member_names, without_game
from nashcast.federation.federation import Federation
from nashcast.federation.loop import JOINT
from nashcast.federation.paper import PaperFederation
from nashcast.games.lookback.game import Equilibrium
from nashcast.service.elsewhere import Elsewhere
from nashcast.service.settings import ServedConfig

# Encoders that run code of this package only, so that a step computed again is the same.
_OURS = (
    "trend", "lags", "seasonal", "quadratic", "random_lags", "reservoir", "analogs", "seasonal_smoothing",
    "persistence", "linear", "random_features", "echo_state", "transformer",
)  # fmt: skip
Served = PaperFederation | Federation


class Made(NamedTuple):
    """make: a federation that has learnt nothing.   beside: the same agents without a game, or None.

    names: of the members, whose forecasts are mixed.
    repeats: whether a step computed again from the same observations is the same, bit for bit. Where it may not be
        (somebody else's code, deadlines, agents elsewhere), all that is learnt is saved after every step.
    elsewhere: the hub of agents that are not in this process, if they are not.
    """

    names: list[str]
    make: Callable[[], Served]
    beside: Callable[[], Served] | None
    repeats: bool = True
    elsewhere: Elsewhere | None = None


class Said(NamedTuple):
    """What a federation of either kind forecasts of the next step.

    own: each member's own forecast, (members, y_dim).   absent: members that sit out, by place, and why.
    played: whether there was a game.   fell_back: why there was none though one was due.   game: of the paper's.
    """

    forecast: np.ndarray
    weights: np.ndarray
    own: np.ndarray
    absent: dict[int, str]
    played: bool
    fell_back: str = ""
    game: Equilibrium | None = None


def make_federation(config: ServedConfig) -> Made:
    if config.hub is not None:
        elsewhere = Elsewhere(config, config.hub)
        return Made(list(config.hub.agents), elsewhere.make, None, repeats=False, elsewhere=elsewhere)
    described, serve = config.federation, config.serve
    # The service has intervals of its own: they learn from labels that come any number of steps late.
    settings: dict[str, Any] = {"coverages": ()}
    if described.paper is not None:
        settings["deadline"] = serve.deadline
    beside = None
    if serve.compare and described.game:
        beside = maker(without_game(described, anchored=True), serve.y_dim, **settings)
    repeats = serve.deadline is None and all(agent.encoder in _OURS for agent in described.agents)
    return Made(member_names(described), maker(described, serve.y_dim, **settings), beside, repeats)


def said_by(federation: Served) -> Said | None:
    """What it forecast last, until that is learnt."""
    if isinstance(federation, Federation):
        now = federation.present
        plays = bool(federation.members) and federation.members[-1] == JOINT
        return None if now is None else Said(now.forecast[0], now.weights, now.own, now.absent, plays)
    step = federation.present
    if step is None:
        return None
    return Said(step.forecast, step.weights, step.forecasts, step.absent, step.played, step.fell_back, step.game)


def labels_before_first(federation: Served) -> int:
    """The number of first labels that `learn_late` does not count: the paper's federation only begins with one."""
    return 0 if isinstance(federation, Federation) else 1
