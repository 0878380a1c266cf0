"""Echo state: Z_t = h(A x_t + B Z_{t-1} + b + σW_t), random features with memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.base import BuiltEncoder, Context, Noise
from nashcast.errors import InvalidInput
from nashcast.games.moments.counter_noise import standard_normals
from nashcast.games.moments.features import ACTIVATIONS, EchoParameters, Moments, drawn_steps, sample_echo_moments


@dataclass(frozen=True)
class EchoState:
    r"""A, B (y_dim × y_dim) and b standard normal, drawn once from `seed`; hard sigmoid as in the paper.

    features: how many.   seed: for A, B and b.   noise: $\sigma \ge 0$.   samples: paths for the moments.
    activation: hard_sigmoid, tanh or relu.   Beyond the paper: spectral_radius, if given, B is scaled to it; leak,
    $0 < l \le 1$: $Z_t = (1 - l) Z_{t-1} + l\,h(…)$.
    """

    features: int
    seed: int
    noise: float = 0.1
    activation: str = "hard_sigmoid"
    spectral_radius: float | None = None
    leak: float = 1.0
    samples: int = 100

    def __post_init__(self):
        check.integer("features", self.features, min=1)
        check.integer("samples", self.samples, min=2)
        check.number("noise", self.noise, min=0.0)
        seeds.key(self.seed)
        if self.activation not in ACTIVATIONS:
            raise InvalidInput("activation", repr(self.activation), f"Pass one of {', '.join(sorted(ACTIVATIONS))}.")
        check.number("leak", self.leak, above=0.0, max=1.0)
        if self.spectral_radius is not None:
            check.number("spectral_radius", self.spectral_radius, above=0.0)

    def build(self, x_dim: int, y_dim: int) -> _Built:
        rng = seeds.generator(self.seed, "echo state")
        A = rng.standard_normal((y_dim, x_dim))
        B = rng.standard_normal((y_dim, y_dim))
        b = rng.standard_normal((y_dim, self.features))
        if self.spectral_radius is not None:
            B *= self.spectral_radius / np.abs(np.linalg.eigvals(B)).max()
        return _Built(self, A, B, b)


class _Built(BuiltEncoder):
    def __init__(self, description: EchoState, A: np.ndarray, B: np.ndarray, b: np.ndarray):
        self._A, self._B, self._b = A, B, b
        self._sigma = np.full(len(b), float(description.noise))
        self._activate = ACTIVATIONS[description.activation].apply
        self._activation, self._samples = description.activation, description.samples
        self._leak = float(description.leak)
        self.features = b.shape[1]

    def start(self) -> np.ndarray:
        return np.zeros_like(self._b)

    def advance(self, context: Context) -> np.ndarray:
        W, state = context.noise.standard_normal(self.features), context.state
        h = self._activate((self._A @ context.x)[:, None] + self._B @ state + self._b + self._sigma[:, None] * W)
        return h if self._leak == 1.0 else (1.0 - self._leak) * state + self._leak * h

    def encode(self, context: Context) -> np.ndarray:
        return context.state

    def echo(self, inputs: np.ndarray) -> EchoParameters:
        drive = np.stack([self._A @ x for x in inputs])[:, :, None] + self._b
        return EchoParameters(drive, self._B, self._sigma, self._samples, self._activation, self._leak)

    def moments(self, inputs: np.ndarray, features: np.ndarray, noise: Noise) -> Moments:
        echo = self.echo(inputs)
        normals = path_normals(
            noise, echo.samples, len(inputs), self.features, drawn_steps(echo.activation, len(inputs))
        )
        return sample_echo_moments(echo, features[0], normals)


def path_normals(noise: Noise, samples: int, steps: int, features: int, drawn: tuple[int, int]) -> np.ndarray:
    """The noise of an echo state's sampled paths at the drawn steps: (samples, drawn steps, features)."""
    places = np.arange(samples * steps * features).reshape(samples, steps, features)[:, drawn[0] : drawn[1]]
    return standard_normals(noise.key, noise.step, places)
