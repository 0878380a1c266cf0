"""Proposition 1: an agent's own decoder, exponentially weighted ridge over its window, or over all of its history."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashcast import validation as check
from nashcast.maths import positive


def window_decoder(features: np.ndarray, residuals: np.ndarray, *, ridge: float, decay: float = 0.0) -> np.ndarray:
    r"""The greedy decoder over a window of past steps (Proposition 1).

    $$\min_\beta \sum_s e^{-\alpha(S-1-s)} \|r_s - Z_s\beta\|^2 + \gamma\|\beta\|^2$$

    features: $Z_s$, shape (steps, y_dim, features), oldest first.
    residuals: $r_s = y_{s+1} - \hat Y_s$, shape (steps, y_dim).   ridge: $\gamma > 0$.   decay: $\alpha \ge 0$.
    """
    Z = check.of_rank("features", features, ("steps", "y_dim", "features"))
    check.finite("features", Z)
    S, p, d = Z.shape
    r = check.array("residuals", residuals, (S, p), "(steps, y_dim)")
    gamma = check.number("ridge", ridge, above=0.0)
    alpha = check.number("decay", decay, min=0.0)
    decoder = np.empty(d)
    fill_window_decoder(Z.reshape(S * p, d), r.reshape(S * p), p, gamma, np.exp(-alpha), np.empty((d, d)), decoder)
    return decoder


@njit(cache=True, nogil=True)
def fill_window_decoder(features, residuals, y_dim, ridge, forgetting, gram, decoder):
    """The compiled form: rows of (steps · y_dim) features and residuals, oldest first; fills `gram` and `decoder`."""
    rows = len(features)
    gram[:] = 0.0
    decoder[:] = 0.0
    for r in range(rows):
        if r > 0 and r % y_dim == 0:
            fade(gram, decoder, forgetting)
        remember_row(gram, decoder, features[r], residuals[r])
    solve_ridge(gram, decoder, ridge)


@njit(cache=True)
def solve_ridge(gram, cross, ridge):
    """Overwrite `cross` by (gram + ridge·I)⁻¹ cross; `gram` is used up."""
    d = len(cross)
    for f in range(d):
        gram[f, f] += ridge
    positive.factor(gram, d)
    positive.solve(gram, cross, d)


@njit(cache=True)
def fade(gram, cross, forgetting):
    """One step passes: what was learnt so far weighs less. Only the lower triangle of `gram` is kept."""
    for f in range(len(cross)):
        cross[f] *= forgetting
        for g in range(f + 1):
            gram[f, g] *= forgetting


@njit(cache=True)
def remember_row(gram, cross, row, residual):
    """Take in one row of Z and the residual it should have explained."""
    for f in range(len(cross)):
        cross[f] += row[f] * residual
        for g in range(f + 1):
            gram[f, g] += row[f] * row[g]


class LongMemory(NamedTuple):
    """All an agent needs of its whole history: its features' products with each other and with the residuals."""

    gram: np.ndarray  # Σ λ^age ZᵀZ, lower triangle
    cross: np.ndarray  # Σ λ^age Zᵀr


def empty_memory(features: int) -> LongMemory:
    """The memory of an agent that has seen nothing yet."""
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
    fading = check.number("forgetting", forgetting, above=0.0, max=1.0)
    result = LongMemory(memory.gram.copy(), memory.cross.copy())
    remember_in_place(result.gram, result.cross, Z, r, fading)
    return result


@njit(cache=True, nogil=True)
def remember_in_place(gram, cross, features, residual, forgetting):
    fade(gram, cross, forgetting)
    for r in range(len(residual)):
        remember_row(gram, cross, features[r], residual[r])


def long_memory_decoder(memory: LongMemory, *, ridge: float) -> np.ndarray:
    r"""Proposition 1 with all history as its window.

    $$\beta = \Big(\sum_s \lambda^{age} Z_s^\top Z_s + \gamma I\Big)^{-1} \sum_s \lambda^{age} Z_s^\top r_s$$

    The ridge does not fade with the data, so a feature that falls silent lets go of its decoder instead of blowing up.
    """
    gamma = check.number("ridge", ridge, above=0.0)
    decoder = np.empty(len(memory.cross))
    fill_long_memory_decoder(memory.gram, memory.cross, gamma, np.empty_like(memory.gram), decoder)
    return decoder


@njit(cache=True, nogil=True)
def fill_long_memory_decoder(gram, cross, ridge, scratch, decoder):
    for f in range(len(cross)):
        decoder[f] = cross[f]
        for g in range(f + 1):
            scratch[f, g] = gram[f, g]
    solve_ridge(scratch, decoder, ridge)
