"""Test case of an agent: a short stream with games, and the agent's replies over it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nashcast import seeds
from nashcast.agents.protocol import Hello, Participant, Sync
from nashcast.checks.contract import same

LOOKBACK = 3


class AgentCase(NamedTuple):
    """A test case of an agent. targets[t] is known when inputs[t] arrives, targets[t + 1] is to be forecast."""

    make: Callable[[], Participant]
    inputs: np.ndarray
    targets: np.ndarray
    key: int
    seed: int

    @property
    def dims(self) -> tuple[int, int]:
        return self.inputs.shape[1], self.targets.shape[1]

    def begin(self) -> tuple[Participant, Hello]:
        agent = self.make()
        return agent, agent.begin(self.dims[0], self.targets[0].copy(), self.key, LOOKBACK)

    def sync(self, t: int, features: int) -> Sync:
        """A possible message of the server at step t; with the agent's own decoder at every other step."""
        rng = seeds.generator(self.seed, "checks", "sync", t)
        now, decoder = rng.standard_normal(self.dims[1]), rng.standard_normal(features)
        return Sync(now, None if t % 2 else decoder)


def play(case: AgentCase, agent: Participant, features: int, steps: range, asked: int = 1) -> list[tuple]:
    """An agent's replies over part of the stream, with games, copied step by step.

    asked: how often each forecast is requested; if more than once, also for another input in between.
    """
    replies = []
    for t in steps:
        x = case.inputs[t]
        for _ in range(asked - 1):
            agent.forecast(x)
            agent.forecast(x + 1.0)
        answer, view, adopted = copy.deepcopy(agent.forecast(x).forecast), None, None
        if answer is not None and t >= LOOKBACK and t % 3 != 2:
            view = tuple(copy.deepcopy(agent.view()))
            adopted = copy.deepcopy(agent.adopt(case.sync(t, features)).forecast)
        agent.learn(case.targets[t + 1])
        replies.append((answer, view, adopted))
    return replies


def stream(case: AgentCase, *, steps: int | None = None, asked: int = 1) -> list[tuple]:
    """The replies of a fresh agent from the beginning."""
    agent, hello = case.begin()
    return play(case, agent, hello.features, range(len(case.inputs) if steps is None else steps), asked)


def differs(one: list[tuple], other: list[tuple]) -> int | None:
    """The first step at which the replies of two runs differ."""
    for t, (a, b) in enumerate(zip(one, other, strict=False)):
        if not same(a, b):
            return t
    return None
