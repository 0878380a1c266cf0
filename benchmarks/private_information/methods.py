"""The methods of the private-information benchmark, all over the same agents, and the limits: everything pooled."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from nashcast.config.build import stream_digest
from nashcast.datasets import Stream
from nashcast.datasets.owners import check_owners
from nashcast.evaluation.evaluate import Contest
from nashcast.evaluation.federation_methods import FEDERATION, WITHOUT_GAME, federation
from nashcast.evaluation.method import Method, Whole, one
from nashcast.evaluation.peers.baselines import BASELINES
from nashcast.evaluation.prequential import timed
from nashcast.federation.federation import Federation
from nashcast.federation.paper import LookbackGame, paper_federation
from nashcast.games.joint import JointGame
from private_information import rules, traffic
from private_information.agents import RICH, owners_agents, paper_agents
from private_information.expert_run import ExpertRun, expert_run

JOINT, PAPERS = "joint game alone", "paper's game"
MEAN, BOA, ML_POLY = "mean of the agents", "BOA", "ML-Poly"
STACKING, STACKING_ALL = "stacking", "stacking of all experts"
POOLED, POOLED_FEDERATION = "pooled regression", "pooled default federation"
LOOKBACK = 3
PRIVATE_FAMILIES = {
    "ours": "the federation and its parts",
    "agents": "each owner's agent alone",
    "experts": "mixtures of the agents' own forecasts",
    "pooled": "limits: all inputs in one place",
    "baselines": "persistence",
}


class _SameNumbers:
    """A stream as a key: equal to another with the same numbers and owners."""

    def __init__(self, stream: Stream):
        self.stream, self._key = stream, (stream_digest(stream), repr(dict(stream.owners)))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _SameNumbers) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=2)
def _run(key: _SameNumbers, kind: str, seed: int) -> ExpertRun:
    return expert_run(owners_agents(key.stream, kind, seed), key.stream, seed)


@lru_cache(maxsize=2)
def _alone(key: _SameNumbers, kind: str, seed: int) -> tuple[np.ndarray, float]:
    begun = time.perf_counter()
    return rules.alone(_run(key, kind, seed), key.stream), time.perf_counter() - begun


Mixing = Callable[[ExpertRun, Stream], np.ndarray]


def _over_experts(kind: str, mix: Mixing) -> Whole:
    """A rule over what the experts of the federation said. Its time includes the whole federation's."""

    def whole(stream: Stream, seed: int) -> tuple[np.ndarray, float]:
        run = _run(_SameNumbers(stream), kind, seed)
        begun = time.perf_counter()
        return mix(run, stream), run.seconds + time.perf_counter() - begun

    return whole


def _over_agents(kind: str, mix: Callable[[np.ndarray, Stream], np.ndarray]) -> Whole:
    """A rule over what each agent forecasts by itself, (steps, y_dim, agents)."""

    def whole(stream: Stream, seed: int) -> tuple[np.ndarray, float]:
        key = _SameNumbers(stream)
        run, (said, seconds) = _run(key, kind, seed), _alone(key, kind, seed)
        begun = time.perf_counter()
        return mix(said, stream), run.seconds + seconds + time.perf_counter() - begun

    return whole


def contest(kind: str) -> Contest:
    """All methods over owners' agents of a kind, "simple" or "rich"."""
    code = ("agents", "expert_run", "methods", "rules", "traffic")
    return Contest(kind, private_methods, tuple(Path(__file__).with_name(f"{name}.py") for name in code))


def private_methods(stream: Stream, kind: str) -> dict[str, Method]:
    """In the order of the tables. kind: of the agents."""
    owners, random, game = list(check_owners(stream)), kind == RICH, JointGame()
    over_experts, over_agents = partial(_over_experts, kind), partial(_over_agents, kind)

    def method(name: str, family: str, whole: Whole, exchanged: Callable[[Stream], Any]) -> Method:
        return Method(name, family, whole=whole, random=random, traffic=exchanged)

    every, single = partial(traffic.forecasts, kind), traffic.one_forecast
    found = [
        method(FEDERATION, "ours", over_experts(lambda run, _: run.forecasts),
               partial(traffic.federation, kind, game=game)),
        method(WITHOUT_GAME, "ours", over_experts(lambda run, stream: rules.adaptive(run, stream, run.own)),
               partial(traffic.federation, kind, game=None)),
        method(JOINT, "ours", over_experts(rules.joint_alone),
               partial(traffic.joint, game=game)),
        Method(PAPERS, "ours", whole=_papers, traffic=lambda stream: traffic.papers(papers(stream), stream, LOOKBACK)),
        *(method(f"{owner} alone", "agents", over_agents(lambda said, _, k=k: said[:, :, k]), traffic.nothing)
          for k, owner in enumerate(owners)),
        method(MEAN, "experts", over_agents(lambda said, _: said.mean(axis=2)), single),
        method(BOA, "experts", over_experts(lambda run, stream: rules.expert_rule("boa", run, stream, run.own)), every),
        method(ML_POLY, "experts",
               over_experts(lambda run, stream: rules.expert_rule("ml-poly", run, stream, run.own)), every),
        method(STACKING, "experts", over_agents(rules.stacking), single),
        # Rich agents have more than 200 experts: their regression would take longer than everything else.
        *([] if kind == RICH else [method(STACKING_ALL, "experts",
               over_experts(lambda run, stream: rules.stacking(run.experts[:, :, run.own], stream)), every)]),
        Method(POOLED, "pooled", whole=timed(rules.pooled_regression), traffic=traffic.pooled),
        Method(POOLED_FEDERATION, "pooled", one(federation), random=True, traffic=traffic.pooled),
        Method("persistence", "baselines", whole=timed(BASELINES["persistence"]), traffic=traffic.nothing),
    ]  # fmt: skip
    return {each.name: each for each in found}


def papers(stream: Stream) -> Federation:
    """Algorithm 1 with the look-back game spread over the owners' agents, which are linear for either kind."""
    return paper_federation(
        paper_agents(stream), game=LookbackGame(LOOKBACK, placement="spread"), y_dim=stream.targets.shape[1],
        start=stream.start, transcript=True,
    )  # fmt: skip


def _papers(stream: Stream, seed: int) -> tuple[np.ndarray, float]:
    """The same forecasts as spread, by the central placement, which takes less time."""
    made = paper_federation(
        paper_agents(stream), game=LookbackGame(LOOKBACK), y_dim=stream.targets.shape[1], start=stream.start, seed=seed
    )
    begun = time.perf_counter()
    forecasts = made.replay(stream.inputs, stream.targets).forecasts
    return forecasts, time.perf_counter() - begun
