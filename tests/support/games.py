"""Random games for the tests: agents of mixed sizes, as arguments of `solve_game` and of the dense theorem."""

from typing import NamedTuple

import numpy as np


class Game(NamedTuple):
    Z: list
    w: np.ndarray
    y: np.ndarray
    start: np.ndarray
    gamma: np.ndarray
    alpha: np.ndarray
    mean: list | None
    cov: list | None
    prior: list | None

    def arguments(self):
        return self.Z, self.w, self.y, self.start

    def settings(self):
        return {
            "ridge": self.gamma,
            "decay": self.alpha,
            "means": self.mean,
            "covariance": self.cov,
            "prior": self.prior,
        }

    def dense_arguments(self):
        T, p, _ = self.Z[0].shape
        cov = self.cov or [None] * len(self.Z)
        cov = [
            np.zeros((T, p, p, z.shape[2], z.shape[2])) if c is None else c for z, c in zip(self.Z, cov, strict=True)
        ]
        prior = self.prior or [np.zeros((T, z.shape[2])) for z in self.Z]
        return self.Z, self.mean or self.Z, cov, self.w, self.y, self.start, self.alpha, self.gamma, prior


def random_covariance(rng, T, p, d, scale=0.5):
    """A full covariance across the rows of Z: positive semi-definite as a (p d)×(p d) matrix."""
    half = scale * rng.standard_normal((T, p * d, p * d))
    full = half @ half.swapaxes(-1, -2)
    return np.ascontiguousarray(full.reshape(T, p, d, p, d).transpose(0, 1, 3, 2, 4))


def random_game(seed, *, N=None, p=None, T=None, sizes=None, noisy=None, prior=None, alpha_range=(0.0, 2.0)):
    """N 1..8, y_dim 1..3, features 1..6, look-back 1..6, α 0..2, γ 0.1..20, noise off/on/partly, prior off/on."""
    rng = np.random.default_rng(seed)
    N = int(rng.integers(1, 9)) if N is None else N
    p = int(rng.integers(1, 4)) if p is None else p
    T = int(rng.integers(1, 7)) if T is None else T
    sizes = [int(d) for d in rng.integers(1, 7, N)] if sizes is None else sizes
    noisy = bool(rng.integers(2)) if noisy is None else noisy
    prior = bool(rng.integers(2)) if prior is None else prior
    Z = [rng.standard_normal((T, p, d)) for d in sizes]
    mean = cov = None
    if noisy:
        mean = [z + 0.3 * rng.standard_normal(z.shape) for z in Z]
        cov = [random_covariance(rng, T, p, d) for d in sizes]
        if rng.random() < 0.3:
            cov[int(rng.integers(N))] = None
    return Game(
        Z,
        (1 + rng.standard_normal((T, N))) / N,
        rng.standard_normal((T, p)),
        rng.standard_normal((N, p)),
        np.exp(rng.uniform(np.log(0.1), np.log(20.0), N)),
        rng.uniform(*alpha_range, N),
        mean,
        cov,
        [rng.standard_normal((T, d)) for d in sizes] if prior else None,
    )


def stacked(decoders):
    """Decoders of all agents, (T, total features)."""
    return np.concatenate(decoders, axis=1) if isinstance(decoders, list) else decoders.reshape(len(decoders), -1)


def relative(a, b):
    """Largest difference, relative to the largest entry."""
    return np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(np.asarray(b)).max()
