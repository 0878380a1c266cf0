"""Deterministic features of the last inputs: linear, and quadratic in lags (nonlinear vector autoregression)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast import validation as check
from nashcast.encoders.base import BuiltEncoder, Noise


@dataclass(frozen=True)
class Linear:
    """One, and the last `lags` inputs; every target has its own copy of them."""

    lags: int = 1

    def __post_init__(self):
        check.integer("lags", self.lags, min=1)

    def build(self, x_dim: int, y_dim: int) -> _Built:
        return _Built(x_dim, y_dim, self.lags, quadratic=False)


@dataclass(frozen=True)
class QuadraticLags:
    """One, the last `lags` inputs, and all their products of two."""

    lags: int = 2

    def __post_init__(self):
        check.integer("lags", self.lags, min=1)

    def build(self, x_dim: int, y_dim: int) -> _Built:
        return _Built(x_dim, y_dim, self.lags, quadratic=True)


class _Built(BuiltEncoder):
    """Features are block-diagonal: target k has its own block, so each target gets its own coefficients."""

    def __init__(self, x_dim: int, y_dim: int, lags: int, quadratic: bool):
        self._past = np.zeros((lags - 1, x_dim))
        self._pairs = np.triu_indices(lags * x_dim) if quadratic else None
        self._block = 1 + lags * x_dim + (0 if self._pairs is None else len(self._pairs[0]))
        self._y_dim = y_dim
        self.features = y_dim * self._block

    def start(self) -> np.ndarray:
        return self._past

    def encode(self, x: np.ndarray, state: np.ndarray, noise: Noise) -> tuple[np.ndarray, np.ndarray]:
        window = np.vstack([state, x])
        flat = window.ravel()
        parts = [np.ones(1), flat]
        if self._pairs is not None:
            parts.append(flat[self._pairs[0]] * flat[self._pairs[1]])
        features = np.concatenate(parts)[None]
        return features if self._y_dim == 1 else np.kron(np.eye(self._y_dim), features), window[1:]
