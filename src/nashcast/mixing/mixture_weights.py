"""Theorem 1: the server's signed mixture weights, for one past step or a discounted window of them.

The constraint 1ᵀw = η is met by w = η/N + v with 1ᵀv = 0. Such a v depends only on how the agents differ from their
mean, so it is a plain ridge regression of the equal mixture's error on the agents' deviations:

    v = Ỹᵀ (ỸỸᵀ + κI)⁻¹ (y - ηȲ),    Ȳ = mean over agents,  Ỹ = Ŷ - Ȳ1ᵀ.

It equals the paper's A⁻¹(b - λ1), costs one system of the smaller of (window · y_dim) and N, and, unlike A⁻¹, does not
lose digits where the agents agree.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput

LARGEST_SHIFT = 1e4


def mixture_weights(
    forecasts: np.ndarray, target: np.ndarray, *, ridge: float, budget: float = 1.0, discount: float = 1.0
) -> np.ndarray:
    r"""Signed ridge weights whose sum is fixed (Theorem 1).

    $$\min_w \sum_s \lambda^{S-1-s} \|y_s - \hat Y_s w\|^2 + \kappa\|w\|^2 \quad\text{s.t.}\quad 1^\top w = \eta$$

    forecasts: $\hat Y$, shape (y_dim, agents) for one step, as in the paper, or (steps, y_dim, agents), oldest first.
    target: $y$, shape (y_dim,) or (steps, y_dim).   ridge: $\kappa > 0$.   budget: $\eta$.
    discount: $0 < \lambda \le 1$, the weight of a step relative to the next one.

    Weights beyond the largest float64 are returned as infinite or NaN.

    >>> mixture_weights([[0.0, 2.0]], [1.5], ridge=1e-9).round(3)
    array([0.25, 0.75])
    """
    Y = check.numbers("forecasts", forecasts, "(y_dim, agents) or (steps, y_dim, agents)")
    if Y.ndim not in (2, 3) or 0 in Y.shape:
        remedy = "Pass an array (y_dim, agents) or (steps, y_dim, agents), every length at least 1."
        raise InvalidInput("forecasts", f"shape {check.shape_text(Y.shape)}", remedy)
    check.finite("forecasts", Y)
    y = check.array("target", target, Y.shape[:-1], "(y_dim,)" if Y.ndim == 2 else "(steps, y_dim)")
    kappa = check.number("ridge", ridge, above=0.0)
    eta = check.number("budget", budget)
    fading = check.number("discount", discount, above=0.0, max=1.0)
    p, N = Y.shape[-2:]
    Y, y = Y.reshape(-1, N), y.reshape(-1)
    if len(y) > p and fading < 1.0:
        # Ages of the rows, 0 for the last step.
        root = np.sqrt(fading ** (np.arange(len(y) - 1, -1, -1) // p))
        Y, y = root[:, None] * Y, root * y
    with np.errstate(over="ignore", invalid="ignore"):
        return _weights(Y, y, kappa, eta)


def _weights(Y: np.ndarray, y: np.ndarray, kappa: float, eta: float) -> np.ndarray:
    rows, N = Y.shape
    mean = Y.mean(axis=1)
    Z, missed = Y - mean[:, None], y - eta * mean
    # In units in which neither the deviations nor √κ exceed 1, no product overflows.
    unit = max(float(np.abs(Z).max()), sqrt(kappa))
    if not unit < np.inf:
        return np.full(N, np.nan)
    Z = Z / unit
    kappa = kappa / unit**2
    if rows <= N:
        system = Z @ Z.T
        system[np.diag_indices(rows)] += kappa
        v = Z.T @ (solve(system, missed) / unit)
    else:
        # The same v from ỸᵀỸ + κI over agents.
        system = Z.T @ Z
        system[np.diag_indices(N)] += kappa
        v = solve(system, Z.T @ missed) / unit
    # Rounding leaves v a mean of the size of the last digit; subtract it, so that the sum is η for every N.
    return v + (eta - v.sum()) / N


def solve(systems: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solutions x, (…, n), of systems (…, n, n); of least norm if one is singular to working precision."""
    try:
        return np.linalg.solve(systems, right[..., None])[..., 0]
    except np.linalg.LinAlgError:
        return np.einsum("...ij,...j->...i", np.linalg.pinv(systems, hermitian=True), right)


def deviations(errors: np.ndarray, awake: np.ndarray) -> np.ndarray:
    """Deviations of awake experts from their mean, (experts, y_dim), 0 for the others.   errors: (y_dim, experts)."""
    apart = np.where(awake, errors - errors[:, awake].mean(axis=1, keepdims=True), 0.0)
    return apart.T


def shifts_to_weights(shifts: np.ndarray, awake: np.ndarray, budget: float) -> np.ndarray:
    """Weights (…, experts) that sum to the budget, 0 for sleeping experts: equal shares and v.

    A v that exceeds `LARGEST_SHIFT` is shrunk to it, since it multiplies the differences between experts.
    """
    v = np.where(awake, shifts, 0.0)
    largest = np.abs(v).max(axis=-1, keepdims=True)
    if (largest > LARGEST_SHIFT).any():
        v = v * (LARGEST_SHIFT / np.maximum(largest, LARGEST_SHIFT))
    return np.where(awake, v + (budget - v.sum(axis=-1, keepdims=True)) / awake.sum(), 0.0)
