"""A federation in this process, with river's verbs: predict_one, then learn_one."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.agents.arrangement import distinct
from nashcast.agents.protocol import Hello, Participant
from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.algorithm import (
    LookbackGame,
    ServerState,
    Settings,
    Step,
    advance,
    algorithm_one,
    first_state,
    game_due,
)
from nashcast.federation.columns import Columns, Forecast, Input, Target
from nashcast.federation.mixing import PAPER, mixing_rule
from nashcast.federation.paper_bounds import PaperBounded, PaperBounds
from nashcast.federation.placements import NEEDED, Window
from nashcast.federation.post import AgentLost, Message, Post
from nashcast.federation.records import Record, Replay
from nashcast.federation.state_file import read_arrays, write_arrays
from nashcast.games.certificate import Certificate, certify
from nashcast.games.lookback.game import Equilibrium
from nashcast.intervals.intervals import COVERAGES
from nashcast.mixing.expert_rule import AggregationRule, RuleFactory, rule_name

# Different reasons to fall back that are counted; the others are counted together.
_MOST_REASONS = 20


class PaperFederation(PaperBounded):
    r"""Agents that forecast one stream together.

    agents: at least one.   game: when to play, or None for greedy agents only; any object with `lookback`, `every` and
        `solve` (docs/how-to/write-a-game.md).
    anchored: without a game, agents start each step from the last target.
    ridge: $\kappa > 0$ and budget: $\eta$ of the mixture weights.   y_dim: numbers in a target.
    mixing: the rule that weighs the agents: "paper", or one with memory: "windowed", "exponential", "fixed-share",
        "boa", "ml-poly", "ridge", "log-score" (docs/explanation/mixing.md); or what makes a rule of your own from
        (experts, y_dim), see docs/how-to/write-a-weight-rule.md.
    coverages: of the intervals that `interval` gives, none for no intervals.
    agent_intervals: whether every agent has intervals of its own.
    start: the target before the first forecast, if there is one; else the first label is taken as it, and until then
        the forecast is 0.   seed: of everything random in the agents' noise.
    deadline: seconds an agent may take to forecast before the step goes on without it.
    history: how many past steps `history` keeps.   transcript: whether `transcript` keeps every message.

    `predict_one(x)` forecasts the next target and learns nothing; `learn_one(x, y)` reveals it. With y_dim 1 targets
    and forecasts are plain numbers. An agent that fails sits the step out and comes back by itself: see `health`.
    """

    # Who carries the messages; agents elsewhere need another one.
    _make_post = Post

    def __init__(
        self,
        agents: Sequence[Participant],
        *,
        game: LookbackGame | None = LookbackGame(),  # noqa: B008 frozen
        anchored: bool = False,
        ridge: float = 1.0,
        budget: float = 1.0,
        y_dim: int = 1,
        start: Target | None = None,
        seed: int = 0,
        deadline: float | None = None,
        history: int = 1000,
        transcript: bool = False,
        mixing: str | RuleFactory = PAPER,
        coverages: Sequence[float] = COVERAGES,
        agent_intervals: bool = False,
    ):
        if not isinstance(agents, Sequence) or not agents:
            raise InvalidInput("agents", check.describe(agents), "Pass a list of at least one agent.")
        if len({id(agent) for agent in agents}) < len(agents):
            raise InvalidInput("agents", "the same agent twice", "Make one agent for each place.")
        for i, agent in enumerate(agents):
            if not (hasattr(agent, "forecast") and hasattr(agent, "learn")):
                raise InvalidInput(f"agents[{i}]", check.describe(agent), "Pass nashcast.Agent(encoder, …).")
        if game is not None and not isinstance(game, LookbackGame):
            game = _game_of(game)
        for i, agent in enumerate(agents):
            if game is not None and game.memory and not hasattr(agent, "recall"):
                remedy = "Pass agents that can `recall` their decoder, in this process, or LookbackGame(memory=False)."
                raise InvalidInput(f"agents[{i}]", check.describe(agent), remedy)
        if anchored and game is not None:
            raise InvalidInput("anchored", "True with a game", "Pass game=None: the game sets where agents start.")
        self._agents = list(agents)
        kappa, eta = check.number("ridge", ridge, above=0.0), check.number("budget", budget)
        super().__init__(None, y_dim)
        self._mixing, rule = rule_name(mixing), mixing_rule(mixing, len(agents), self._y_dim, kappa, eta)
        self._settings = Settings(game, bool(anchored), kappa, eta, rule=rule)
        own = len(agents) if agent_intervals else 0
        self._bounds = PaperBounds(coverages, self._y_dim, own) if len(coverages) else None
        self._start = None if start is None else self._columns.read_target("start", start)
        self._keys = [seeds.key(seed, "agent", i) for i in range(len(agents))]
        self._deadline = None if deadline is None else check.number("deadline", deadline, above=0.0)
        self._keep_messages = bool(transcript)
        self.history: deque[Record] = deque(maxlen=check.integer("history", history, min=0))
        self._state: ServerState | None = None
        self._pending: tuple[bytes, Step] | None = None
        self._last: Step | None = None
        self._last_game: Equilibrium | None = None
        self._hellos: list[Hello] = []
        self._absences: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()
        self._fallbacks: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}

    def predict_one(self, x: Input) -> Forecast:
        """The forecast of the next target, from x and all labels so far."""
        inputs = self._columns.read_input(x)
        if self._state is None and self._start is None:
            return self._columns.show(np.zeros(self._y_dim))
        return self._columns.show(self._step(inputs).forecast)

    def learn_one(self, x: Input, y: Target | None) -> None:
        """The target that x was to forecast is revealed; None or NaN if it is not known (yet): see `learn_late`."""
        inputs, target = self._columns.read_row(x, y)
        if self._state is None and self._start is None:
            if target is not None:
                self._begin(target)
            return
        step = self._step(inputs)
        self._count(step, target)
        self._post.ask_all("learn", list(enumerate(self._agents)), target)
        assert self._state is not None
        if target is not None:
            self._score(step, target)
        self.history.append(Record(self._state.step, step.forecast, step.weights, target))
        self._state = advance(self._state, step, target)
        self._pending, self._last = None, step

    def learn_late(self, step: int, y: Target) -> bool:
        """The target of an earlier step is revealed. Returns False if that is too long ago to teach anything."""
        target, state = self._columns.read_target("y", y), self._begun()
        assert target is not None
        ago = state.step - check.integer("step", step, min=0)
        if ago < 1:
            raise InvalidInput("step", f"{step}", f"Pass a step before the present one, {state.step}.")
        lookback = len(state.window.weights)
        self._post.ask_all("learn_late", list(enumerate(self._agents)), ago, target)
        if ago <= lookback + 1:
            record = next((r for r in self.history if r.step == step), None)
            weights, targets = state.window.weights.copy(), state.window.targets.copy()
            if ago == 1 and not state.known and self._last is not None:
                self._score(self._last, target)
            targets[-ago] = target
            if record is not None and ago <= lookback:
                weights[-ago] = record.weights
            self._state = state._replace(window=Window(weights, targets), known=state.known or ago == 1)
        self._pending = None
        self._counts["late labels"] += 1
        return ago <= max(lookback, 1)

    def replay(self, inputs: np.ndarray, targets: np.ndarray) -> Replay:
        """Forecast every target from its input, learning as it goes.

        inputs: (steps, x_dim).   targets: (steps, y_dim).
        """
        X = check.of_rank("inputs", inputs, ("steps", "x_dim"))
        Y = check.array("targets", targets, (len(X), self._y_dim), "(steps, y_dim)")
        shape, before = (len(X), len(self._agents)), self._counts["fallbacks"]
        forecasts, weights, own = np.zeros(Y.shape), np.zeros(shape), np.zeros((*shape, self._y_dim))
        for t, (x, y) in enumerate(zip(X, Y, strict=True)):
            started = self._state is not None or self._start is not None
            if started:
                forecasts[t] = self._step(self._columns.read_input(x)).forecast
            self.learn_one(x, y)
            if started and self._last is not None:
                weights[t], own[t] = self._last.weights, self._last.forecasts
        fallbacks = self._counts["fallbacks"] - before
        return Replay(forecasts, weights, own, float(np.mean((forecasts - Y) ** 2)), fallbacks)

    @property
    def step(self) -> int:
        """How many targets have been forecast and passed."""
        return 0 if self._state is None else self._state.step

    @property
    def agents(self) -> list[str]:
        """The agents' names, once the stream has begun."""
        return [hello.name for hello in self._hellos]

    @property
    def weights(self) -> dict[str, float]:
        """How the last learnt forecast weighed each agent."""
        if self._last is None:
            return {}
        return {hello.name: float(w) for hello, w in zip(self._hellos, self._last.weights, strict=True)}

    @property
    def present(self) -> Step | None:
        """The step that `predict_one` forecast and that is not learnt yet: forecast, weights, agents' own forecasts."""
        return None if self._pending is None else self._pending[1]

    @property
    def health(self) -> dict:
        """Counters: steps, games, fallbacks and why, missing and late labels, each agent's absences, last reasons."""
        counts = {name: self._counts[name] for name in ("games", "fallbacks", "missing labels", "late labels")}
        why, absences = dict(self._fallbacks), dict(self._absences)
        return {"steps": self.step, **counts, "fell back": why, "absences": absences, "reasons": dict(self._reasons)}

    @property
    def transcript(self) -> list[Message]:
        """Every message between server and agents so far, if the federation was made with transcript=True."""
        return [] if not self._hellos else self._post.transcript

    def certificate(self) -> Certificate:
        """What the agents could have gained by deviating in the last game (central placement)."""
        if self._last_game is None:
            raise NashcastError("no game has been played on the server yet; it needs a full window of labels.")
        return certify(self._last_game)

    def save(self, path: str | Path) -> None:
        """Write all that has been learnt to one file, never a pickle. `load` it into a federation made the same way."""
        write_arrays(path, *self._saved())

    def _saved(self) -> tuple[dict[str, np.ndarray], dict]:
        state = self._begun()
        arrays = {
            "step": np.array(state.step), "known": np.array(state.known), "forecasts": state.forecasts,
            "last_weights": state.last_weights, "window.weights": state.window.weights,
            "window.targets": state.window.targets,
        }  # fmt: skip
        # What a late label of the window's steps will ask for.
        recent = [record for record in self.history if state.step - record.step <= len(state.window.weights)]
        unknown = np.full(self._y_dim, np.nan)
        arrays |= {
            "history.steps": np.array([record.step for record in recent], dtype=np.int64),
            "history.forecasts": _stacked([record.forecast for record in recent], self._y_dim),
            "history.weights": _stacked([record.weights for record in recent], len(self._agents)),
            "history.targets": _stacked(
                [unknown if record.target is None else record.target for record in recent], self._y_dim
            ),
        }
        if self._last is not None and not state.known:  # its label may still come, and teach the rule and the intervals
            sat_out = np.array(sorted(self._last.absent), dtype=np.int64)
            arrays |= {"unscored.forecast": self._last.forecast, "unscored.absent": sat_out}
        for prefix, part in self._parts():
            arrays |= {prefix + name: value for name, value in part.save().items()}
        return arrays | self._save_agents(), {**self._fingerprint(), "columns": self._columns.save()}

    def _save_agents(self) -> dict[str, np.ndarray]:
        saved = [agent.save() for agent in self._agents]
        return {f"agent.{i}.{name}": value for i, own in enumerate(saved) for name, value in own.items()}

    def _restore_agents(self, arrays: dict[str, np.ndarray]) -> None:
        for i, agent in enumerate(self._agents):
            prefix = f"agent.{i}."
            agent.restore({name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)})

    def load(self, path: str | Path) -> None:
        """Continue where `save` left off, bit for bit."""
        arrays, fingerprint = read_arrays(path)
        before, self._columns = self._columns, Columns(None, self._y_dim)
        try:
            self._columns.restore(fingerprint.pop("columns", None))
        except InvalidInput:
            self._columns = before
            raise
        window = Window(arrays["window.weights"], arrays["window.targets"])
        self._begin(window.targets[-1])
        if fingerprint != self._fingerprint():
            self._columns = before
            remedy = "Load it into a federation made with the same agents and settings."
            raise InvalidInput("path", f"the state of another federation ({fingerprint})", remedy)
        self._state = ServerState(
            int(arrays["step"]), arrays["forecasts"], arrays["last_weights"], window, bool(arrays["known"])
        )  # fmt: skip
        self._pending, self._last = None, None
        if "unscored.forecast" in arrays:
            absent = dict.fromkeys(map(int, arrays["unscored.absent"]), "")
            own, weights = self._state.forecasts, self._state.last_weights
            self._last = Step(arrays["unscored.forecast"], weights, own, absent, None, False, "")
        self.history.clear()
        if "history.steps" in arrays:
            columns = (arrays[f"history.{name}"] for name in ("steps", "forecasts", "weights", "targets"))
            for step, forecast, weights, target in zip(*columns, strict=True):
                self.history.append(Record(int(step), forecast, weights, None if np.isnan(target).any() else target))
        self._restore_agents(arrays)
        for prefix, part in self._parts():
            saved = {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
            if saved or part is not self._bounds:  # files of before there were intervals: those begin anew
                part.restore(saved)

    def for_replay(self) -> tuple[list[Participant], list[int], Settings, int, np.ndarray | None]:
        """Agents, their noise keys, settings, y_dim and start, for an engine that replays series from the start."""
        if self._state is not None:
            raise NashcastError("this federation has already learnt; replay needs one that has just been made.")
        return self._agents, self._keys, self._settings, self._y_dim, self._start

    def _fingerprint(self) -> dict:
        game = self._settings.game
        mixing = {} if self._mixing == PAPER else {"mixing": self._mixing}
        return {
            **mixing,
            "agents": [[hello.name, hello.features] for hello in self._hellos],
            "lookback": 0 if game is None else game.lookback,
            "y_dim": self._y_dim,
        }

    def _begin(self, target: np.ndarray) -> None:
        lookback = 0 if self._settings.game is None else self._settings.game.lookback
        pairs = zip(self._agents, self._keys, strict=True)
        self._hellos = distinct_hellos([agent.begin(self._x_dim, target, key, lookback) for agent, key in pairs])
        self._post = self._make_post(self.agents, self._deadline, self._keep_messages)
        self._settings = self._settings._replace(players=self._players())
        self._state = first_state(len(self._agents), target, lookback)

    def _players(self) -> frozenset[int]:
        """The agents that let out what the game needs."""
        game = self._settings.game
        lets_out = [] if game is None else [hello.lets_out(NEEDED[game.placement]) for hello in self._hellos]
        return frozenset(i for i, plays in enumerate(lets_out) if plays)

    def _named(self) -> list[str]:
        return self.agents

    def _open(self) -> tuple[np.ndarray, np.ndarray] | None:
        if self._state is None and self._start is None:
            return np.zeros(self._y_dim), np.zeros((len(self._agents), self._y_dim))
        return None if self._pending is None else (self._pending[1].forecast, self._pending[1].forecasts)

    def _begun(self) -> ServerState:
        if self._state is None:
            raise NashcastError("the stream has not begun: nothing is learnt yet.")
        return self._state

    def _step(self, x: np.ndarray) -> Step:
        if self._state is None:
            assert self._start is not None
            self._begin(self._start)
        assert self._state is not None
        if self._pending is None or self._pending[0] != x.tobytes():
            self._pending = x.tobytes(), self._done(self._state, x)
        return self._pending[1]

    def _done(self, state: ServerState, x: np.ndarray) -> Step:
        game, anchored, players = (
            game_due(self._settings.game, state.step),
            self._settings.anchored,
            self._settings.players,
        )
        self._post.begin_step(state.step, game, anchored, state.window, players, state.forecasts)
        while True:
            try:
                return algorithm_one(self._agents, state, x, self._settings, self._post)
            except AgentLost:
                self._settings = self._settings._replace(players=self._players())

    def _score(self, step: Step, target: np.ndarray) -> None:
        """The rule and the intervals learn from a step whose target is known."""
        if self._settings.rule is not None:
            awake = np.array([i not in step.absent for i in range(len(self._agents))])
            self._settings.rule.learn(step.forecasts, target, awake)
        if self._bounds is not None:
            self._bounds.learn(step.forecast, step.forecasts, step.absent.keys(), target)

    def _parts(self) -> list[tuple[str, AggregationRule | PaperBounds]]:
        """What learns beside the agents, with the prefix of its arrays in a file."""
        parts = [("mixing.", self._settings.rule), ("intervals.", self._bounds)]
        return [(prefix, part) for prefix, part in parts if part is not None]

    def _count(self, step: Step, target) -> None:
        self._counts["games"] += step.played
        if step.fell_back:
            self._counts["fallbacks"] += 1
            known = step.fell_back in self._fallbacks or len(self._fallbacks) < _MOST_REASONS
            self._fallbacks[step.fell_back if known else "other reasons"] += 1
        self._counts["missing labels"] += target is None
        if step.game is not None:
            self._last_game = step.game
        for i, reason in step.absent.items():
            self._absences[self._hellos[i].name] += 1
            self._reasons[self._hellos[i].name] = reason


def _game_of(game) -> LookbackGame:
    """An object with lookback, every and solve, as a look-back game."""
    if not callable(getattr(game, "solve", None)) or not hasattr(game, "lookback"):
        remedy = "Pass nashcast.LookbackGame(lookback=…, every=…), an object with lookback and solve, or None."
        raise InvalidInput("game", check.describe(game), remedy)
    return LookbackGame(lookback=game.lookback, every=getattr(game, "every", 1), solve=game.solve)


def _stacked(rows: list[np.ndarray], width: int) -> np.ndarray:
    return np.array(rows) if rows else np.empty((0, width))


def distinct_hellos(hellos: list[Hello]) -> list[Hello]:
    """The same with numbers behind names that occur more than once."""
    names = distinct([hello.name for hello in hellos])
    return [hello._replace(name=name) for hello, name in zip(hellos, names, strict=True)]
