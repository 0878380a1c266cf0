"""Games with random content of a given size, for measuring."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast import seeds


class RandomGame(NamedTuple):
    """Arguments of `solve_game` for agents that are all alike, and the same one array for each agent."""

    features: np.ndarray
    weights: np.ndarray
    targets: np.ndarray
    start: np.ndarray
    ridge: np.ndarray
    decay: np.ndarray
    means: np.ndarray | None
    covariance: np.ndarray | None

    def arguments(self) -> tuple:
        return self.features, self.weights, self.targets, self.start

    def settings(self) -> dict:
        return {"ridge": self.ridge, "decay": self.decay, "means": self.means, "covariance": self.covariance}

    def for_dense_theorem(self) -> tuple:
        """The arguments of the dense theorem: one array for each agent, covariance and prior written out as zero."""
        T, N, p, d = self.features.shape
        means = self.features if self.means is None else self.means
        spread = np.zeros((T, N, p, p, d, d)) if self.covariance is None else self.covariance
        by_agent = [list(np.moveaxis(values, 1, 0)) for values in (self.features, means, spread)]
        prior = list(np.zeros((N, T, d)))
        return *by_agent, self.weights, self.targets, self.start, self.decay, self.ridge, prior

    def touched_bytes(self) -> int:
        """What any solver must at least read and write once: the inputs, the decoders, the forecasts."""
        T, N, p, d = self.features.shape
        read = sum(values.nbytes for values in self if values is not None)
        return read + 8 * T * N * (d + p)


def random_game(agents: int, lookback: int, features: int, y_dim: int, noisy: bool, seed: int = 2024) -> RandomGame:
    rng = seeds.generator(seed, "random game", agents, lookback, features, y_dim)
    T, N, p, d = lookback, agents, y_dim, features
    Z = rng.standard_normal((T, N, p, d))
    means = covariance = None
    if noisy:
        means = Z + 0.1 * rng.standard_normal(Z.shape)
        half = 0.3 * rng.standard_normal((T, N, p * d, p * d))
        covariance = half @ half.swapaxes(-1, -2)
        covariance = np.ascontiguousarray(covariance.reshape(T, N, p, d, p, d).transpose(0, 1, 2, 4, 3, 5))
    return RandomGame(
        Z,
        (1 + 0.3 * rng.standard_normal((T, N))) / N,
        rng.standard_normal((T, p)),
        np.tile(rng.standard_normal(p), (N, 1)),
        rng.uniform(0.5, 2.0, N),
        rng.uniform(0.0, 0.5, N),
        means,
        covariance,
    )
