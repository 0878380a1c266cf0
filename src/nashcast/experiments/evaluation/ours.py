"""The federation that is evaluated, its agents, and its ablations."""

from __future__ import annotations

from functools import partial
from typing import Any

from nashcast.adaptive import AdaptiveFederation, default_federation
from nashcast.agents.paper_agent import PaperAgent
from nashcast.encoders import EchoState, Linear, Persistence, QuadraticLags, RandomFeatures, Seasonal
from nashcast.experiments.evaluation.method import Maker, Method, Problem, one
from nashcast.federation.paper import LookbackGame, PaperFederation
from nashcast.mixing.aggregation import RULES

FEDERATION, WITHOUT_GAME = "federation", "federation without its game"
# Beyond this many inputs their products are too many for one agent.
MOST_FOR_PRODUCTS = 6


def federation(problem: Problem, seed: int, game: bool = True) -> AdaptiveFederation:
    """The default federation: what all tables call "federation"."""
    return default_federation(problem.x_dim, problem.y_dim, game=game, start=problem.start, seed=seed)


def agents(problem: Problem, seed: int) -> list[PaperAgent]:
    """Six diverse agents with fixed settings, the same for every stream."""
    few = problem.x_dim <= MOST_FOR_PRODUCTS
    products = QuadraticLags(lags=2 if problem.x_dim <= 2 else 1) if few else Linear(lags=2)
    memory: dict[str, Any] = {"ridge": 0.1, "forgetting": 0.99}
    return [
        PaperAgent(Persistence(), name="persistence"),
        PaperAgent(Linear(lags=1), name="linear", **memory),
        PaperAgent(Seasonal(), name="seasonal", **memory),
        PaperAgent(products, name="quadratic lags" if few else "linear, two lags", **memory),
        PaperAgent(RandomFeatures(features=20, seed=seed, noise=0.0), name="random features", **memory),
        PaperAgent(EchoState(features=20, seed=seed, noise=0.0), name="echo state", **memory),
    ]


def names(problem: Problem) -> list[str]:
    return [agent.name for agent in agents(problem, 0)]


def alone(place: int, problem: Problem, seed: int) -> PaperFederation:
    """One agent by itself, started anew from each target."""
    agent = agents(problem, seed)[place]
    return PaperFederation([agent], game=None, anchored=True, y_dim=problem.y_dim, start=problem.start, seed=seed)


def _federation(problem: Problem, seed: int, **settings) -> PaperFederation:
    usual = {"game": None, "anchored": settings.get("game") is None}
    return PaperFederation(
        agents(problem, seed), y_dim=problem.y_dim, start=problem.start, seed=seed, **(usual | settings)
    )  # fmt: skip


def methods() -> list[Method]:
    """The federation, itself without the game, and six agents as the paper and the literature federate them."""
    variants: dict[str, Maker] = {
        WITHOUT_GAME: partial(federation, game=False),
        "six agents, no game": partial(_federation, anchored=False),
        "six agents, anchored": _federation,
        "six agents, paper's game": partial(_federation, game=LookbackGame(lookback=3, every=1)),
        "six agents, prior-centred game": partial(_federation, game=LookbackGame(lookback=1, memory=True, ridge=0.1)),
    }
    variants |= {f"six agents, {name} weights": partial(_federation, mixing=name) for name in RULES if name != "paper"}
    return [
        Method(FEDERATION, "ours", one(federation), random=True),
        *(Method(name, "ours", one(maker), random=True) for name, maker in variants.items()),
    ]


def agent_methods(problem: Problem) -> list[Method]:
    return [
        Method(f"agent: {name}", "agents", one(partial(alone, place)), random=name in ("random features", "echo state"))
        for place, name in enumerate(names(problem))
    ]
