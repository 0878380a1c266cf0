"""The federation behind the service, entry by entry: its learnt state, its forecasts and their scores."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import NashcastError
from nashcast.federation.saving.state_file import read_arrays, write_arrays
from nashcast.federation.views.trust import Trust
from nashcast.games.lookback.game import Equilibrium
from nashcast.intervals import Intervals
from nashcast.service.events.watch import Watch
from nashcast.service.journal.entries import LABEL, Entry, Outcome
from nashcast.service.streams.settings import ServeSettings
from nashcast.service.workers.factory import Made
from nashcast.service.workers.scores import BESIDE, FIRST_AGENT, MIXTURE, PERSISTENCE, Scores

# Unlabelled forecasts that wait for a late label; older ones are no longer scored.
WAITING = 1000
# Parts of the reasons for a late agent, local or remote, and for one that is not connected.
_LATE, _AWAY = ("deadline", "no answer within"), "not connected"
# Consecutive absences after which an agent is called gone rather than late or benched.
GONE_AFTER = 3
# Health counters of the paper's federation and of the joint one.
_PAPER_COUNTS = ("games", "fallbacks", "missing labels", "late labels")
_JOINT_COUNTS = ("missing labels", "late labels", "suspect labels")


class AgentView(NamedTuple):
    """state: in, late (its answer came after the deadline), benched (it failed) or gone (for several steps now)."""

    name: str
    weight: float
    error: float
    state: str
    last_seen: float | None
    absences: int
    reason: str | None


class Live:
    """Call `learn` with an entry, then `predict`, each once. Between the two calls the learnt state can be saved."""

    def __init__(self, made: Made, serve: ServeSettings):
        self._made, self._serve = made, serve
        self._federation = made.make()
        self._horizon = self._federation.horizon
        self._beside = None if made.beside is None else made.beside()
        self._bounds = Intervals(serve.y_dim, serve.coverages)
        self.scores = Scores(len(made.names), serve.window, len(serve.coverages))
        self.watch = Watch(serve.coverages)
        self.step: int | None = None
        self.first: int | None = None
        self.outcome: Outcome | None = None
        self.fell_back = ""  # why some or all agents used the greedy step in the present one
        self._seq, self._at = 0, 0.0
        self._x, self._time = np.empty(0), np.nan
        self._time_step = np.nan  # between the last two observations that had timestamps
        self._last_label = np.empty(0)
        self._last_label_step = -1
        # Forecasts of unlabelled steps, (columns, y_dim): of the mixture, persistence, no game, members;
        # then low and high of each coverage.
        self._waiting: OrderedDict[int, np.ndarray] = OrderedDict()
        self._certified: tuple[Equilibrium, float, float] | None = None
        self._absences = np.zeros(len(made.names), dtype=np.int64)
        self._missed = np.zeros(len(made.names), dtype=np.int64)
        self._seen = np.full(len(made.names), np.nan)

    def learn(self, entry: Entry) -> None:
        """An observation reveals its step's target and brings the next input; a label reveals an earlier target."""
        self._seq, self._at = entry.seq, entry.at
        if entry.kind == LABEL:
            self._learn_label(entry)
            return
        x, y = entry.x, entry.y
        assert x is not None
        if self.first is None:
            self.first = entry.step
        asked, time = (self._x, self._time) if len(self._x) else (x, np.nan)
        for federation in self._both():
            federation.learn_one(asked, y, time=time)
        if self.outcome is not None:
            self._note_presence(self.outcome, entry.at)
            self._waiting[entry.step] = self._columns(self.outcome)
        if y is not None:
            self._score(entry.step, y)
        while len(self._waiting) > WAITING:
            self._waiting.popitem(last=False)
        self.step, self._x = entry.step, x
        known = np.nan if entry.time is None else entry.time
        if known > self._time:
            self._time_step = known - self._time
        self._time = known

    @property
    def at(self) -> float:
        """When the last entry was accepted."""
        return self._at

    @property
    def times(self) -> list[float] | None:
        """Timestamps of the forecast steps; None if observations have none."""
        step = self._serve.time_step or self._time_step
        if np.isnan(self._time) or np.isnan(step):
            return None
        return [self._time + (h + 1) * step for h in range(self._horizon)]

    def predict(self) -> Outcome:
        """The forecast of the step after the last one learnt."""
        assert self.step is not None
        self._federation.predict_one(self._x, time=self._time)
        step = self._federation.present
        assert step is not None
        beside = None
        if self._beside is not None:
            self._beside.predict_one(self._x, time=self._time)
            other = self._beside.present
            beside = None if other is None else other.forecast[0]
        forecast, ahead, ahead_bounds = step.forecast[0], None, None
        if not check.all_finite(step.forecast):
            raise NashcastError(f"the forecast of step {self.step + 1} is not finite: {step.forecast.tolist()}.")
        if self._horizon == 1:
            bounds = self._bounds.bounds(forecast)
        else:
            # (coverages, 2, horizon, y_dim) -> (horizon, coverages, 2, y_dim)
            every = np.moveaxis(self._federation.bounds_now(), 2, 0)
            bounds, ahead, ahead_bounds = every[0].copy(), step.forecast[1:].copy(), every[1:].copy()
        absent = {self._made.names[i]: reason for i, reason in step.absent.items()}
        self.fell_back = step.fell_back
        self.outcome = Outcome(
            self.step + 1, self._seq, forecast, bounds, step.weights, step.own,
            beside, absent, step.played, bool(step.fell_back), ahead, ahead_bounds,
        )  # fmt: skip
        return self.outcome

    def states(self) -> dict[str, tuple[str, str | None]]:
        """State and reason of each agent at the present step; empty before a forecast."""
        absent = None if self.outcome is None else self.outcome.absent
        if absent is None:
            return {}
        # This step's absence counts before it is learnt.
        return {
            name: (agent_state(absent.get(name), int(self._missed[i]) + (name in absent)), absent.get(name))
            for i, name in enumerate(self._made.names)
        }

    def agents(self) -> list[AgentView]:
        errors, states = self.scores.recent()[FIRST_AGENT:], self.states()
        found = []
        for i, name in enumerate(self._made.names):
            weight = 0.0 if self.outcome is None else float(self.outcome.weights[i])
            state, reason = states.get(name, ("in", None))
            seen = None if np.isnan(self._seen[i]) else float(self._seen[i])
            if reason is None and self.outcome is not None:
                seen = self._at
            found.append(AgentView(name, weight, float(errors[i]), state, seen, int(self._absences[i]), reason))
        return found

    def trust(self) -> list[Trust]:
        """Trust in each member, in order; empty before the first known target."""
        return [] if self._federation.loop is None else self._federation.trust()

    def counts(self) -> dict[str, int]:
        """Health counters since the stream began."""
        now = self._federation.health
        return {name: now[name] for name in (_PAPER_COUNTS if self._made.paper else _JOINT_COUNTS)}

    def certificate(self) -> tuple[float, float] | None:
        """Largest gain of any agent by deviating in the last game, and the worst condition number in it."""
        said = self._federation.present
        game = None if said is None else said.game
        if game is None:
            return None
        from nashcast.games.certificate import certify

        # Several readers may ask about the same step.
        if self._certified is None or self._certified[0] is not game:
            self._certified = game, certify(game).worst, float(np.max(game.conditions))
        return self._certified[1:]

    def save(self, folder: Path) -> None:
        """Write the learnt state as files into a folder. Call after `learn` and before `predict`."""
        for name, federation in self._named():
            federation.save(folder / name)
        waiting = list(self._waiting.items())
        columns = FIRST_AGENT + len(self._made.names) + 2 * len(self._serve.coverages)
        arrays = {
            "x": self._x, "last_label": self._last_label, "absences": self._absences, "missed": self._missed,
            "seen": self._seen, "waiting.steps": np.array([step for step, _ in waiting], dtype=np.int64),
            "waiting.forecasts": np.array([rows for _, rows in waiting]).reshape(-1, columns, self._serve.y_dim),
            **{f"bounds.{name}": np.asarray(value) for name, value in self._bounds.save().items()},
            **{f"scores.{name}": value for name, value in self.scores.save().items()},
            **{f"watch.{name}": value for name, value in self.watch.save().items()},
        }  # fmt: skip
        about = {
            "step": self.step, "first": self.first, "seq": self._seq, "at": self._at, "agents": self._made.names,
            "last_label_step": self._last_label_step,
            "time": _or_none(self._time), "time_step": _or_none(self._time_step),
        }  # fmt: skip
        write_arrays(folder / "service.state", arrays, about)

    def load(self, folder: Path) -> None:
        """Restore the state written by `save`; call `predict` next."""
        for name, federation in self._named():
            federation.load(folder / name)
        arrays, about = read_arrays(folder / "service.state")
        self.step, self.first, self._seq, self._at = (about[name] for name in ("step", "first", "seq", "at"))
        self._last_label_step = about["last_label_step"]
        self._time, self._time_step = (_or_nan(about.get(name)) for name in ("time", "time_step"))
        self._x, self._last_label = arrays["x"], arrays["last_label"]
        self._absences, self._missed, self._seen = (arrays[name] for name in ("absences", "missed", "seen"))
        waiting = zip(arrays["waiting.steps"], arrays["waiting.forecasts"], strict=True)
        self._waiting = OrderedDict((int(step), rows) for step, rows in waiting)
        self._bounds.restore(_part(arrays, "bounds."))
        self.scores.restore(_part(arrays, "scores."))
        if "watch.numbers" in arrays:  # snapshots written before 0.2 have none
            self.watch.restore(_part(arrays, "watch."))

    def _learn_label(self, entry: Entry) -> None:
        assert self.first is not None
        assert entry.y is not None
        for federation in self._both():
            federation.learn_late(entry.step - self.first, entry.y)
        self._score(entry.step, entry.y)

    def _score(self, step: int, y: np.ndarray) -> None:
        columns = self._waiting.pop(step, None)
        if columns is not None:
            self._bounds.learn(columns[0], y)
            self.watch.learn(*self.scores.add(y, columns))
            if self.watch.due:
                self.watch.cover(self.scores.covered(), self._serve.window)
        if step > self._last_label_step:
            self._last_label, self._last_label_step = y, step

    def _columns(self, outcome: Outcome) -> np.ndarray:
        agents = FIRST_AGENT + len(self._made.names)
        columns = np.empty((agents + 2 * len(self._serve.coverages), self._serve.y_dim))
        columns[MIXTURE], columns[PERSISTENCE] = outcome.forecast, self._last_label
        columns[BESIDE] = np.nan if outcome.beside is None else outcome.beside
        columns[FIRST_AGENT:agents] = outcome.agents
        columns[agents:] = outcome.bounds.reshape(-1, self._serve.y_dim)
        for name in outcome.absent:
            columns[FIRST_AGENT + self._made.names.index(name)] = np.nan
        return columns

    def _note_presence(self, outcome: Outcome, at: float) -> None:
        away = np.array([name in outcome.absent for name in self._made.names])
        self._absences += away
        self._missed = (self._missed + 1) * away
        self._seen[~away] = at

    def _both(self):
        return [federation for _, federation in self._named()]

    def _named(self):
        yield "federation.state", self._federation
        if self._beside is not None:
            yield "beside.state", self._beside


def agent_state(reason: str | None, missed: int) -> str:
    if reason is None:
        return "in"
    if missed >= GONE_AFTER or reason == _AWAY:
        return "gone"
    return "late" if any(words in reason for words in _LATE) else "benched"


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _part(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
