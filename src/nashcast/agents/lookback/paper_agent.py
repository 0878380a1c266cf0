"""An agent in this process: its encoder, its own decoder (Proposition 1) and its memory of the last steps."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from nashcast import validation as check
from nashcast.agents.decoders import empty_memory, extend, fit_window, move, solve_ridge
from nashcast.agents.lookback.paper_agent_state import PendingStep, restore_state, saved_state
from nashcast.agents.protocol import (
    PAPER_SHARES,
    Answer,
    BackwardSums,
    BackwardTerms,
    GameView,
    Hello,
    Invitation,
    Sync,
)
from nashcast.agents.replay_part import ReplayPart
from nashcast.encoders.base import BuiltEncoder, BuiltLearner, Encoder, Noise, RowEncoder, input_context
from nashcast.errors import InvalidInput
from nashcast.games.lookback.spread import AgentPart


class PaperAgent:
    r"""encoder: turns inputs into features.   name: shown in tables.

    ridge: $\gamma > 0$ and decay: $\alpha \ge 0$ of its decoder and of its part in the game.
    window: steps its own decoder looks back (the paper's Client T).
    forgetting: if given, its decoder learns from all history instead, each step weighted by this factor relative to the
        next ($0 < \lambda \le 1$).
    share: the data it may send: "forecasts" (it is mixed with the others and plays no game), "sums" (it plays a spread
        game), "moments" (also a central one, played with the expected values of its features), or "features".

    An agent sits a step out if its encoder raises or gives anything but finite numbers of the shape it declared, or if
    its forecast overflows.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        ridge: float = 1.0,
        decay: float = 0.0,
        window: int = 5,
        forgetting: float | None = None,
        name: str | None = None,
        share: str = "features",
    ):
        if not hasattr(encoder, "build"):
            remedy = "Pass an encoder, for example nashcast.encoders.RandomFeatures(features=6, seed=1)."
            raise InvalidInput("encoder", check.describe(encoder), remedy)
        self._encoder = encoder
        self._ridge = check.number("ridge", ridge, above=0.0)
        self._decay = check.number("decay", decay, min=0.0)
        self._window = check.integer("window", window, min=1)
        self._forgetting = None if forgetting is None else check.number("forgetting", forgetting, above=0.0, max=1.0)
        self._name = type(encoder).__name__ if name is None else str(name)
        if share not in PAPER_SHARES:
            raise InvalidInput("share", repr(share), f"Pass one of {', '.join(PAPER_SHARES)}.")
        self._share = share

    @property
    def name(self) -> str:
        """The agent's name in tables."""
        return self._name

    @property
    def share(self) -> str:
        """The data it may send."""
        return self._share

    @property
    def step(self) -> int:
        """How many steps it has learnt or sat out."""
        return self._step

    @property
    def place(self) -> np.ndarray:
        """Its own forecast of the present, from which it forecasts."""
        return self._present

    def begin(self, x_dim: int, target: np.ndarray, key: int, lookback: int) -> Hello:
        self._built = self._build(x_dim, len(target))
        p, d, steps = len(target), check.integer("features", self._built.features, min=0), max(self._window, lookback)
        self._key, self._lookback, self._step = key, lookback, 0
        self._encoder_state = self._built.start()
        self._present = target.copy()
        self._inputs = np.zeros((steps, x_dim))
        self._features, self._presents = np.zeros((steps, p, d)), np.zeros((steps, p))
        self._targets = np.full((steps, p), np.nan)
        self._took_part = np.zeros(steps, dtype=bool)
        self._last_absence = -1 - steps
        self._memory = empty_memory(d)  # statistics of all history, if forgetting is given
        self._decoder = np.zeros(d)
        self._pending: PendingStep | None = None
        self._part: AgentPart | None = None
        return Hello(self._name, d, self._share)

    def forecast(self, x: np.ndarray) -> Answer:
        self._pending = None
        if not self._built.accepts_missing and not check.all_finite(x):
            return Answer(None, "its encoder does not accept missing inputs")
        try:
            raw, state = self._encoded(x)
            raw = check.array("features", raw, self._features.shape[1:], "(y_dim, features)")
        except Exception as error:
            # An exception of one black box must not stop the others: its agent sits out, and the reason is reported.
            return Answer(None, f"{type(error).__name__}: {error}")
        self._fit()
        return self._answer(x, raw, state, self._present, self._decoder)

    def _build(self, x_dim: int, y_dim: int) -> BuiltEncoder:
        if getattr(self._encoder, "objects", ()):
            got = f"a {type(self._encoder).__name__} of agent {self._name!r}, which reads a text or a picture"
            remedy = "Inputs are numbers here: pass its embedding as inputs, or use Federation in one process."
            raise InvalidInput("encoder", got, remedy)
        built = self._encoder.build(x_dim, y_dim)
        if isinstance(built, RowEncoder) or built.past_inputs or built.past_targets:
            got = f"a {type(self._encoder).__name__} of agent {self._name!r}, which looks at past rows"
            remedy = "Pass an encoder of the present input, for example nashcast.encoders.Linear(), or use Federation."
            raise InvalidInput("encoder", got, remedy)
        if isinstance(built, BuiltLearner):
            got = f"a {type(self._encoder).__name__} of agent {self._name!r}, which learns by itself"
            raise InvalidInput("encoder", got, "Pass learn=False for a frozen copy, or use Federation.")
        return built

    def _encoded(self, x: np.ndarray):
        context = input_context(x, Noise(self._key, self._step), self._encoder_state)
        state = self._built.advance(context)
        return self._built.encode(context._replace(state=state)), state

    def sit_out(self) -> None:
        self._pending = None

    def see(self, x: np.ndarray) -> None:
        """Pass an input that the agent has missed to the encoder, so that its state follows the stream."""
        if self._built.accepts_missing or check.all_finite(x):
            with suppress(Exception):  # a failing black box keeps its older state
                self._encoder_state = self._encoded(x)[1]

    def introduction(self) -> tuple[bool, bool]:
        """Whether its features are taken relative to its last forecast, and whether they vary."""
        p, d = self._features.shape[1:]
        inputs, features = np.zeros((1, self._inputs.shape[1])), np.zeros((1, p, d))
        return self._built.relative, self._built.moments(inputs, features, Noise(self._key, -1)) is not None

    def raw_features(self) -> np.ndarray:
        """The output of the encoder for the present step."""
        return self._expect_pending().raw

    def view(self) -> GameView:
        features = self._last(self._features)
        mean, covariance = self._moments(features)
        if self._share != "features" and mean is not None:
            features = mean
        return GameView(features, mean, covariance, self._ridge, self._decay)

    def recall(self) -> np.ndarray:
        return self._decoder.copy()

    def adopt(self, sync: Sync) -> Answer:
        pending = self._expect_pending()
        if sync.past is not None:
            self._presents[len(self._presents) - self._lookback :] = sync.past
        decoder = self._decoder if sync.decoder is None else sync.decoder
        return self._answer(pending.x, pending.raw, pending.encoder_state, sync.forecast, decoder)

    def varies(self) -> bool:
        self._window_moments = self._moments(self._last(self._features))
        return self._window_moments[1] is not None

    def join_game(self, invitation: Invitation) -> None:
        self._part = AgentPart(self._last(self._features), *self._window_moments, self._ridge, self._decay, invitation)

    def backward(self, back: int) -> BackwardTerms:
        return BackwardTerms(*self._own_part().backward(back))

    def receive(self, back: int, sums: BackwardSums) -> None:
        self._own_part().receive(back, *sums)

    def finish_game(self, totals: np.ndarray) -> Answer:
        part, self._part = self._own_part(), None
        part.play(totals)
        return self.adopt(Sync(part.forecasts[-1, 0], part.decoders[-1]))

    @np.errstate(over="ignore", invalid="ignore")
    def learn(self, target: np.ndarray | None) -> None:
        p, d = self._features.shape[1:]
        known = np.full(p, np.nan) if target is None else target
        if self._pending is None:
            self._last_absence = self._step
            # It sat out: a step without features, from which nothing is learnt; its forecast stays the same.
            newest = (np.zeros(self._inputs.shape[1]), np.zeros((p, d)), self._present, np.full(p, np.nan), False)
        else:
            pending = self._pending
            newest = (pending.x, pending.features, pending.present, known, True)
            self._encoder_state, self._present = pending.encoder_state, pending.forecast
        if self._forgetting is not None:
            learns = self._pending is not None and target is not None
            Z, residual = (newest[1], target - newest[2]) if learns else (np.zeros((p, d)), np.zeros(p))
            self._memory = extend(self._memory, Z, residual, self._forgetting)
        memories = (self._inputs, self._features, self._presents, self._targets, self._took_part)
        for memory, value in zip(memories, newest, strict=True):
            memory[:-1] = memory[1:]
            memory[-1] = value
        self._step += 1
        self._pending = None

    @np.errstate(over="ignore", invalid="ignore")
    def learn_late(self, steps_ago: int, target: np.ndarray) -> None:
        if steps_ago > min(self._step, len(self._targets)):
            return  # older than its memory
        self._targets[-steps_ago] = target
        if self._forgetting is not None:
            root = np.sqrt(self._forgetting ** (steps_ago - 1))
            Z, residual = root * self._features[-steps_ago], root * (target - self._presents[-steps_ago])
            self._memory = extend(self._memory, Z, residual, 1.0)

    def save(self) -> dict[str, np.ndarray]:
        return saved_state(self)

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Raises InvalidInput, and changes nothing, if a field is missing, unknown, or of the wrong type or shape."""
        restore_state(self, saved)

    def part_in_replay(self, inputs: np.ndarray, y_dim: int, key: int) -> ReplayPart:
        """Everything of this agent that a compiled replay of a whole series needs. It stays in this process."""
        if self._share != "features":
            raise InvalidInput("share", f"{self._share!r} of agent {self._name!r}", "Replay it online.")
        built = self._build(inputs.shape[1], y_dim)
        features, _ = built.encode_series(inputs, built.start(), key, 0)
        features = check.array("features", features, (len(inputs), y_dim, built.features), "(steps, y_dim, features)")
        echo = built.echo(inputs)
        moments = None
        if echo is None:
            first = built.moments(inputs[:1], features[:1], Noise(key, -1))
            if first is not None and not built.moments_by_step:
                raise InvalidInput(
                    "encoder", f"{self._name!r}, whose moments depend on the window", "Replay it online."
                )
            moments = None if first is None else built.moments(inputs, features, Noise(key, -1))
        forgetting = 0.0 if self._forgetting is None else self._forgetting
        settings = (self._ridge, self._decay, self._window, forgetting)
        return ReplayPart(features, moments, echo, built.relative, *settings)

    @np.errstate(over="ignore", invalid="ignore")
    def _answer(self, x, raw, encoder_state, present, decoder) -> Answer:
        Z = raw - present[:, None] if self._built.relative else raw
        forecast = move(present, Z, decoder)
        if not np.isfinite(forecast).all():
            return Answer(None, "its forecast is not finite")
        self._pending = PendingStep(x, raw, Z, encoder_state, present, forecast)
        return Answer(forecast.copy())

    @np.errstate(over="ignore", invalid="ignore")
    def _fit(self) -> None:
        steps = min(self._step, self._window)
        if self._forgetting is not None:
            self._decoder = solve_ridge(*self._memory, self._ridge)
        elif steps and self._built.features:
            residuals = self._targets[-steps:] - self._presents[-steps:]  # NaN where the target is not known yet
            self._decoder = fit_window(self._features[-steps:], residuals, self._ridge, self._decay)

    def _moments(self, features):
        # Sampled moments have their own place in the agent's noise: at steps its encoder never reaches.
        moments = self._built.moments(self._last(self._inputs), features, Noise(self._key, -1 - self._step))
        if moments is None:
            return None, None
        # Steps it sat out have no features, hence no moments.
        if self._step - self._last_absence > self._lookback:
            return moments
        here = self._last(self._took_part)
        return moments.mean * here[:, None, None], moments.covariance * here[:, None, None, None, None]

    def _last(self, memory: np.ndarray) -> np.ndarray:
        """A copy of a memory's last `lookback` steps: data that is sent must not change later."""
        return memory[len(memory) - self._lookback :].copy()

    def _expect_pending(self) -> PendingStep:
        if self._pending is None:
            raise InvalidInput("forecast", "nothing", f"Ask agent {self._name!r} for its forecast first.")
        return self._pending

    def _own_part(self) -> AgentPart:
        if self._part is None:
            raise InvalidInput("game", "nothing", f"Invite agent {self._name!r} to a game first.")
        return self._part
