"""The federation that is evaluated, its agents, and its ablations."""

from __future__ import annotations

from functools import partial

from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.encoders import EchoState, Linear, RandomFeatures
from nashcast.evaluation.method import Maker, Method, Problem, one
from nashcast.federation.default import default_agents, default_federation
from nashcast.federation.federation import Federation
from nashcast.federation.paper import LookbackGame, paper_federation
from nashcast.games.joint import JointGame
from nashcast.mixing.aggregation import RULES

FEDERATION, WITHOUT_GAME = "federation", "federation without its game"
PAPERS = "paper's federation"
# Default agents with random weights.
_RANDOM = ("random lags", "reservoir")


def federation(problem: Problem, seed: int, *, game: bool = True, mixing: str = "adaptive") -> Federation:
    """The default federation, called "federation" in all tables."""
    return default_federation(
        problem.x_dim, problem.y_dim, start=problem.start, seed=seed, mixing=mixing,
        game=JointGame() if game else None,
    )  # fmt: skip


def names() -> list[str]:
    return [agent.name for agent in default_agents()]


def alone(name: str, problem: Problem, seed: int) -> Federation:
    """One default agent alone, mixed with persistence."""
    agent = next(agent for agent in default_agents(seed=seed) if agent.name == name)
    return Federation([agent], x_dim=problem.x_dim, y_dim=problem.y_dim, start=problem.start, seed=seed)


def papers(problem: Problem, seed: int) -> Federation:
    """Algorithm 1 over five agents of the paper's families, with its look-back game."""
    agents = [
        *(PaperAgent(RandomFeatures(features=6, seed=seed + k), name=f"random features {k + 1}") for k in range(2)),
        *(PaperAgent(EchoState(features=6, seed=seed + k), name=f"echo state {k + 1}") for k in range(2)),
        PaperAgent(Linear(), name="linear"),
    ]
    return paper_federation(agents, game=LookbackGame(3), y_dim=problem.y_dim, start=problem.start, seed=seed)


def methods() -> list[Method]:
    """The federation, the federation without its game or with other weights, and the paper's federation."""
    makers: dict[str, Maker] = {FEDERATION: federation, WITHOUT_GAME: partial(federation, game=False)}
    makers |= {f"federation, {rule} weights": partial(federation, mixing=rule) for rule in RULES if rule != "paper"}
    makers[PAPERS] = papers
    return [Method(name, "ours", one(maker), random=True) for name, maker in makers.items()]


def agent_methods() -> list[Method]:
    return [Method(f"agent: {name}", "agents", one(partial(alone, name)), random=name in _RANDOM) for name in names()]
