"""What an encoder is: a description that can be built, and a pure map from input, state and noise to features.

    encoder = RandomFeatures(features=6, seed=1)      # a description: hashable, printable, saved as plain values
    built = encoder.build(x_dim=10, y_dim=1)          # frozen: weights drawn from its seed and nothing else
    state = built.start()
    Z, state = built.encode(x, state, noise)          # pure: same arguments, same result; changes nothing

`Z` has shape (y_dim, features). `moments` says what the features of a window were expected to be; None where they are
certain, so that they were what they had to be. A state is None, a number, an array, or a tuple of those: it is saved.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from nashcast.games.moments.counter_noise import step_normals
from nashcast.games.moments.features import EchoParameters, Moments

State = Any


class Noise(NamedTuple):
    """The randomness of one step: looked up by key and step, so asking twice gives the same."""

    key: int
    step: int

    def standard_normal(self, size: int) -> np.ndarray:
        return step_normals(self.key, self.step, size)


class BuiltEncoder:
    """A frozen encoder for known dimensions. Subclasses set `features` and define `encode`; the rest has defaults."""

    features: int
    # The features are forecasts of the target itself: the agent takes them relative to where its own forecast stands.
    relative = False
    # Inputs may contain NaN for what is missing. An encoder that does not say so sits out such steps.
    accepts_missing = False
    # The moments of a step depend on its own input only, so those of a whole series can be had at once.
    moments_by_step = False

    def start(self) -> State:
        """The state before the first input."""
        return None

    def encode(self, x: np.ndarray, state: State, noise: Noise) -> tuple[np.ndarray, State]:
        """Features (y_dim, features) of input x (x_dim,) and the next state. Pure."""
        raise NotImplementedError

    def encode_series(self, inputs: np.ndarray, state: State, key: int, first_step: int) -> tuple[np.ndarray, State]:
        """Features (steps, y_dim, features) of inputs (steps, x_dim), as `encode` gives them one by one."""
        features = []
        for t, x in enumerate(inputs):
            Z, state = self.encode(x, state, Noise(key, first_step + t))
            features.append(Z)
        return np.stack(features), state

    def moments(self, inputs: np.ndarray, features: np.ndarray, noise: Noise) -> Moments | None:
        """Mean and covariance of a window's features, given its inputs (steps, x_dim); None if they are certain.

        features: as drawn, (steps, y_dim, features); encoders with memory start from its first entry.
        noise: for encoders that sample their moments.
        """
        return None

    def echo(self, inputs: np.ndarray) -> EchoParameters | None:
        """What an echo state's sampled moments need, for a series; None for every other encoder."""
        return None


class Encoder(Protocol):
    """A description of an encoder."""

    def build(self, x_dim: int, y_dim: int) -> BuiltEncoder: ...
