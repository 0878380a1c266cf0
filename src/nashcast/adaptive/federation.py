"""The default federation, with the verbs of `Federation`: predict_one, then learn_one."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.adaptive.decoding import FELL_BACK, PLAYED
from nashcast.adaptive.learning import relearn
from nashcast.adaptive.memory import (
    FALLBACKS,
    GAMES_HELD,
    GAMES_PLAYED,
    ROWS,
    SEASON,
    STEP,
    Memory,
    fresh_memory,
)
from nashcast.adaptive.plan import AGENTS, LONGEST_SEASON, make_plan, variant_names
from nashcast.adaptive.step import forecast_step, learn_step
from nashcast.agents.protocol import Answer, Participant
from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.algorithm import Step
from nashcast.federation.bounds import Bounded, Bounds
from nashcast.federation.columns import Columns, Forecast, Input, Target
from nashcast.federation.federation import Record, Replay, distinct
from nashcast.federation.state_file import read_arrays, write_arrays
from nashcast.intervals.intervals import COVERAGES

_BY_ROW = ("targets", "inputs", "taught")
NOT_FINITE = "the mixture is not finite"


class AdaptiveFederation(Bounded):
    """A federation with nothing to tune: seven kinds of agents in dozens of variants, mixed online.

    x_dim: numbers in an input, 0 if there are none (then x is None or empty).   y_dim: numbers in a target.
    agents: more of your own, any `Participant`; each is one more voice in the mixture.
    game: whether variants corrected by the prior-centred game are among them.
    season: its length in steps, if it is known; else it is looked for.
    start: the target before the first forecast, if there is one; else the first label is taken as it.
    seed: of the random features and the echo state.   history: how many past steps `history` keeps.
    coverages: of the intervals it can be asked for; agent_intervals: whether each agent has its own too.

    >>> import nashcast
    >>> federation = nashcast.default_federation(0)
    >>> for y in [1.0, 3.0, 2.0] * 10:
    ...     forecast = federation.predict_one(None)
    ...     federation.learn_one(None, y)
    >>> round(federation.predict_one(None), 3)
    1.0
    """

    def __init__(
        self,
        x_dim: int,
        y_dim: int = 1,
        *,
        agents: Sequence[Participant] = (),
        game: bool = True,
        season: int | None = None,
        start: Target | None = None,
        seed: int = 0,
        history: int = 1000,
        coverages: Sequence[float] = COVERAGES,
        agent_intervals: bool = False,
    ):
        super().__init__(check.integer("x_dim", x_dim, min=0), y_dim)
        self._outside = list(agents)
        if len({id(agent) for agent in self._outside}) < len(self._outside):
            raise InvalidInput("agents", "the same agent twice", "Make one agent for each place.")
        for i, agent in enumerate(self._outside):
            if not (hasattr(agent, "forecast") and hasattr(agent, "learn")):
                raise InvalidInput(f"agents[{i}]", check.describe(agent), "Pass nashcast.Agent(encoder, …).")
        length = 0 if season is None else check.integer("season", season, min=2)
        if length > LONGEST_SEASON:
            raise InvalidInput("season", f"{season}", f"Pass at most {LONGEST_SEASON} steps, or None to look for it.")
        self._game, self._seed = bool(game), seed
        self._plan = make_plan(x_dim, y_dim, len(self._outside), self._game, length, seed)
        self._agent_intervals = bool(agent_intervals)
        own = len(AGENTS) + len(self._outside) if agent_intervals else 0
        self._bounds = Bounds(coverages, self._y_dim, own) if len(coverages) else None
        self._start = None if start is None else self._columns.read_target("start", start)
        self._keys = [seeds.key(seed, "agent", i) for i in range(len(self._outside))]
        self._names: list[str] = list(AGENTS)
        self.history: deque[Record] = deque(maxlen=check.integer("history", history, min=0))
        self._memory: Memory | None = None
        self._pending: bytes | None = None
        # What was said at the last step, if it had no label.
        self._unscored: tuple[np.ndarray, np.ndarray | None, set[int]] | None = None
        self._absent: dict[int, str] = {}
        self._answers = np.zeros((len(self._outside), y_dim))
        self._here = np.zeros(len(self._outside), dtype=bool)
        self._absences: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def predict_one(self, x: Input | None) -> Forecast:
        """The forecast of the next target, from x and all labels so far. Missing inputs are taken as they last were."""
        inputs = self._columns.read_input(x)
        if self._memory is None and self._start is None:
            return self._columns.show(np.zeros(self._y_dim))
        return self._columns.show(self._step(inputs).forecast.copy())

    def learn_one(self, x: Input | None, y: Target | None) -> None:
        """The target that x was to forecast is revealed; None or NaN if it is not known (yet): see `learn_late`."""
        inputs, target = self._columns.read_row(x, y)
        if self._memory is None and self._start is None:
            if target is not None:
                self._begin(target)
            return
        memory = self._step(inputs)
        self._counts["missing labels"] += target is None
        self._counts["missing inputs"] += not check.all_finite(inputs)
        for i, reason in self._absent.items():
            self._absences[self._names[len(AGENTS) + i]] += 1
            self._reasons[self._names[len(AGENTS) + i]] = reason
        for agent in self._outside:
            agent.learn(target)
        own = self._own_forecasts(memory) if self._agent_intervals else None
        said = (memory.forecast.copy(), own, {len(AGENTS) + i for i in self._absent})
        if target is not None and self._bounds is not None:
            self._bounds.learn(*said, target)
        self._unscored = said if target is None else None
        weights = self._of_agents(memory.weights)
        self.history.append(Record(int(memory.counts[STEP]), memory.forecast.copy(), weights, target))
        learn_step(self._plan, memory, memory.forecast if target is None else target, target is not None)
        self._pending = None

    def learn_late(self, step: int, y: Target) -> bool:
        """The target of an earlier step is revealed, and every memory learnt again with it. False: too long ago.

        The weights of that time are not judged again.
        """
        target, memory = self._columns.read_target("y", y), self._begun()
        assert target is not None
        now = int(memory.counts[STEP])
        if check.integer("step", step, min=0) >= now:
            raise InvalidInput("step", f"{step}", f"Pass a step before the present one, {now}.")
        ago = now - step
        if ago == 1 and self._unscored is not None and self._bounds is not None:
            self._bounds.learn(*self._unscored, target)
            self._unscored = None
        self._pending = None
        self._counts["late labels"] += 1
        for agent in self._outside:
            agent.learn_late(ago, target)
        row = int(memory.counts[ROWS]) - ago
        if row < 1:
            return False
        memory.targets[row], memory.taught[row - 1] = target, True
        relearn(self._plan, memory, 0)
        return True

    def replay(self, inputs: np.ndarray, targets: np.ndarray) -> Replay:
        """Forecast every target from its input, learning as it goes; each agent's own forecast beside it.

        inputs: (steps, x_dim).   targets: (steps, y_dim), rows with NaN are labels that are missing.
        """
        X = check.shaped("inputs", inputs, (len(inputs), self._x_dim), "(steps, x_dim)")
        Y = check.shaped("targets", targets, (len(X), self._y_dim), "(steps, y_dim)")
        shape = (len(X), len(AGENTS) + len(self._outside))
        forecasts, weights, own = np.zeros(Y.shape), np.zeros(shape), np.zeros((*shape, self._y_dim))
        for t, (x, y) in enumerate(zip(X, Y, strict=True)):
            if self._memory is not None or self._start is not None:
                memory = self._step(self._columns.read_input(x))
                forecasts[t], weights[t] = memory.forecast, self._of_agents(memory.weights)
                own[t] = self._own_forecasts(memory)
            self.learn_one(x, y)
        with np.errstate(over="ignore"):
            return Replay(forecasts, weights, own, float(np.nanmean((forecasts - Y) ** 2)))

    @property
    def step(self) -> int:
        """How many targets have been forecast and passed."""
        return 0 if self._memory is None else int(self._memory.counts[STEP])

    @property
    def agents(self) -> list[str]:
        """The agents' names; those of your own once the stream has begun."""
        return list(self._names)

    @property
    def weights(self) -> dict[str, float]:
        """How the last learnt forecast weighed each agent, all its variants together, averaged over targets."""
        if self._memory is None or self.step == 0:
            return {}
        return dict(zip(self._names, map(float, self._of_agents(self._memory.last_weights)), strict=True))

    @property
    def variant_weights(self) -> dict[str, float]:
        """The same, variant by variant."""
        if self._memory is None or self.step == 0:
            return {}
        return dict(zip(self._variants(), map(float, self._memory.last_weights.mean(axis=0)), strict=True))

    @property
    def variant_forecasts(self) -> dict[str, np.ndarray]:
        """What each variant says of the target that is not known yet, (y_dim,); empty before `predict_one`."""
        if self._memory is None or self._pending is None:
            return {}
        return dict(zip(self._variants(), self._memory.forecasts.T.copy(), strict=True))

    @property
    def present(self) -> Step | None:
        """The step that `predict_one` forecast and that is not learnt yet. Its games are not among what it holds."""
        if self._pending is None or self._memory is None:
            return None
        memory = self._memory
        absent = {len(AGENTS) + i: reason for i, reason in self._absent.items()}
        played, fell_back = memory.happened[PLAYED] > 0, NOT_FINITE if memory.happened[FELL_BACK] else ""
        own = self._own_forecasts(memory)
        return Step(memory.forecast.copy(), self._of_agents(memory.weights), own, absent, None, bool(played), fell_back)

    @property
    def season(self) -> int | None:
        """The season's length it goes by at present, if any."""
        return None if self._memory is None else int(self._memory.counts[SEASON]) or None

    @property
    def health(self) -> dict:
        """Counters: steps, games, what the guard held back, missing and late labels, absences and their reasons."""
        counts = np.zeros(9, dtype=int) if self._memory is None else self._memory.counts
        cuts = [0] * len(self._names) if self._memory is None else self._memory.cuts.tolist()
        kept = {name: self._counts[name] for name in ("missing labels", "late labels", "missing inputs")}
        return {
            "steps": self.step,
            "games": int(counts[GAMES_PLAYED]),
            "corrections held back": int(counts[GAMES_HELD]),
            "forecasts held back": dict(zip(self._names, cuts, strict=True)),
            "fallbacks": int(counts[FALLBACKS]),
            **kept,
            "absences": dict(self._absences),
            "reasons": dict(self._reasons),
        }

    def save(self, path: str | Path) -> None:
        """Write all that has been learnt to one file, never a pickle. `load` it into a federation made the same way."""
        memory = self._begun()
        rows = int(memory.counts[ROWS])
        arrays = {name: a[:rows] if name in _BY_ROW else a for name, a in memory._asdict().items()}
        for i, agent in enumerate(self._outside):
            arrays |= {f"agent.{i}.{name}": value for name, value in agent.save().items()}
        if self._bounds is not None:
            arrays |= {f"intervals.{name}": value for name, value in self._bounds.save().items()}
        if self._unscored is not None:
            forecast, own, absent = self._unscored
            arrays |= {"unscored.forecast": forecast, "unscored.absent": np.array(sorted(absent), dtype=np.int64)}
            arrays |= {} if own is None else {"unscored.own": own}
        write_arrays(path, arrays, {**self._fingerprint(), "columns": self._columns.save()})

    def load(self, path: str | Path) -> None:
        """Continue where `save` left off, bit for bit."""
        arrays, fingerprint = read_arrays(path)
        columns = Columns(self._x_dim, self._y_dim)
        saved = fingerprint.pop("columns", None)
        self._begin(np.zeros(self._y_dim))
        mine = self._fingerprint()
        if (
            fingerprint != {key: value for key, value in mine.items() if key in fingerprint}
            or "kind" not in fingerprint
        ):
            self._memory = None
            remedy = "Load it into a federation made with the same agents and settings."
            raise InvalidInput("path", f"the state of another federation ({fingerprint})", remedy)
        columns.restore(saved)
        self._columns, self._pending = columns, None
        assert self._memory is not None
        for name, now in self._memory._asdict().items():
            saved = arrays[name]
            now[: len(saved)] = saved
        for i, agent in enumerate(self._outside):
            prefix = f"agent.{i}."
            agent.restore({name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)})
        saved = {name.removeprefix("intervals."): a for name, a in arrays.items() if name.startswith("intervals.")}
        if self._bounds is not None and saved:  # one that was saved without intervals begins with them
            self._bounds.restore(saved)
        self._unscored = None
        if "unscored.forecast" in arrays:
            absent = set(arrays["unscored.absent"].tolist())
            self._unscored = (arrays["unscored.forecast"], arrays.get("unscored.own"), absent)

    def _variants(self) -> list[str]:
        return variant_names(self._game) + self._names[len(AGENTS) :]

    def _named(self) -> list[str]:
        return self._names

    def _open(self) -> tuple[np.ndarray, np.ndarray] | None:
        if self._memory is None and self._start is None:
            return np.zeros(self._y_dim), np.zeros((len(self._names) + len(self._outside), self._y_dim))
        if self._pending is None or self._memory is None:
            return None
        return self._memory.forecast, self._own_forecasts(self._memory)

    def _fingerprint(self) -> dict:
        return {
            "kind": "default federation",
            "agents": self._names,
            "x_dim": self._x_dim,
            "y_dim": self._y_dim,
            "game": self._game,
            "season": self._plan.season,
            "seed": self._seed,
        }

    def _begin(self, target: np.ndarray) -> None:
        self._memory = fresh_memory(self._plan, self._x_dim, self._y_dim, target)
        pairs = zip(self._outside, self._keys, strict=True)
        hellos = distinct([agent.begin(self._x_dim, target, key, 0) for agent, key in pairs])
        self._names = [*AGENTS, *(hello.name for hello in hellos)]

    def _begun(self) -> Memory:
        if self._memory is None:
            raise NashcastError("the stream has not begun: nothing is learnt yet.")
        return self._memory

    def _step(self, x: np.ndarray) -> Memory:
        if self._memory is None:
            assert self._start is not None
            self._begin(self._start)
        assert self._memory is not None
        if self._pending is None or self._pending != x.tobytes():
            self._absent = {}
            for i, agent in enumerate(self._outside):
                answer: Answer = agent.forecast(x)
                self._here[i] = answer.forecast is not None and check.all_finite(answer.forecast)
                if self._here[i]:
                    self._answers[i] = answer.forecast
                else:
                    self._absent[i] = answer.reason or "its forecast is not finite"
            forecast_step(self._plan, self._memory, x, self._answers, self._here)
            self._pending = x.tobytes()
        return self._memory

    def _of_agents(self, weights: np.ndarray) -> np.ndarray:
        return np.bincount(self._plan.agent, weights.mean(axis=0), minlength=len(self._names))

    def _own_forecasts(self, memory: Memory) -> np.ndarray:
        """Each agent's: its variants as the federation weighs them, or alike where it does not."""
        prior = np.exp(self._plan.log_prior)
        own = np.empty((len(self._names), self._y_dim))
        for k in range(self._y_dim):
            for shares in (prior, memory.weights[k]):
                total = np.bincount(self._plan.agent, shares, minlength=len(self._names))
                said = np.bincount(self._plan.agent, shares * memory.forecasts[k], minlength=len(self._names))
                np.divide(said, total, out=own[:, k], where=total > 0.0)
        return own
