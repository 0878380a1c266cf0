"""From a federation file to the federation behind the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nashcast.config.build import maker, member_names, without_game
from nashcast.config.run_encoders import ENCODERS
from nashcast.encoders import Encoder
from nashcast.federation.federation import Federation
from nashcast.service.streams.settings import ServedConfig
from nashcast.service.workers.elsewhere import Elsewhere
from nashcast.service.workers.foreign import ForeignEncoder

# Encoders that run code of this package only, so that a step computed again is the same.
_OURS = (
    "trend", "lags", "seasonal", "quadratic", "random_lags", "reservoir", "analogs", "seasonal_smoothing",
    "persistence", "linear", "random_features", "echo_state", "transformer",
)  # fmt: skip


FOREIGN = frozenset(ENCODERS) - frozenset(_OURS)


class Made(NamedTuple):
    """make: a federation that has learnt nothing.   beside: the same agents without a game, or None.

    names: of the members, whose forecasts are mixed.
    repeats: whether a step computed again from the same observations is the same, bit for bit. Where it may not be
        (somebody else's code, deadlines, agents elsewhere), all that is learnt is saved after every step.
    elsewhere: the hub of agents that are not in this process, if they are not.
    children: encoders in processes of their own.
    paper: whether it is the paper's federation, which has look-back games and screens no labels.
    """

    names: list[str]
    make: Callable[[], Federation]
    beside: Callable[[], Federation] | None
    repeats: bool = True
    elsewhere: Elsewhere | None = None
    paper: bool = False
    children: tuple[Any, ...] = ()


def member_names_of(config: ServedConfig) -> list[str]:
    """The members, without making anything."""
    return list(config.hub.agents) if config.hub is not None else member_names(config.federation)


def make_federation(config: ServedConfig) -> Made:
    if config.hub is not None:
        elsewhere = Elsewhere(config, config.hub)
        return Made(list(config.hub.agents), elsewhere.make, None, False, elsewhere, paper=True)
    described, serve = config.federation, config.serve
    # The service has intervals of its own: they learn from labels that come any number of steps late.
    # Beyond one step the federation's own are used.
    settings: dict[str, Any] = {"coverages": serve.coverages if described.horizon > 1 else (), "history": 0}
    children: list[ForeignEncoder] = []

    def wrap(family: str, encoder: Encoder) -> Encoder:
        if family in _OURS:
            return encoder
        children.append(ForeignEncoder(encoder, serve.deadline, serve.memory))
        return children[-1]

    beside = None
    if serve.compare and described.game:
        beside = maker(without_game(described, anchored=True), serve.y_dim, wrap=wrap, **settings)
    make = maker(described, serve.y_dim, wrap=wrap, **settings)
    repeats = not has_foreign_code(config)
    return Made(
        member_names(described), make, beside, repeats, paper=described.paper is not None, children=tuple(children)
    )


def has_foreign_code(config: ServedConfig) -> bool:
    """Whether an agent runs code that is not this package's: a step computed again may then be another."""
    return any(agent.encoder in FOREIGN for agent in config.federation.agents)
