"""The interface of encoders: a description that can be built, and a pure map from a context to features.

    encoder = Trend()                                 # a description: hashable, printable, saved as plain values
    built = encoder.build(x_dim=3, y_dim=1)           # frozen: weights drawn from its seed and nothing else
    state = built.advance(context._replace(state=built.start()))       # encoders with memory only
    Z = built.encode(context._replace(state=state))   # (y_dim, features); pure: same context, same features

The context contains the present input and as many past inputs and targets as the encoder declares. Encoders that learn
nothing but forecast (`BuiltForecaster`) return forecasts of the next targets instead of features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from nashcast.encoders.families.rows import Rows, Scales
from nashcast.games.moments.counter_noise import step_normals
from nashcast.games.moments.features import EchoParameters, Moments

State = Any


class Noise(NamedTuple):
    """The randomness of one step: computed from key and step, so that repeated calls give the same numbers."""

    key: int
    step: int

    def standard_normal(self, size: int) -> np.ndarray:
        return step_normals(self.key, self.step, size)


class Context(NamedTuple):
    """What an encoder sees at one step. All arrays are read-only, in the units of the stream."""

    x: np.ndarray  # the present input, (x_dim,); NaN where a number is missing
    inputs: np.ndarray  # earlier inputs, oldest first, (≤ past_inputs, x_dim)
    targets: np.ndarray  # known targets, the newest last, (≤ past_targets, y_dim)
    times: np.ndarray  # timestamps of the inputs in seconds, the present one last, NaN where there are none
    scales: Scales  # mean, spread and usual change of the targets so far
    input_scales: Scales  # the same of the inputs
    season: int  # length of the season found in the targets, 0 if there is none
    rows: Rows | None  # the same step in standardised form
    noise: Noise
    state: State = None
    objects: Mapping[str, Any] = MappingProxyType({})  # texts and pictures of the present input, by column


class BuiltEncoder:
    """A frozen encoder for known dimensions. Subclasses set `features` and define `encode`; the rest has defaults."""

    features: int
    # How many earlier inputs and how many known targets the context should contain.
    past_inputs = 0
    past_targets = 0
    # The features are forecasts of the target itself: agents take them relative to the present target.
    relative = False
    # Whether inputs may contain NaN for missing numbers. If not, the agent sits out such steps.
    accepts_missing = False
    # Columns of texts or pictures that the context should contain; "" is an input that is one text or picture itself.
    objects: tuple[str, ...] = ()
    # The moments of a step depend on its own input only, so those of a whole series can be computed at once.
    moments_by_step = False

    def start(self) -> State:
        """The state before the first input: None, a number, an array, or a tuple of those."""
        return None

    def advance(self, context: Context) -> State:
        """The state after this step's context; `context.state` is the one before it. Pure."""
        return None

    def encode(self, context: Context) -> np.ndarray:
        """Features (y_dim, features); `context.state` is the state after `advance`. Pure."""
        raise NotImplementedError

    def encode_series(self, inputs: np.ndarray, state: State, key: int, first_step: int) -> tuple[np.ndarray, State]:
        """Features (steps, y_dim, features) of inputs (steps, x_dim), as `encode` gives them one by one."""
        features = []
        for t, x in enumerate(inputs):
            context = input_context(x, Noise(key, first_step + t), state)
            state = self.advance(context)
            features.append(self.encode(context._replace(state=state)))
        return np.stack(features), state

    def moments(self, inputs: np.ndarray, features: np.ndarray, noise: Noise) -> Moments | None:
        """Mean and covariance of a window's features, given its inputs (steps, x_dim); None if they are fixed.

        features: as drawn, (steps, y_dim, features); encoders with memory start from its first entry.
        noise: for encoders that sample their moments.
        """
        return None

    def echo(self, inputs: np.ndarray) -> EchoParameters | None:
        """The parameters of an echo state's sampled moments, for a series; None for every other encoder."""
        return None


class RowEncoder(BuiltEncoder):
    """An encoder of standardised rows: `encode_rows` takes one row or thousands.

    Its features are computed again for all stored rows when the scales change; with `seasonal`, also when the season
    changes.
    """

    seasonal = False

    def encode(self, context: Context) -> np.ndarray:
        assert context.rows is not None
        return self.encode_rows(context.rows, context.state)[0][0]

    def encode_rows(self, rows: Rows, state: State) -> tuple[np.ndarray, State]:
        """Features (rows, y_dim, features), and the state after the last row."""
        raise NotImplementedError


class Quantiles(NamedTuple):
    """A black box's quantiles of the next targets, in their own units."""

    levels: tuple[float, ...]  # ascending, between 0 and 1
    values: np.ndarray  # (horizon, y_dim, levels), ascending along the last axis


class ForecastSet(NamedTuple):
    """Forecasts (forecasts, horizon, y_dim), NaN beyond its horizon, and quantiles if it gives any."""

    forecasts: np.ndarray
    quantiles: Quantiles | None = None


class BuiltForecaster(BuiltEncoder):
    """A black box that forecasts: `forecast` gives `forecasts` forecasts of each of the next targets.

    As features, these are taken relative to the last target. Unless `calibrated`, decoders learn from them, so that a
    biased forecaster is corrected; the forecasts themselves are experts in any case.
    """

    forecasts = 1
    relative = True
    calibrated = False
    levels: tuple[float, ...] = ()  # levels of the quantiles that `forecast_set` gives

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        """Forecasts (forecasts, horizon, y_dim) in the target's own units; NaN beyond its horizon."""
        raise NotImplementedError

    def forecast_set(self, context: Context, horizon: int) -> ForecastSet:
        """The same with quantiles. A black box with quantiles defines this, `forecast` in terms of it, and `levels`."""
        return ForecastSet(self.forecast(context, horizon))

    def encode(self, context: Context) -> np.ndarray:
        return self.forecast(context, 1)[:, 0].T

    @property
    def features(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.forecasts


class BuiltLearner(BuiltForecaster):
    """A black box that also learns by itself, from every label. The federation passes it rows and labels as they come.

    `row` gives what the model sees of a step. The federation stores it, forecasts from it by `forecast_row`, and
    passes it with its label to `learn_row`, each row at most once: immediately, later if the label is late, never if it
    is missing or suspect. `forecast_row` learns nothing.
    """

    def row(self, context: Context) -> np.ndarray:
        """What the model sees of this step, (numbers,), of constant length. Pure."""
        raise NotImplementedError

    @property
    def row_size(self) -> int:
        raise NotImplementedError

    def forecast_row(self, row: np.ndarray, horizon: int) -> np.ndarray:
        """Forecasts (forecasts, horizon, y_dim) from a row by the present state."""
        raise NotImplementedError

    def learn_row(self, row: np.ndarray, target: np.ndarray) -> None:
        raise NotImplementedError

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        return self.forecast_row(self.row(context), horizon)

    def save_state(self) -> dict[str, np.ndarray] | None:
        """The learnt state as plain arrays, or None if it cannot be saved: then the labelled rows are replayed."""
        return None

    def restore_state(self, saved: dict[str, np.ndarray]) -> None:
        """Continue from what `save_state` returned. Called on an untrained learner."""
        raise NotImplementedError


class Encoder(Protocol):
    """A description of an encoder. One that asks for input columns by name also has `build_named`."""

    def build(self, x_dim: int, y_dim: int) -> BuiltEncoder: ...


def build_encoder(encoder: Encoder, x_dim: int, y_dim: int, names: Sequence[str] | None) -> BuiltEncoder:
    """names: names of the inputs, if they have any."""
    build_named = getattr(encoder, "build_named", None)
    if names is None or build_named is None:
        return encoder.build(x_dim, y_dim)
    return build_named(x_dim, y_dim, tuple(names))


def input_context(x: np.ndarray, noise: Noise, state: State = None) -> Context:
    """The context of an encoder that sees the present input alone."""
    nothing = np.empty((0, len(x)))
    scales = Scales.unknown(len(x))
    return Context(x, nothing, nothing[:, :0], np.full(1, np.nan), scales, scales, 0, None, noise, state)
