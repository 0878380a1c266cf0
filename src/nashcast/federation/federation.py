"""A federation in this process, with river's verbs: predict_one, then learn_one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.agents.agent import Agent, checked_agents
from nashcast.agents.season import LONGEST_SEASON
from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.beginning import FIRST, MOST_WAITING, Row, Waiting, begin_again
from nashcast.federation.bounds import Bounds
from nashcast.federation.columns import Columns
from nashcast.federation.health import Health
from nashcast.federation.loop import Forecast, Loop, Scored, Settings
from nashcast.federation.objects import object_columns, objects_key, replay_inputs, split_objects
from nashcast.federation.records import Record, Replay, replayed
from nashcast.federation.rules import ADAPTIVE, mixture_of
from nashcast.federation.state_file import read_arrays, write_arrays
from nashcast.federation.table_verbs import TableVerbs
from nashcast.federation.trust import Trust
from nashcast.fields import Fields
from nashcast.games.joint import JointGame
from nashcast.intervals.intervals import COVERAGES
from nashcast.mixing.expert_rule import RuleFactory, rule_name


class Federation(TableVerbs):
    """Agents that forecast one stream together.

    agents: at least one `Agent`.   game: how they learn together, `JointGame()`, or None if each learns alone.
    mixing: how experts are weighed: "adaptive", or an expert rule by name (docs/explanation/mixing.md), or what
        makes one from (experts, y_dim): see docs/how-to/write-a-weight-rule.md.
    horizon: how many steps ahead to forecast.   y_dim: numbers in a target.
    season: its length in steps, if it is known; else it is looked for in the targets.
    start: the target before the first forecast, if there is one; else the first label is taken as it, and until then
        the forecast is 0.   seed: names everything random in the agents' noise.
    coverages: of the intervals that `interval` gives, none for no intervals.
    agent_intervals: whether every member has intervals of its own.   history: how many past steps `history` keeps.

    `predict_one(x)` forecasts the next targets and learns nothing; `learn_one(x, y)` reveals the next one. With y_dim 1
    targets are plain numbers; forecasts are too, or arrays over the horizon. An agent that fails sits the step out and
    comes back by itself: see `health`. Calls from several threads wait for each other.

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
        self._agents = checked_agents(agents)
        if game is not None and not isinstance(game, JointGame):
            raise InvalidInput("game", check.describe(game), "Pass nashcast.JointGame(…) or None.")
        if season is not None:
            check.integer("season", season, min=2, max=LONGEST_SEASON)
        H = check.integer("horizon", horizon, min=1, max=MOST_WAITING)
        if H > 1 and game is not None and game.window is not None:
            raise InvalidInput("horizon", f"{H} with a window", "Pass horizon=1, or JointGame() without a window.")
        self._settings = Settings(game, H, season, check.integer("seed", seed, min=0), mixture_of(mixing))
        self._mixing = rule_name(mixing)
        self._columns, self._objects = Columns(x_dim, y_dim), object_columns(self._agents)
        self._start = None if start is None else self._columns.read_target("start", start)
        self._coverages, self._agent_intervals = tuple(coverages), bool(agent_intervals)
        self._loop: Loop | None = None
        self._waiting, self._first_objects = Waiting(), []
        self._present: tuple[bytes, Forecast] | None = None
        self._last_weights: np.ndarray | None = None
        self.history: deque[Record] = deque(maxlen=check.integer("history", history, min=0))
        self._health, self._lock, self._bounds = Health(), threading.RLock(), self._new_bounds()

    def __repr__(self) -> str:
        names = [agent.name for agent in self._agents]
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        return f"Federation({shown}; horizon {self.horizon}, step {self.step})"

    def predict_one(self, x: Any, *, time: float = np.nan) -> Any:
        """The forecasts of the next targets, from x and all labels so far: (horizon, y_dim), without axes of length 1.

        time: seconds since an epoch, for encoders that ask for it.
        """
        with self._lock:
            x, objects = split_objects(x, self._objects)
            inputs = self._columns.read_input(x)
            if self._loop is None and self._start is None:
                return self._shown(np.zeros((self._settings.horizon, self.y_dim)))
            return self._shown(self._forecast(inputs, time, objects).forecast)

    def learn_one(self, x: Any, y: Any, *, time: float = np.nan) -> None:
        """The target that x was to forecast is revealed; None or NaN if it is not known (yet): see `learn_late`."""
        with self._lock:
            x, objects = split_objects(x, self._objects)
            inputs, target = self._columns.read_row(x, y)
            self._health.counts["missing labels"] += target is None
            if self._loop is None and self._start is None:
                self._waiting.add(Row(inputs, objects))
                if target is not None:
                    self._begin(target, self._waiting.steps)
                return
            said = self._forecast(inputs, time, objects)
            loop = self._begun()
            for member, reason in said.absent.items():
                self._health.absent(loop.members[member], reason)
            if self._bounds is not None:
                self._bounds.issue(self.step)
            self.history.append(Record(self.step, said.forecast[0].copy(), said.weights, target))
            for scored in loop.learn(target):
                self._score(scored)
            self._present, self._last_weights = None, said.weights
            if loop.history.length <= FIRST:
                self._first_objects.append(objects)
            if loop.history.length == FIRST:
                self._check_beginning(loop)

    def learn_late(self, step: int, y: Any) -> bool:
        """The target of an earlier step is revealed. Returns False if it teaches nothing: too long ago, or suspect."""
        with self._lock:
            target = self._columns.read_target("y", y)
            assert target is not None
            if not 0 <= check.integer("step", step, min=0) < self.step:
                raise InvalidInput("step", f"{step}", f"Pass a step before the present one, {self.step}.")
            self._health.counts["late labels"] += 1
            if self._loop is None:
                self._begin(target, step + 1)
                return True
            scored = self._loop.learn_late(step, target)
            self._present = None
            if scored is not None:
                self._score(scored)
            return scored is not None

    def replay(self, inputs: Any, targets: np.ndarray) -> Replay:
        """Forecast every target from its input, learning as it goes: the same as predict_one and learn_one in turn.

        inputs: (steps, x_dim), or rows with texts.   targets: (steps, y_dim), NaN in rows whose label is missing.
        """
        X = replay_inputs(inputs, self._objects)
        Y = check.shaped("targets", targets, (len(X), self.y_dim), "(steps, y_dim)")
        return replayed(self, X, Y, 1 + len(self._agents) + (self._settings.game is not None))

    def interval(self, coverage: float = 0.9, agent: str | None = None) -> tuple[Any, Any]:
        """Low and high round the forecasts whose targets are not known yet: the federation's, or one member's."""
        with self._lock:
            if self._bounds is None:
                raise NashcastError("this federation was made without intervals: pass coverages=(0.8, 0.9, 0.95).")
            if self._loop is None and self._start is None:
                middle, place = np.zeros((self._settings.horizon, self.y_dim)), None
            elif self._present is None:
                raise NashcastError("there is no forecast to put an interval round: call predict_one(x) first.")
            else:
                place = None if agent is None else self._member(agent)
                said = self._present[1]
                middle = said.forecast if place is None else said.own[place][None]
            low, high = self._bounds.around(coverage, middle, place)
            return self._shown(low, agent is not None), self._shown(high, agent is not None)

    def trust(self) -> list[Trust]:
        """Of each member: own error, weight, and what the federation would lose without it; see `Trust`."""
        with self._lock:
            loop = self._begun()
            inside = [True, *loop.included, *([True] if self._settings.game is not None else [])]
            weights = np.zeros(len(loop.members)) if self._last_weights is None else self._last_weights
            return loop.trust.report(loop.members, weights, np.array(inside))

    @property
    def y_dim(self) -> int:
        """How many numbers a target has."""
        return self._columns.y_dim

    @property
    def horizon(self) -> int:
        """How many steps ahead it forecasts."""
        return self._settings.horizon

    @property
    def step(self) -> int:
        """How many rows have been learnt, with or without a label."""
        return self._waiting.steps if self._loop is None else self._loop.history.step

    @property
    def members(self) -> list[str]:
        """Whose forecasts are mixed: persistence, the agents, and the joint game; once the stream has begun."""
        return [] if self._loop is None else list(self._loop.members)

    @property
    def season(self) -> int | None:
        """The length of the season it goes by at present, if any."""
        return None if self._loop is None else self._loop.history.season.length or None

    @property
    def weights(self) -> dict[str, float]:
        """How the last learnt forecast weighed each member, averaged over targets."""
        if self._loop is None or self._last_weights is None:
            return {}
        return dict(zip(self._loop.members, map(float, self._last_weights), strict=True))

    @property
    def present(self) -> Forecast | None:
        """What `predict_one` said last, until it is learnt: forecast, weights, members' own forecasts, absences."""
        return None if self._present is None else self._present[1]

    @property
    def health(self) -> dict[str, Any]:
        """Counters: steps, missing, late and suspect labels, missing inputs, absences and their last reasons."""
        return self._health.report(self.step, 0 if self._loop is None else self._loop.suspect_labels)

    def save(self, path: str | Path) -> None:
        """Write all that has been learnt to one file, never a pickle. `load` it into a federation made the same way."""
        from nashcast.federation.state import saved

        with self._lock:
            write_arrays(path, *saved(self))

    def load(self, path: str | Path) -> None:
        """Continue where `save` left off, bit for bit. Changes nothing unless it succeeds."""
        from nashcast.federation.state import restored

        with self._lock:
            arrays, about = read_arrays(path)
            self.__dict__.update(restored(self, Fields(arrays), about))

    def _shown(self, forecast: np.ndarray, one: bool = False) -> Any:
        return self._columns.show(forecast[0] if one or self._settings.horizon == 1 else forecast)

    def _forecast(self, x: np.ndarray, time: float, objects: Mapping[str, Any]) -> Forecast:
        if self._loop is None:
            assert self._start is not None
            self._begin(self._start, 0)
        key = x.tobytes() + objects_key(objects)
        if self._present is None or self._present[0] != key:
            self._present = key, self._begun().forecast(x, time, objects)
            if self._bounds is not None:
                self._bounds.expect(self._present[1].distance)
        return self._present[1]

    def _begin(self, start: np.ndarray, first_step: int) -> None:
        """The stream begins with its first known target. Inputs that came since are forecast from, without a label."""
        loop = self._new_loop(start, first_step)
        for row in self._waiting.since(first_step):
            loop.forecast(row.x, objects=row.objects)
            loop.learn(None)
        self._loop, self._waiting, self._bounds = loop, Waiting(), self._new_bounds(loop.gives_quantiles)

    def _check_beginning(self, loop: Loop) -> None:
        """Begin again without wild labels, if there are any among the first ones."""
        again = begin_again(loop, self._first_objects, self._new_loop)
        if again is not None:
            (self._loop, scored), self._bounds = again, self._new_bounds(again[0].gives_quantiles)
            for each in scored:
                self._score(each)
        self._first_objects = []

    def _begun(self) -> Loop:
        if self._loop is None:
            raise NashcastError("the stream has not begun: no target is known yet.")
        return self._loop

    def _member(self, name: str) -> int:
        members = self._begun().members
        if name not in members:
            raise InvalidInput("agent", repr(name), f"Pass one of {', '.join(members)}.")
        return members.index(name)

    def _new_loop(self, start: np.ndarray, first_step: int) -> Loop:
        columns = self._columns
        return Loop(self._agents, columns.x_dim or 0, start, self._settings, columns.x_names, first_step)

    def _new_bounds(self, told: bool = False) -> Bounds | None:
        if not self._coverages:
            return None
        members = 2 + len(self._agents) if self._agent_intervals else 0
        return Bounds(self._coverages, self.y_dim, self._settings.horizon, members, told)

    def _score(self, scored: Scored) -> None:
        if self._bounds is not None:
            self._bounds.learn(scored)
