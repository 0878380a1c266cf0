"""Five agents of different families, federated on one stream: with the game, without, alone, and beside persistence."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nashcast.agents.paper_agent import PaperAgent
from nashcast.encoders import EchoState, Linear, Persistence, QuadraticLags, RandomFeatures
from nashcast.experiments.paper.replay import replay_any
from nashcast.federation.paper import LookbackGame, PaperFederation
from nashcast.streams import Stream

GAME = LookbackGame(lookback=3)


class Result(NamedTuple):
    """Mean squared errors on one stream, the last weights, and the certificate of the last game."""

    stream: str
    steps: int
    errors: dict[str, float]
    weights: dict[str, float]
    certificate: float


def five_agents(seed: int) -> list[PaperAgent]:
    """Settings fixed beforehand, the same for every stream."""
    return [
        PaperAgent(Persistence(), name="persistence agent"),
        PaperAgent(Linear(), ridge=1.0, window=10, name="linear"),
        PaperAgent(QuadraticLags(lags=1), ridge=10.0, window=20, name="quadratic lags"),
        PaperAgent(RandomFeatures(features=6, seed=seed, noise=0.1), ridge=3.0, window=10, name="random features"),
        PaperAgent(EchoState(features=6, seed=seed + 1, noise=0.1), ridge=3.0, window=10, name="echo state"),
    ]


def show(stream: Stream, seed: int = 2024, progress: Callable[[int, int], None] | None = None) -> Result:
    y_dim, start = stream.targets.shape[1], stream.start

    def federation(agents, game, anchored=False):
        return PaperFederation(agents, game=game, anchored=anchored, y_dim=y_dim, start=start, seed=seed)

    names = [agent.name for agent in five_agents(seed)]
    cases = {
        "federation, game": lambda: federation(five_agents(seed), GAME),
        "federation, no game": lambda: federation(five_agents(seed), None),
        "federation, anchored, no game": lambda: federation(five_agents(seed), None, True),
        **{
            f"{name} alone, anchored": lambda i=i: federation([five_agents(seed)[i]], None, True)
            for i, name in enumerate(names)
            if i > 0
        },
    }
    errors = {}
    for done, (name, make) in enumerate(cases.items()):
        if progress is not None:
            progress(done, len(cases) + 1)
        errors[name] = replay_any(make(), stream.inputs, stream.targets).mse
    last = np.concatenate([start[None], stream.targets[:-1]])
    errors["persistence"] = float(np.mean((stream.targets - last) ** 2))

    # The last steps once more online, for the weights and the certificate a user would see.
    if progress is not None:
        progress(len(cases), len(cases) + 1)
    tail = slice(-50, None)
    online = PaperFederation(five_agents(seed), game=GAME, y_dim=y_dim, start=last[tail][0], seed=seed)
    online.replay(stream.inputs[tail], stream.targets[tail])
    if progress is not None:
        progress(len(cases) + 1, len(cases) + 1)
    return Result(stream.name, len(stream.targets), errors, online.weights, online.certificate().worst)
