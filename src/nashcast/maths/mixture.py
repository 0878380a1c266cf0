"""Theorem 1: the server's signed mixture weights, for one past step or a discounted window of them.

The constraint 1ᵀw = η is met by w = η/N + v with 1ᵀv = 0. Such a v sees only how the agents differ from their mean,
so it is a plain ridge regression of what the equal mixture missed on the agents' deviations:

    v = Ỹᵀ (ỸỸᵀ + κI)⁻¹ (y - ηȲ),    Ȳ = mean over agents,  Ỹ = Ŷ - Ȳ1ᵀ.

It equals the paper's A⁻¹(b - λ1), costs one system of the smaller of (window · y_dim) and N, and does not lose digits
where the agents agree, as A⁻¹ does.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashcast.errors import InvalidInput
from nashcast.games.lookback.compiled import cholesky as positive
from nashcast import validation as check


def mixture_weights(
    forecasts: np.ndarray, target: np.ndarray, *, ridge: float, budget: float = 1.0, discount: float = 1.0
) -> np.ndarray:
    r"""Signed ridge weights whose sum is fixed (Theorem 1).

    $$\min_w \sum_s \lambda^{S-1-s} \|y_s - \hat Y_s w\|^2 + \kappa\|w\|^2 \quad\text{s.t.}\quad 1^\top w = \eta$$

    forecasts: $\hat Y$, shape (y_dim, agents) for one step, as in the paper, or (steps, y_dim, agents), oldest first.
    target: $y$, shape (y_dim,) or (steps, y_dim).   ridge: $\kappa > 0$.   budget: $\eta$.
    discount: $0 < \lambda \le 1$, the weight of a step relative to the next one.
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
    rows = Y.size // N
    weights = np.empty(N)
    scratch = np.empty((mixture_scratch(rows, N), max(rows, N)))
    fill_mixture_weights(Y.reshape(rows, N), y.reshape(rows), p, kappa, eta, fading, scratch, weights)
    return weights


@njit(cache=True)
def mixture_scratch(rows, agents):
    """Scratch rows, each of length max(rows, agents), that `fill_mixture_weights` needs."""
    return rows + min(rows, agents) + 2


@njit(cache=True, nogil=True)
def fill_mixture_weights(forecasts, targets, y_dim, ridge, budget, discount, scratch, weights):
    """The compiled form: rows of (steps · y_dim) past forecasts and targets, oldest first; fills `weights`."""
    rows, N = forecasts.shape
    deviations, system = scratch[:rows], scratch[rows:]
    missed = scratch[rows + min(rows, N)]
    weight = 1.0
    for r in range(rows - 1, -1, -1):
        if r < rows - 1 and (r + 1) % y_dim == 0:
            weight *= discount
        root = np.sqrt(weight)
        mean = 0.0
        for i in range(N):
            mean += forecasts[r, i]
        mean /= N
        for i in range(N):
            deviations[r, i] = root * (forecasts[r, i] - mean)
        missed[r] = root * (targets[r] - budget * mean)

    if rows <= N:
        # ỸỸᵀ + κI over rows, then v = Ỹᵀ x.
        for r in range(rows):
            for s in range(r + 1):
                total = ridge if r == s else 0.0
                for i in range(N):
                    total += deviations[r, i] * deviations[s, i]
                system[r, s] = total
        positive.factor(system, rows)
        positive.solve(system, missed, rows)
        for i in range(N):
            weights[i] = 0.0
        for r in range(rows):
            for i in range(N):
                weights[i] += deviations[r, i] * missed[r]
    else:
        # The same v from ỸᵀỸ + κI over agents.
        for i in range(N):
            for j in range(i + 1):
                total = ridge if i == j else 0.0
                for r in range(rows):
                    total += deviations[r, i] * deviations[r, j]
                system[i, j] = total
            total = 0.0
            for r in range(rows):
                total += deviations[r, i] * missed[r]
            weights[i] = total
        positive.factor(system, N)
        positive.solve(system, weights, N)

    # Rounding leaves v a mean of the size of the last digit; take it off, so that the sum is η whatever N is.
    total = 0.0
    for i in range(N):
        total += weights[i]
    for i in range(N):
        weights[i] += (budget - total) / N
