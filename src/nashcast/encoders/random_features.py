"""Random features with fresh noise at every step: Z = ReLU(A x + b + σW), the paper's generative random network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.base import BuiltEncoder, Noise
from nashcast.maths.counter_noise import standard_normal_at
from nashcast.maths.feature_moments import RELU, Moments, drive, fill_exact_moments


@dataclass(frozen=True)
class RandomFeatures:
    r"""A (y_dim × x_dim) and b (y_dim × features) standard normal, drawn once from `seed`; one W for each column.

    features: how many.   seed: of A and b.   noise: $\sigma \ge 0$.
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

    def encode(self, x: np.ndarray, state: None, noise: Noise) -> tuple[np.ndarray, None]:
        Z = np.empty((1, *self._b.shape))
        _fill(self._A, self._b, self._sigma, x.reshape(1, -1), noise.key, noise.step, Z)
        return Z[0], None

    def encode_series(self, inputs: np.ndarray, state: None, key: int, first_step: int) -> tuple[np.ndarray, None]:
        Z = np.empty((len(inputs), *self._b.shape))
        _fill(self._A, self._b, self._sigma, inputs, key, first_step, Z)
        return Z, None

    def moments(self, inputs: np.ndarray, features: np.ndarray, noise: Noise) -> Moments:
        return Moments(*_moments(self._A, self._b, self._sigma, inputs))


@njit(cache=True, nogil=True)
def _moments(A, b, sigma, inputs):
    T, (p, d) = len(inputs), b.shape
    a, mean, covariance = np.empty((T, p, d)), np.empty((T, p, d)), np.empty((T, p, p, d, d))
    drive(A, b, inputs, a)
    fill_exact_moments(RELU, a, sigma, mean, covariance)
    return mean, covariance


@njit(cache=True, nogil=True)
def _fill(A, b, sigma, inputs, key, first_step, Z):
    steps, p, d = Z.shape
    drive(A, b, inputs, Z)
    for t in range(steps):
        for f in range(d):
            W = standard_normal_at(key, first_step + t, f)
            for k in range(p):
                Z[t, k, f] = max(Z[t, k, f] + sigma[k] * W, 0.0)
