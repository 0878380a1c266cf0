"""What is simulated: a small federation on a short stream, and the same in one process with the same absences."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

import nashcast as nc
from nashcast.federation.loop import Loop
from nashcast.federation.loop_factory import JointLoopFactory
from support.remote.joint_teams import AbsentAgents

STEPS, AGENTS, LATE = 8, 3, 2
GAME = nc.JointGame(forgetting=(0.98,), boldness=(1.0,), averaged=False)
NAMES = tuple(f"agent-{i}" for i in range(AGENTS))


class Stream(NamedTuple):
    """late: steps whose labels come two rows later."""

    inputs: np.ndarray
    targets: np.ndarray
    late: frozenset[int]

    def label(self, step: int) -> float | None:
        return None if step in self.late else float(self.targets[step])

    def late_after(self, step: int) -> int | None:
        """Of which step a label comes once this one is learnt."""
        return step - LATE if step - LATE in self.late else None


@lru_cache
def stream(number: int) -> Stream:
    """One of a few, so that what is expected of them is computed once."""
    rng = np.random.default_rng(number)
    X = rng.standard_normal((STEPS, AGENTS))
    moves = X @ np.array([1.0, -1.0, 1.0]) + 0.3 * rng.standard_normal(STEPS)
    return Stream(X, np.cumsum(moves), frozenset([3]) if number % 2 else frozenset())


def make_agent(place: int) -> nc.Agent:
    return nc.Agent(nc.encoders.Linear(lags=1), inputs=[place], name=NAMES[place], share="forecasts")


class Absences(NamedTuple):
    """rows: of each step, which agents gave no answer.   recalls: of each late label's step, in its own round."""

    rows: tuple[frozenset[int], ...]
    recalls: tuple[tuple[int, frozenset[int]], ...]


class _Agents(AbsentAgents):
    recalls: dict[int, frozenset[int]] = {}  # noqa: RUF012

    def forecast(self, x, included=None):
        self._forecast_of = self._history.step
        return super().forecast(x, included)

    def recall(self, steps, included=None):
        if int(steps[0]) == self._forecast_of:
            return super().recall(steps, included)
        before, self._now_away = self._now_away, sorted(self.recalls[int(steps[0])])
        try:
            return super().recall(steps, included)
        finally:
            self._now_away = before


@lru_cache(maxsize=4096)
def expected(number: int, absences: Absences) -> np.ndarray:
    """Forecasts of the federation in one process, in which the same agents are absent."""
    away = [{t for t, absent in enumerate(absences.rows) if i in absent} for i in range(AGENTS)]
    kind = type("Absent", (_Agents,), {"away": away, "recalls": dict(absences.recalls)})
    agents = [make_agent(i) for i in range(AGENTS)]

    class Factory(JointLoopFactory):
        def begin(self, columns, start, first_step):
            s = self._settings
            return Loop(lambda h: kind(agents, h, s.game, s.horizon, None, s.seed), columns.x_dim, start, s, first_step)

    own = {"game": GAME, "mixing": "adaptive", "season": None, "seed": 0, "horizon": 1}
    found, (X, Y, late) = nc.Federation.over(Factory(agents, **own), start=0.0), stream(number)
    forecasts = np.empty(STEPS)
    for t in range(STEPS):
        forecasts[t] = found.predict_one(X[t])
        found.learn_one(X[t], None if t in late else Y[t])
        if t - LATE in late:
            found.learn_late(t - LATE, Y[t - LATE])
    return forecasts
