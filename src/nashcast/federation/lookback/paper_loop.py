"""Algorithm 1 as the loop of a federation: window decoders, the weights of Theorem 1, the look-back game."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.agents.arrangement import distinct
from nashcast.agents.protocol import Hello, Participant
from nashcast.errors import InvalidInput
from nashcast.federation.forecast import Forecast, Scored
from nashcast.federation.incoming.columns import Columns
from nashcast.federation.lookback.algorithm import (
    LookbackGame,
    ServerState,
    Settings,
    Step,
    advance,
    algorithm_one,
    first_state,
    game_due,
)
from nashcast.federation.lookback.placements import NEEDED, Window
from nashcast.federation.lookback.transport import AgentLost, Message, Opening, Post
from nashcast.federation.loop_factory import StepLoop
from nashcast.federation.mixing import mixing_rule
from nashcast.federation.views.trust import TrustLog
from nashcast.fields import Fields
from nashcast.mixing.expert_rule import RuleFactory, rule_name


class PaperLoop:
    """settings: those of Algorithm 1, with an expert rule of its own, if any.   post: carries messages to the agents.

    start: the first known target.   first_step: rows before it. The agents count their steps from there.
    """

    season = None
    suspect_labels, gives_quantiles = 0, False

    def __init__(self, opening: Opening, settings: Settings, post: Post, start: np.ndarray, first_step: int):
        self.opening, self.post = opening, post
        self._settings, self._first_step = settings, first_step
        self.members = [hello.name for hello in opening.hellos]
        self.state = first_state(len(opening.agents), start, opening.lookback)
        # The weights of the window's steps, including steps whose label is not known yet.
        self._weights = self.state.window.weights.copy()
        self.trust = TrustLog(len(self.members), opening.y_dim)
        self._now: Step | None = None
        self.last: Step | None = None  # the last step that was learnt

    @property
    def step(self) -> int:
        return self._first_step + self.state.step

    @property
    def included(self) -> np.ndarray:
        return np.isin(np.arange(len(self.members)), list(self.post.players()))

    @property
    def transcript(self) -> list[Message]:
        return self.post.transcript

    def forecast(self, x: np.ndarray, time: float = np.nan, objects: Mapping[str, Any] | None = None) -> Forecast:
        """Algorithm 1 encodes the present input; time and objects are not used."""
        step = self._now = self._done(x)
        forecast = Forecast(step.forecast[None], step.weights, step.forecasts, step.absent)
        return forecast._replace(played=step.played, fell_back=step.fell_back, game=step.game)

    def own_forecasts(self) -> np.ndarray:
        assert self._now is not None
        return self._now.forecasts[:, None]

    def learn(self, target: np.ndarray | None) -> list[Scored]:
        step, self._now = self._now, None
        assert step is not None
        self.post.ask_all("learn", list(enumerate(self.opening.agents)), target)
        scored = [] if target is None else [self._score(step, target, self.step)]
        self.state = advance(self.state, step, target)
        if len(self._weights):
            self._weights = np.concatenate([self._weights[1:], step.weights[None]])
        self.last = step
        return scored

    def learn_late(self, step: int, target: np.ndarray) -> list[Scored] | None:
        state, lookback, ago = self.state, self.opening.lookback, self.step - step
        if ago > state.step:
            return None
        self.post.ask_all("learn_late", list(enumerate(self.opening.agents)), ago, target)
        scored = []
        if ago <= lookback + 1:
            weights, targets = state.window.weights.copy(), state.window.targets.copy()
            if ago == 1 and not state.known and self.last is not None:
                scored.append(self._score(self.last, target, step))
            targets[-ago] = target
            if ago <= lookback:
                weights[-ago] = self._weights[-ago]
            self.state = state._replace(window=Window(weights, targets), known=state.known or ago == 1)
        self._now = None
        return scored if ago <= max(lookback, 1) else None

    def _done(self, x: np.ndarray) -> Step:
        """One step of Algorithm 1, restarted whenever an agent is lost."""
        state, settings, post = self.state, self._settings, self.post
        post.prepare(state.step, x)
        game, players = game_due(settings.game, state.step), post.players()
        post.begin_step(state.step, game, settings.anchored, state.window, players, state.forecasts)
        while True:
            try:
                step = algorithm_one(self.opening.agents, state, x, settings._replace(players=players), post)
                break
            except AgentLost:
                players = post.players()
        if game is not None and not step.played and not step.fell_back and len(step.absent) < len(self.members):
            return step._replace(fell_back=post.why_nobody())
        return step

    def _score(self, step: Step, target: np.ndarray, number: int) -> Scored:
        """Score a step whose target is known; agents that sat out have no forecast of it."""
        awake = np.array([i not in step.absent for i in range(len(self.members))])
        if self._settings.rule is not None:
            self._settings.rule.learn(step.forecasts, target, awake)
        self.trust.learn(target, step.forecast, step.forecasts, _without(step, awake), awake)
        own = step.forecasts if awake.all() else np.where(awake[:, None], step.forecasts, np.nan)
        return Scored(target, step.forecast[None], own, np.ones(1, dtype=bool), number)

    def save(self) -> dict[str, np.ndarray]:
        state = self.state
        arrays = {
            "step": np.array(state.step), "first_step": np.array(self._first_step), "known": np.array(state.known),
            "features": np.array([hello.features for hello in self.opening.hellos]),
            "forecasts": state.forecasts, "last_weights": state.last_weights, "weights": self._weights,
            "window.weights": state.window.weights, "window.targets": state.window.targets,
        }  # fmt: skip
        if self.last is not None and not state.known:  # rule and intervals learn from its label if it comes late
            absent = np.isin(np.arange(len(self.members)), list(self.last.absent))
            arrays |= {"unscored.forecast": self.last.forecast, "unscored.absent": absent}
        if self._settings.rule is not None:
            arrays |= {f"mixing.{name}": value for name, value in self._settings.rule.save().items()}
        arrays |= {f"trust.{name}": value for name, value in self.trust.save().items()}
        return arrays | {f"agents.{name}": value for name, value in self.post.save().items()}

    def restore(self, fields: Fields) -> None:
        N, p, T = len(self.members), self.opening.y_dim, self.opening.lookback
        features = fields.take("features", (N,), dtype=np.int64, min=0)
        same = features.tolist() == [hello.features for hello in self.opening.hellos]
        fields.require("features", same, f"{features.tolist()}: the state of another federation")
        step, first = (int(fields.take(name, (), dtype=np.int64, min=0)) for name in ("step", "first_step"))
        known = bool(fields.take("known", (), dtype=np.bool_))
        # The mixture of large forecasts may overflow and stand in for a target; such a state is valid.
        window = Window(fields.take("window.weights", (T, N)), _numbers(fields, "window.targets", (T + 1, p)))
        forecasts, last = fields.take("forecasts", (N, p)), fields.take("last_weights", (N,))
        self.state, self._first_step = ServerState(step, forecasts, last, window, known), first
        self._weights = fields.take("weights", (T, N))
        self._now = self.last = None
        if "unscored.forecast" in fields:
            absent = np.flatnonzero(fields.take("unscored.absent", (N,), dtype=np.bool_)).tolist()
            forecast = _numbers(fields, "unscored.forecast", (p,))
            self.last = Step(forecast, last, forecasts, dict.fromkeys(absent, ""), None, False, "")
        self.trust.restore(fields.part("trust."))
        mixing = fields.part("mixing.")
        if self._settings.rule is not None:
            self._settings.rule.restore(mixing.rest())
        mixing.done()
        self.post.restore(fields.part("agents."))
        fields.done()


class Delivery(NamedTuple):
    """How messages reach the agents: see `paper_federation`."""

    deadline: float | None
    transcript: bool
    make_post: Callable[[Opening], Post]


class PaperLoopFactory:
    """Arguments as in `paper_federation`.   settings: game, anchored, ridge and budget, without players and rule."""

    horizon = 1
    objects: tuple[str, ...] = ()

    def __init__(
        self,
        agents: Sequence[Participant],
        settings: Settings,
        mixing: str | RuleFactory,
        y_dim: int,
        seed: int,
        delivery: Delivery,
    ):
        self.agents = _checked(agents)
        self.names = [type(agent).__name__ for agent in agents]
        game = _checked_game(settings.game, self.agents)
        if settings.anchored and game is not None:
            raise InvalidInput("anchored", "True with a game", "Pass game=None: the game sets where agents start.")
        kappa, eta = check.number("ridge", settings.ridge, above=0.0), check.number("budget", settings.budget)
        self.settings = Settings(game, bool(settings.anchored), kappa, eta)
        self.mixing, self._rule = rule_name(mixing), mixing
        self.y_dim = check.integer("y_dim", y_dim, min=1)
        self.rule()  # raises if the factory makes no rule
        self.keys = [seeds.key(seed, "agent", i) for i in range(len(agents))]
        if delivery.deadline is not None:
            check.number("deadline", delivery.deadline, above=0.0)
        self._delivery = delivery

    @property
    def members(self) -> int:
        return len(self.agents)

    @property
    def lookback(self) -> int:
        return 0 if self.settings.game is None else self.settings.game.lookback

    def rule(self):
        """A new expert rule to weigh the agents; None for the paper's weights."""
        kappa, eta = self.settings.ridge, self.settings.budget
        return mixing_rule(self._rule, len(self.agents), self.y_dim, kappa, eta)

    def begin(self, columns: Columns, start: np.ndarray, first_step: int) -> PaperLoop:
        hellos = self._begin_agents(columns.x_dim or 0, start)
        needed = None if self.settings.game is None else NEEDED[self.settings.game.placement]
        deadline, keep, make_post = self._delivery
        x_dim, p = columns.x_dim or 0, len(start)
        opening = Opening(self.agents, hellos, x_dim, p, self.lookback, needed, deadline, bool(keep))
        settings = self.settings._replace(rule=self.rule())
        return PaperLoop(opening, settings, make_post(opening), start, first_step)

    def resumed(self, columns: Columns, y_dim: int, fields: Fields) -> PaperLoop:
        (loop := self.begin(columns, np.zeros(y_dim), 0)).restore(fields)
        return loop

    def begin_again(self, loop: StepLoop, objects: Sequence[Mapping[str, Any]], columns: Columns) -> None: ...

    def fingerprint(self) -> dict[str, Any]:
        return {"agents": len(self.agents), "mixing": self.mixing, "lookback": self.lookback}

    @contextmanager
    def unchanged_if_refused(self, loop: StepLoop | None) -> Iterator[None]:
        assert loop is None or isinstance(loop, PaperLoop)
        before = None if loop is None else loop.post.save()
        try:
            yield
        except BaseException:
            if loop is not None and before is not None:  # both loops have the same agents
                self._begin_agents(loop.opening.x_dim, loop.state.window.targets[-1])
                loop.post.restore(Fields(before))
            raise

    def _begin_agents(self, x_dim: int, target: np.ndarray) -> list[Hello]:
        pairs = zip(self.agents, self.keys, strict=True)
        hellos = [agent.begin(x_dim, target, key, self.lookback) for agent, key in pairs]
        names = distinct([hello.name for hello in hellos])
        return [hello._replace(name=name) for hello, name in zip(hellos, names, strict=True)]


def _checked(agents: Sequence[Participant]) -> list[Participant]:
    if not isinstance(agents, Sequence) or not agents:
        raise InvalidInput("agents", check.describe(agents), "Pass a list of at least one agent.")
    if len({id(agent) for agent in agents}) < len(agents):
        raise InvalidInput("agents", "the same agent twice", "Make one agent for each place.")
    for i, agent in enumerate(agents):
        if not (hasattr(agent, "forecast") and hasattr(agent, "learn")):
            raise InvalidInput(f"agents[{i}]", check.describe(agent), "Pass nashcast.Agent(encoder, …).")
    return list(agents)


def _checked_game(game: Any, agents: Sequence[Participant]) -> LookbackGame | None:
    """An object with lookback, every and solve becomes a look-back game."""
    if game is not None and not isinstance(game, LookbackGame):
        if not callable(getattr(game, "solve", None)) or not hasattr(game, "lookback"):
            remedy = "Pass nashcast.LookbackGame(lookback=…, every=…), an object with lookback and solve, or None."
            raise InvalidInput("game", check.describe(game), remedy)
        game = LookbackGame(lookback=game.lookback, every=getattr(game, "every", 1), solve=game.solve)
    for i, agent in enumerate(agents):
        if game is not None and game.memory and not hasattr(agent, "recall"):
            remedy = "Pass agents that can `recall` their decoder, in this process, or LookbackGame(memory=False)."
            raise InvalidInput(f"agents[{i}]", check.describe(agent), remedy)
    return game


def _without(step: Step, awake: np.ndarray) -> np.ndarray:
    """The mixture without each agent, (agents, y_dim): the others share its weight equally."""
    others = max(int(awake.sum()) - 1, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        rest = (step.forecasts[awake].sum(axis=0) - step.forecasts) / others
        without = step.forecast + step.weights[:, None] * (rest - step.forecasts)
    return np.where(np.isfinite(without), without, step.forecast)


def _numbers(fields: Fields, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """A field that may have infinite entries."""
    values = fields.take(name, shape, finite=False)
    fields.require(name, not np.isnan(values).any(), "entries that are not a number")
    return values
