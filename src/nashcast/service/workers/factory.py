"""Build the federation behind the service from a federation file."""

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

# Encoders that run only code of this package, so that a recomputed step is identical.
_BUILT_IN = (
    "trend", "lags", "seasonal", "quadratic", "random_lags", "reservoir", "analogs", "seasonal_smoothing",
    "persistence", "linear", "random_features", "echo_state", "transformer",
)  # fmt: skip


FOREIGN = frozenset(ENCODERS) - frozenset(_BUILT_IN)


class Made(NamedTuple):
    """make: builds a new federation.   beside: builds the same agents without a game, or None.

    names: names of the members, whose forecasts are mixed.
    repeats: whether a step recomputed from the same observations is identical bit for bit. Where it may not be
        (foreign code, deadlines, remote agents), the learnt state is saved after every step.
    elsewhere: the hub of remote agents, if any.
    children: encoders in separate processes.
    paper: whether it is the paper's federation, which has look-back games and no label screening.
    """

    names: list[str]
    make: Callable[[], Federation]
    beside: Callable[[], Federation] | None
    repeats: bool = True
    elsewhere: Elsewhere | None = None
    paper: bool = False
    children: tuple[Any, ...] = ()


def member_names_of(config: ServedConfig) -> list[str]:
    """Names of the members, without building the federation."""
    return list(config.hub.agents) if config.hub is not None else member_names(config.federation)


def make_federation(config: ServedConfig) -> Made:
    if config.hub is not None:
        elsewhere = Elsewhere(config, config.hub)
        return Made(list(config.hub.agents), elsewhere.make, None, False, elsewhere, paper=True)
    described, serve = config.federation, config.serve
    # The service computes its own intervals, which learn from labels that arrive any number of steps late.
    # Beyond one step the federation's intervals are used.
    settings: dict[str, Any] = {"coverages": serve.coverages if described.horizon > 1 else (), "history": 0}
    children: list[ForeignEncoder] = []

    def wrap(family: str, encoder: Encoder) -> Encoder:
        if family in _BUILT_IN:
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
    """Whether an agent runs code from outside this package, so that a recomputed step may differ."""
    return any(agent.encoder in FOREIGN for agent in config.federation.agents)
