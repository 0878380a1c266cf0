"""One run of a federation in which everything its experts say is written down, so that many rules can mix the same."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from nashcast.agents.agent import Agent
from nashcast.datasets import Stream
from nashcast.federation.federation import Federation
from nashcast.federation.loop import JOINT, Loop


class ExpertRun(NamedTuple):
    """members: persistence, the agents, the joint game.   seconds: for all steps.

    learnt: after each step, the steps whose labels the mixture learnt: the step itself, one before it whose label was
    in doubt, or none.   begun: the step from which the mixture's memory begins: 0, or where the federation has begun
    again without wild labels.
    """

    members: list[str]
    owner: np.ndarray  # the member each expert belongs to, (experts,)
    experts: np.ndarray  # what each forecast, (steps, y_dim, experts)
    leverage: np.ndarray  # (steps, y_dim, experts)
    awake: np.ndarray  # (steps, experts)
    learnt: list[list[int]]
    begun: int
    forecasts: np.ndarray  # the federation's, (steps, y_dim)
    seconds: float

    @property
    def own(self) -> np.ndarray:
        """The experts that are there without the joint game."""
        return np.flatnonzero(self.owner != self.members.index(JOINT))

    @property
    def joint(self) -> np.ndarray:
        return np.flatnonzero(self.owner == self.members.index(JOINT))

    def of(self, agent: int) -> np.ndarray:
        """The experts of persistence and of one agent."""
        return np.flatnonzero((self.owner == 0) | (self.owner == 1 + agent))


def expert_run(agents: list[Agent], stream: Stream, seed: int) -> ExpertRun:
    """The federation of these agents on the stream."""
    steps, p = stream.targets.shape
    federation = Federation(
        agents, x_dim=stream.inputs.shape[1], y_dim=p, start=stream.start, seed=seed, coverages=(), history=0
    )
    said, forecasts, learnt, begun = [], np.empty((steps, p)), [], 0
    loop, watched = None, []
    started = time.perf_counter()
    for t, (x, y) in enumerate(zip(stream.inputs, stream.targets, strict=True)):
        forecasts[t] = federation.predict_one(x)
        now = begun_loop(federation)
        if loop is not now:
            loop, begun, watched = now, t, _watch(now)
        assert now._now is not None
        said.append(now._now[0])
        federation.learn_one(x, y)
        learnt.append(watched[:])
        watched.clear()
    seconds = time.perf_counter() - started
    assert loop is not None
    return ExpertRun(
        loop.members, loop.owner, np.stack([each.experts[:, 0] for each in said]),
        np.stack([each.leverage for each in said]), np.stack([each.awake for each in said]), learnt, begun, forecasts,
        seconds,
    )  # fmt: skip


def begun_loop(federation: Federation) -> Loop:
    """The loop of the joint game."""
    loop = federation.loop
    assert isinstance(loop, Loop)
    return loop


def _watch(loop: Loop) -> list[int]:
    """A list to which the steps are added whose labels the loop learns."""
    found: list[int] = []
    learn = loop._learn_labels

    def watched(lesson, *arguments):
        found.append(lesson.step)
        return learn(lesson, *arguments)

    setattr(loop, "_learn_labels", watched)  # noqa: B010 a method of this one object
    return found
