"""Agents that lie within bounds, in a federation of five: the lies, and the streams they are told on.

A liar learns as an honest agent does and changes what it says: its contributions to the joint game, its leverages and
its own forecasts. Two of the lies are told by a pair.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nashcast import seeds
from nashcast.agents.agent import Agent
from nashcast.agents.history import History
from nashcast.agents.local_agents import AgentForecasts, LocalAgents
from nashcast.datasets import Stream, air_quality, tmy3
from nashcast.datasets.owners import check_owners
from nashcast.encoders import Lags
from nashcast.federation.federation import Federation
from nashcast.federation.incoming.columns import Columns
from nashcast.federation.loop import Loop
from nashcast.federation.loop_factory import JointLoopFactory
from nashcast.federation.rules import ADAPTIVE
from nashcast.games.joint import JointGame

OWNERS = 5
# The late liar is honest for half of the rows; the one that lies at times turns after so many rows.
TURNS = 50
STALE = 10


class Moment(NamedTuple):
    """When and by which of the liars something is said. past: what it would have said before, newest last."""

    step: int
    steps: int
    liar: int
    past: Sequence[np.ndarray]
    rng: np.random.Generator
    shared: np.random.Generator  # the same numbers for all liars


class Lie(NamedTuple):
    """said: of changes (…, y_dim, horizon) in usual changes of the target.   leverage: of leverages; None if honest."""

    name: str
    said: Callable[[np.ndarray, Moment], np.ndarray]
    leverage: Callable[[np.ndarray], np.ndarray] | None = None
    liars: int = 1


def _scaled(factor: float) -> Callable[[np.ndarray, Moment], np.ndarray]:
    return lambda said, _: factor * said


def _stale(said: np.ndarray, moment: Moment) -> np.ndarray:
    return moment.past[0] if len(moment.past) == STALE else np.zeros_like(said)


def _one_target(said: np.ndarray, _: Moment) -> np.ndarray:
    wrong = said.copy()
    wrong[..., 0, :] *= -3.0
    return wrong


def _at_times(said: np.ndarray, moment: Moment) -> np.ndarray:
    return said if moment.step // TURNS % 2 else -3.0 * said


def _late(said: np.ndarray, moment: Moment) -> np.ndarray:
    return said if moment.step < moment.steps // 2 else -3.0 * said


def _rarely(said: np.ndarray, moment: Moment) -> np.ndarray:
    return said + 10.0 * (moment.rng.random() < 0.05)


def _falling(said: np.ndarray, moment: Moment) -> np.ndarray:
    return (1.0 - 4.0 * moment.step / moment.steps) * said


def _shared_noise(said: np.ndarray, moment: Moment) -> np.ndarray:
    return said + moment.shared.standard_normal(said.shape[-2:])


def _covered(said: np.ndarray, moment: Moment) -> np.ndarray:
    """Two lies that cancel for some rows, so that each liar is missed without the other, and then do not."""
    lie = 3.0 * moment.shared.standard_normal(said.shape[-2:])
    return said + (lie if moment.liar == 0 or moment.step // TURNS % 2 else -lie)


LIES = (
    Lie("scaled by 10", _scaled(10.0)),
    Lie("scaled by 0.1", _scaled(0.1)),
    Lie("sign flipped", _scaled(-1.0)),
    Lie("shifted by 2 usual changes", lambda said, _: said + 2.0),
    Lie("always 1 usual change", lambda said, _: np.ones_like(said)),
    Lie(f"{STALE} rows old", _stale),
    Lie("random, 2 usual changes", lambda said, moment: 2.0 * moment.rng.standard_normal(said.shape)),
    Lie("one target scaled by -3", _one_target),
    Lie(f"scaled by -3, {TURNS} rows of {2 * TURNS}", _at_times),
    Lie("scaled by -3 from the middle on", _late),
    Lie("1 row in 20 shifted by 10 usual changes", _rarely),
    Lie("factor falling from 1 to -3", _falling),
    Lie("leverage 0", _scaled(1.0), np.zeros_like),
    Lie("leverage 1", _scaled(1.0), np.ones_like),
    Lie("a pair that adds the same noise", _shared_noise, liars=2),
    Lie("a pair whose lies cancel at times", _covered, liars=2),
)


class LyingAgents(LocalAgents):
    """agents, history, …: as of `LocalAgents`.   `set_lie` follows.

    lie: of the agents at `liars`.   steps: rows of the stream.   masked: only sums over all agents are seen, and they
    are judged together, as agents that share `joint` are.
    """

    def set_lie(self, lie: Lie, liars: Sequence[int], steps: int, masked: bool) -> None:
        self._lie, self._liars, self._steps, self._masked = lie, tuple(liars), steps, masked
        if masked:
            self.groups = np.zeros(len(self.names), dtype=np.int64)
        self._past = {liar: (deque(maxlen=STALE), deque(maxlen=STALE)) for liar in self._liars}
        self._honest: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._told: dict[int, np.ndarray] = {}
        self._at = -1

    def forecast(self, x: np.ndarray, included: np.ndarray | None = None) -> AgentForecasts:
        said, scales, step = super().forecast(x, included), self._history.scales, self._history.step
        contributions, now = said.contributions, self._history.targets[self._history.now]
        assert contributions is not None
        if step > self._at:
            for liar, honest in self._honest.items():
                for memory, value in zip(self._past[liar], honest, strict=True):
                    memory.append(value)
            self._at = step
        for place, liar in enumerate(self._liars):
            own = self.owner == liar
            changes = (said.experts[..., own] - now[:, None, None]) * scales.inverse_change[:, None, None]
            honest = self.contributed[:, liar].copy(), np.moveaxis(changes, 2, 0)
            self._honest[liar] = honest
            wrong, own_wrong = (
                self._lie.said(value, self._moment(place, liar, memory, part))
                for part, (value, memory) in enumerate(zip(honest, self._past[liar], strict=True))
            )
            self._told[liar] = wrong
            contributions.said[:, liar] = wrong * scales.change[:, None]
            said.experts[..., own] = now[:, None, None] + np.moveaxis(own_wrong, 0, 2) * scales.change[:, None, None]
            if self._lie.leverage is not None:
                contributions.leverage[:, liar] = self._lie.leverage(contributions.leverage[:, liar])
        if not self._masked:
            return said
        for terms in contributions[:2]:
            terms[:] = terms.mean(axis=1, keepdims=True)
        return said._replace(awake=np.zeros_like(said.awake), absent=dict.fromkeys(range(len(self.names)), "masked"))

    def _moment(self, place: int, liar: int, past: Sequence[np.ndarray], part: int) -> Moment:
        step = self._history.step
        rng, shared = (seeds.generator(step, "lie", who, part) for who in (liar, OWNERS))
        return Moment(step, self._steps, place, past, rng, shared)

    def recall(self, steps: np.ndarray, included: np.ndarray | None = None) -> np.ndarray:
        """Of the last row, what was said of it; labels of this benchmark are in time or one row late."""
        recalled = super().recall(steps, included).copy()
        for liar, told in self._told.items():
            recalled[:, liar] = told[:-1]
        if self._masked:
            recalled[:] = recalled.mean(axis=1, keepdims=True)
        return recalled


class _Factory(JointLoopFactory):
    lying: tuple[Lie, tuple[int, ...], int, bool]  # as of `set_lie`

    def begin(self, columns: Columns, start: np.ndarray, first_step: int) -> Loop:
        s = self._settings

        def make_agents(history: History) -> LyingAgents:
            agents = LyingAgents(self.agents, history, s.game, s.horizon, columns.x_names, s.seed)
            agents.set_lie(*self.lying)
            return agents

        return Loop(make_agents, columns.x_dim or 0, start, s, first_step)


def owners_agents(stream: Stream) -> list[Agent]:
    """One for each owner, linear in its inputs, their changes and the last two targets."""
    return [
        Agent(Lags(lags=2, changes=True), name=owner, inputs=places) for owner, places in check_owners(stream).items()
    ]


def forecasts(
    stream: Stream, agents: Sequence[Agent], lie: Lie = LIES[0], liars: Sequence[int] = (), masked: bool = False
) -> np.ndarray:
    """Of a federation of these agents, (steps, y_dim); those at `liars` lie."""
    steps, y_dim = stream.targets.shape
    factory = _Factory(agents, game=JointGame(), mixing=ADAPTIVE, horizon=1, season=None, seed=0)
    factory.lying = lie, tuple(liars), steps, masked
    federation = Federation.over(
        factory, x_dim=stream.inputs.shape[1], y_dim=y_dim, start=stream.start, coverages=(), history=0
    )
    return federation.replay(stream.inputs, stream.targets).forecasts


def error(stream: Stream, found: np.ndarray, warmup: float = 0.1) -> float:
    """Mean squared error after the first tenth of the rows; each target in units of its own usual change."""
    first = int(warmup * len(found))
    known = np.vstack([stream.start, stream.targets[:-1]])
    usual = ((stream.targets - known)[first:] ** 2).mean(axis=0)
    return float((((found - stream.targets)[first:] ** 2).mean(axis=0) / usual).mean())


def five_owners(correlation: float = 0.0, targets: int = 1, steps: int = 3000, seed: int = 2024) -> Stream:
    """Changes of each target are a sum over five owners' inputs, of which each knows one, and noise."""
    rng = seeds.generator(seed, "five owners")
    shared, own = rng.standard_normal((steps + 1, 1)), rng.standard_normal((steps + 1, OWNERS))
    inputs = np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own
    weights = np.array([[1.0, -1.0, 1.0, -1.0, 1.0], [1.0, 0.5, -1.0, 2.0, -0.5]])[:targets].T
    values = np.cumsum(inputs @ weights + 0.5 * rng.standard_normal((steps + 1, targets)), axis=0)
    owners = {f"owner {i + 1}": (i,) for i in range(OWNERS)}
    return Stream("five owners (simulated)", inputs[1:], values[1:], values[0], owners=owners)


def first_rows(stream: Stream, steps: int) -> Stream:
    return stream._replace(
        inputs=stream.inputs[:steps], targets=stream.targets[:steps], dates=stream.dates[:steps]
    )  # fmt: skip


def five_of(stream: Stream) -> Stream:
    """The last owners beyond the fifth as one."""
    names, places = list(stream.owners), list(stream.owners.values())
    last = tuple(place for each in places[OWNERS - 1 :] for place in each)
    names, places = [*names[: OWNERS - 1], " and ".join(names[OWNERS - 1 :])], [*places[: OWNERS - 1], last]
    owners = dict(zip(names, places, strict=True))
    return stream._replace(owners=owners)


STREAMS: dict[str, Callable[[], Stream]] = {
    "five owners, independent": five_owners,
    "five owners, correlated 0.5, two targets": lambda: five_owners(0.5, 2),
    "TMY3 temperature": lambda: five_of(tmy3("temperature")),
    "Air Quality CO, next hour": lambda: five_of(air_quality("CO", "next")),
    "Air Quality NOx, same hour": lambda: five_of(air_quality("NOx", "same")),
}
