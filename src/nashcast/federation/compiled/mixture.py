"""Twin of the mixture weights of Theorem 1, without allocating."""

from __future__ import annotations

from numba import njit

from nashcast.games.lookback.compiled import cholesky


@njit(cache=True)
def mixture_scratch(rows, agents):
    """Scratch rows, each of length max(rows, agents), that `fill_mixture_weights` needs."""
    return rows + min(rows, agents) + 2


@njit(cache=True, nogil=True)
def fill_mixture_weights(forecasts, targets, ridge, budget, scratch, weights):
    """The weights of one past step: its forecasts (y_dim, agents) and targets (y_dim,); fills `weights`."""
    rows, N = forecasts.shape
    deviations, system = scratch[:rows], scratch[rows:]
    missed = scratch[rows + min(rows, N)]
    for r in range(rows):
        mean = 0.0
        for i in range(N):
            mean += forecasts[r, i]
        mean /= N
        for i in range(N):
            deviations[r, i] = forecasts[r, i] - mean
        missed[r] = targets[r] - budget * mean

    if rows <= N:
        # ỸỸᵀ + κI over rows, then v = Ỹᵀ x.
        for r in range(rows):
            for s in range(r + 1):
                total = ridge if r == s else 0.0
                for i in range(N):
                    total += deviations[r, i] * deviations[s, i]
                system[r, s] = total
        cholesky.factor(system, rows)
        cholesky.solve(system, missed, rows)
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
        cholesky.factor(system, N)
        cholesky.solve(system, weights, N)

    # Rounding leaves v a mean of the size of the last digit; subtract it, so that the sum is η for every N.
    total = 0.0
    for i in range(N):
        total += weights[i]
    for i in range(N):
        weights[i] += (budget - total) / N
