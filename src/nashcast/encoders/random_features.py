"""Random features with fresh noise at every step: Z = ReLU(A x + b + σW), the paper's generative random network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.base import BuiltEncoder, Context, Noise
from nashcast.games.moments.counter_noise import standard_normals
from nashcast.games.moments.features import Moments, exact_moments


@dataclass(frozen=True)
class RandomFeatures:
    r"""A (y_dim × x_dim) and b (y_dim × features) standard normal, drawn once from `seed`; one W for each column.

    features: how many.   seed: for A and b.   noise: $\sigma \ge 0$.
    """

    features: int
    seed: int
    noise: float = 0.1

    def __post_init__(self):
        check.integer("features", self.features, min=1)
        check.number("noise", self.noise, min=0.0)
        seeds.key(self.seed)

    def build(self, x_dim: int, y_dim: int) -> _Built:
        rng = seeds.generator(self.seed, "random features")
        A = rng.standard_normal((y_dim, x_dim))
        b = rng.standard_normal((y_dim, self.features))
        return _Built(A, b, np.full(y_dim, float(self.noise)))


class _Built(BuiltEncoder):
    moments_by_step = True

    def __init__(self, A: np.ndarray, b: np.ndarray, sigma: np.ndarray):
        self._A, self._b, self._sigma = A, b, sigma
        self.features = b.shape[1]

    def encode(self, context: Context) -> np.ndarray:
        return self._activate(context.x[None], context.noise.standard_normal(self.features)[None])[0]

    def encode_series(self, inputs: np.ndarray, state: None, key: int, first_step: int) -> tuple[np.ndarray, None]:
        steps = np.arange(first_step, first_step + len(inputs))
        return self._activate(inputs, standard_normals(key, steps[:, None], np.arange(self.features))), None

    def moments(self, inputs: np.ndarray, features: np.ndarray, noise: Noise) -> Moments:
        return exact_moments("relu", self._drive(inputs), self._sigma)

    def _drive(self, inputs: np.ndarray) -> np.ndarray:
        """A x_t + b: (steps, y_dim, features). No matrix product: one input alone must give the same bits."""
        return (inputs[:, None, :] * self._A).sum(axis=2)[:, :, None] + self._b

    def _activate(self, inputs: np.ndarray, W: np.ndarray) -> np.ndarray:
        return np.maximum(self._drive(inputs) + self._sigma[:, None] * W[:, None, :], 0.0)
