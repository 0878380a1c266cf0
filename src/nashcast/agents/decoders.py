"""Proposition 1: an agent's own decoder, exponentially weighted ridge over its window, or over all of its history."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast import validation as check


def window_decoder(features: np.ndarray, residuals: np.ndarray, *, ridge: float, decay: float = 0.0) -> np.ndarray:
    r"""The greedy decoder over a window of past steps (Proposition 1).

    $$\min_\beta \sum_s e^{-\alpha(S-1-s)} \|r_s - Z_s\beta\|^2 + \gamma\|\beta\|^2$$

    features: $Z_s$, shape (steps, y_dim, features), oldest first.
    residuals: $r_s = y_{s+1} - \hat Y_s$, shape (steps, y_dim).   ridge: $\gamma > 0$.   decay: $\alpha \ge 0$.
    """
    Z = check.of_rank("features", features, ("steps", "y_dim", "features"))
    check.finite("features", Z)
    r = check.array("residuals", residuals, Z.shape[:2], "(steps, y_dim)")
    gamma = check.number("ridge", ridge, above=0.0)
    alpha = check.number("decay", decay, min=0.0)
    return fit_window(Z, r, gamma, alpha)


def fit_window(features: np.ndarray, residuals: np.ndarray, ridge: float, decay: float) -> np.ndarray:
    """`window_decoder` for arguments that are checked; rows whose residual is NaN are skipped."""
    S, p, d = features.shape
    rows, r = features.reshape(S * p, d), residuals.reshape(S * p)
    known = ~np.isnan(r)
    if not known.all():
        rows, r = np.where(known[:, None], rows, 0.0), np.where(known, r, 0.0)
    weighted = rows
    if decay > 0.0:
        weighted = rows * np.repeat(np.exp(-decay * np.arange(S - 1, -1, -1.0)), p)[:, None]
    return solve_ridge(weighted.T @ rows, weighted.T @ r, ridge)


def solve_ridge(gram: np.ndarray, cross: np.ndarray, ridge: float) -> np.ndarray:
    """(gram + ridge·I)⁻¹ cross; NaN if the matrix has overflowed."""
    try:
        return np.linalg.solve(gram + ridge * np.eye(len(cross)), cross)
    except np.linalg.LinAlgError:
        return np.full(len(cross), np.nan)


def move(present: np.ndarray, features: np.ndarray, decoder: np.ndarray) -> np.ndarray:
    """Ŷ + Zβ. The order of summation is fixed, so that a hub computes the agent's own number to the bit."""
    return present + (features * decoder).sum(axis=1)


class LongMemory(NamedTuple):
    """Sufficient statistics of an agent's whole history: products of features with each other and with residuals."""

    gram: np.ndarray  # Σ λ^age ZᵀZ
    cross: np.ndarray  # Σ λ^age Zᵀr


def empty_memory(features: int) -> LongMemory:
    """The memory of a new agent."""
    d = check.integer("features", features, min=0)
    return LongMemory(np.zeros((d, d)), np.zeros(d))


def remember(memory: LongMemory, features: np.ndarray, residual: np.ndarray, *, forgetting: float) -> LongMemory:
    r"""The memory after one more step, in O(features²).

    features: $Z$, shape (y_dim, features).   residual: $r$, shape (y_dim,).
    forgetting: $0 < \lambda \le 1$, the weight of a step relative to the next one ($e^{-\alpha}$ of the window form).
    """
    Z = check.of_rank("features", features, ("y_dim", "features"))
    check.finite("features", Z)
    check.shaped("memory", memory.cross, Z.shape[1:], "(features,)")
    r = check.array("residual", residual, Z.shape[:1], "(y_dim,)")
    return extend(memory, Z, r, check.number("forgetting", forgetting, above=0.0, max=1.0))


def extend(memory: LongMemory, features: np.ndarray, residual: np.ndarray, forgetting: float) -> LongMemory:
    """`remember` for arguments that are checked."""
    gram = forgetting * memory.gram + features.T @ features
    return LongMemory(gram, forgetting * memory.cross + features.T @ residual)


def long_memory_decoder(memory: LongMemory, *, ridge: float) -> np.ndarray:
    r"""Proposition 1 with all history as its window.

    $$\beta = \Big(\sum_s \lambda^{age} Z_s^\top Z_s + \gamma I\Big)^{-1} \sum_s \lambda^{age} Z_s^\top r_s$$

    The ridge does not fade with the data, so the decoder of a feature that stays 0 decays to 0 instead of blowing up.
    """
    return solve_ridge(memory.gram, memory.cross, check.number("ridge", ridge, above=0.0))
