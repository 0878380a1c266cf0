"""A federation in this process, with river's verbs: predict_one, then learn_one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.agents.agent import Agent
from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.forecast import Forecast, Scored
from nashcast.federation.incoming.columns import Columns
from nashcast.federation.incoming.objects import objects_key, replay_inputs, split_objects
from nashcast.federation.incoming.stream_start import FIRST, Row, Waiting
from nashcast.federation.loop_factory import JointLoopFactory, LoopFactory, StepLoop
from nashcast.federation.records import Record, Replay, replayed
from nashcast.federation.rules import ADAPTIVE
from nashcast.federation.saving.state_file import read_arrays, write_arrays
from nashcast.federation.table_verbs import TableVerbs
from nashcast.federation.views.bounds import Bounds
from nashcast.federation.views.health import Health
from nashcast.fields import Fields
from nashcast.games.joint import JointGame
from nashcast.games.lookback.game import Equilibrium
from nashcast.intervals.intervals import COVERAGES
from nashcast.mixing.expert_rule import RuleFactory


class Federation(TableVerbs):
    """Agents that forecast one stream together.

    agents: at least one `Agent`.   game: how they learn together, `JointGame()`, or None if each learns alone.
    mixing: how experts are weighed: "adaptive", or an expert rule by name (docs/explanation/mixing.md), or a function
        of (experts, y_dim) that makes one: see docs/how-to/write-a-weight-rule.md.
    horizon: how many steps ahead to forecast.   y_dim: numbers in a target.
    season: its length in steps, if it is known; else it is estimated from the targets.
    start: the target before the first forecast, if there is one; else the first label takes its place, and until then
        the forecast is 0.   seed: seeds the agents' noise.
    coverages: coverages of the intervals that `interval` gives; empty for no intervals.
    agent_intervals: whether every member has intervals of its own.   history: how many past steps `history` stores.

    `predict_one(x)` forecasts the next targets and learns nothing; `learn_one(x, y)` reveals the next one. With y_dim 1
    targets are plain numbers; forecasts are too, or arrays over the horizon. An agent that fails sits the step out and
    comes back by itself: see `health`. Calls from several threads are serialised.

    >>> import nashcast as nc
    >>> federation = nc.Federation([nc.Agent(nc.encoders.Trend()), nc.Agent(nc.encoders.Seasonal())])
    >>> for y in [1.0, 3.0, 2.0] * 20:
    ...     forecast = federation.predict_one(None)
    ...     federation.learn_one(None, y)
    >>> round(federation.predict_one(None), 3)
    1.0
    """

    def __init__(
        self,
        agents: Sequence[Agent],
        *,
        game: JointGame | None = JointGame(),  # noqa: B008 frozen
        mixing: str | RuleFactory = ADAPTIVE,
        horizon: int = 1,
        x_dim: int | None = None,
        y_dim: int = 1,
        season: int | None = None,
        start: Any = None,
        seed: int = 0,
        coverages: Sequence[float] = COVERAGES,
        agent_intervals: bool = False,
        history: int = 1000,
    ):
        factory = JointLoopFactory(agents, game=game, mixing=mixing, horizon=horizon, season=season, seed=seed)
        self._set_up(factory, x_dim, y_dim, start, tuple(coverages), bool(agent_intervals), history)

    @classmethod
    def over(
        cls,
        factory: LoopFactory,
        *,
        x_dim: int | None = None,
        y_dim: int = 1,
        start: Any = None,
        coverages: Sequence[float] = COVERAGES,
        agent_intervals: bool = False,
        history: int = 1000,
        on_learnt: Callable[[], None] = lambda: None,
    ) -> Federation:
        """A federation whose steps another loop takes: see `paper_federation`, which makes one.

        factory: makes the loop.   on_learnt: called after each row and late label.   The rest as in `Federation`.
        """
        federation = cls.__new__(cls)
        federation._set_up(factory, x_dim, y_dim, start, tuple(coverages), bool(agent_intervals), history)
        federation._on_learnt = on_learnt
        return federation

    def _set_up(
        self, factory: LoopFactory, x_dim, y_dim, start, coverages: tuple[float, ...], agent_intervals: bool, history
    ) -> None:
        self._factory, self._columns = factory, Columns(x_dim, y_dim)
        self._start = None if start is None else self._columns.read_target("start", start)
        self._coverages, self._agent_intervals = coverages, agent_intervals
        self._loop: StepLoop | None = None
        self._waiting = Waiting()
        self._last_objects: deque[Mapping[str, Any]] = deque(maxlen=FIRST)
        self._present: tuple[bytes, Forecast] | None = None
        self._last_weights: np.ndarray | None = None
        self._last_game: Equilibrium | None = None
        self.history: deque[Record] = deque(maxlen=check.integer("history", history, min=0))
        self._health, self._lock, self._bounds = Health(), threading.RLock(), self._new_bounds()
        self._on_learnt: Callable[[], None] = lambda: None

    def __repr__(self) -> str:
        names = self._factory.names
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        return f"Federation({shown}; horizon {self.horizon}, step {self.step})"

    def predict_one(self, x: Any, *, time: float = np.nan) -> Any:
        """The forecasts of the next targets, from x and all labels so far: (horizon, y_dim), without axes of length 1.

        time: seconds since an epoch, for encoders that ask for it.
        """
        with self._lock:
            x, objects = split_objects(x, self._factory.objects)
            inputs = self._columns.read_input(x)
            if self._loop is None and self._start is None:
                return self._shown(np.zeros((self.horizon, self.y_dim)))
            return self._shown(self._forecast(inputs, time, objects).forecast)

    def learn_one(self, x: Any, y: Any, *, time: float = np.nan) -> None:
        """Learn the target that x was to forecast; None or NaN if it is not known (yet): see `learn_late`."""
        with self._lock:
            x, objects = split_objects(x, self._factory.objects)
            self._learn_row(*self._columns.read_row(x, y), time, objects)
            self._on_learnt()

    def learn_late(self, step: int, y: Any) -> bool:
        """Learn the target of an earlier step. Returns False if it is not learnt from: too long ago, or suspect."""
        with self._lock:
            target = self._columns.read_target("y", y)
            assert target is not None
            if not 0 <= check.integer("step", step, min=0) < self.step:
                raise InvalidInput("step", f"{step}", f"Pass a step before the present one, {self.step}.")
            self._health.counts["late labels"] += 1
            scored = []
            if self._loop is None:
                self._begin(target, step + 1)
            else:
                scored = self._loop.learn_late(step, target)
            self._present = None
            for each in scored or ():
                self._score(each)
            self._on_learnt()
            return scored is not None

    def replay(self, inputs: Any, targets: np.ndarray) -> Replay:
        """Forecast every target from its input, learning as it goes: the same as predict_one and learn_one in turn.

        inputs: (steps, x_dim), or rows with texts.   targets: (steps, y_dim), NaN in rows whose label is missing.
        """
        X = replay_inputs(inputs, self._factory.objects)
        Y = check.shaped("targets", targets, (len(X), self.y_dim), "(steps, y_dim)")
        return replayed(self, X, Y, self._factory.members)

    def for_replay(self) -> tuple[LoopFactory, np.ndarray | None]:
        """Its loop factory and its start, for an engine that replays series from the start."""
        if self._loop is not None:
            raise NashcastError("this federation has already learnt; replay needs one that has just been made.")
        return self._factory, self._start

    def discard_forecast(self) -> None:
        """Discard the last forecast of `predict_one`: the next call forecasts anew."""
        with self._lock:
            self._present = None

    def begin_anew(self, start: np.ndarray) -> None:
        """Forget everything learnt; the stream goes on at the present step. start: its last target, (y_dim,)."""
        with self._lock:
            self._begin(start, self.step)
            self._present, self._last_weights = None, None
            self._last_objects.clear()
            self._on_learnt()

    def save(self, path: str | Path) -> None:
        """Write all that has been learnt to one file, never a pickle. `load` it into a federation made the same way."""
        from nashcast.federation.saving.saved_state import saved

        with self._lock:
            write_arrays(path, *saved(self))

    def load(self, path: str | Path) -> None:
        """Continue where `save` left off, bit for bit. Changes nothing unless it succeeds."""
        from nashcast.federation.saving.saved_state import restored

        with self._lock:
            arrays, about = read_arrays(path)
            with self._factory.unchanged_if_refused(self._loop):
                self.__dict__.update(restored(self, Fields(arrays), about))

    def _learn_row(self, inputs: np.ndarray, target: np.ndarray | None, time: float, objects) -> None:
        self._health.counts["missing labels"] += target is None
        if self._loop is None and self._start is None:
            self._waiting.add(Row(inputs, objects))
            if target is not None:
                self._begin(target, self._waiting.steps)
            return
        present = self._forecast(inputs, time, objects)
        loop = self._begun()
        self._health.count(present, loop.members)
        if present.game is not None:
            self._last_game = present.game
        if self._bounds is not None:
            self._bounds.issue(self.step)
        self.history.append(Record(self.step, present.forecast[0].copy(), present.weights, target))
        for scored in loop.learn(target):
            self._score(scored)
        self._present, self._last_weights = None, present.weights
        self._last_objects.append(objects)
        self._check_beginning(loop)

    def _forecast(self, x: np.ndarray, time: float, objects: Mapping[str, Any]) -> Forecast:
        if self._loop is None:
            assert self._start is not None
            self._begin(self._start, 0)
        key = x.tobytes() + objects_key(objects)
        if self._present is None or self._present[0] != key:
            self._present = None  # if the next line fails, there is no present forecast
            self._present = key, self._begun().forecast(x, time, objects)
            if self._bounds is not None:
                self._bounds.expect(self._present[1].distance)
        return self._present[1]

    def _begin(self, start: np.ndarray, first_step: int) -> None:
        """The stream begins with its first known target. Inputs that came since are forecast from, without a label."""
        loop = self._factory.begin(self._columns, start, first_step)
        for row in self._waiting.since(first_step):
            loop.forecast(row.x, objects=row.objects)
            loop.learn(None)
        self._loop, self._waiting, self._bounds = loop, Waiting(), self._new_bounds(loop.gives_quantiles)

    def _check_beginning(self, loop: StepLoop) -> None:
        """Begin again without the outliers among the first labels, if there are any."""
        again = self._factory.begin_again(loop, self._last_objects, self._columns)
        if again is not None:
            (self._loop, scored), self._bounds = again, self._new_bounds(again[0].gives_quantiles)
            for each in scored:
                self._score(each)

    def _new_bounds(self, told: bool = False) -> Bounds | None:
        if not self._coverages:
            return None
        members = self._factory.members if self._agent_intervals else 0
        return Bounds(self._coverages, self.y_dim, self.horizon, members, told)

    def _score(self, scored: Scored) -> None:
        if self._bounds is not None:
            self._bounds.learn(scored)
