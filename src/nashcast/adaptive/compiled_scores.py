"""The compiled twin of `mixing.log_score`, for one column."""

from __future__ import annotations

from math import exp, inf, log, log1p

from numba import njit

FREEDOM = 5.0  # degrees of freedom: one wild error costs a bounded number of good ones
CAP = 13.0  # e^-13: the least weight, as a part of the best's
PRECISION = 2.5
GROWTH = 4.0
# Errors this small, as a part of the largest, are rounding.
_ROUNDING = 1e-20


@njit(cache=True)
def fill_weights(score, squares, count, log_prior, reach, awake, precision, weights):
    """Fill `weights` (experts,). reach: q.   squares: Σ fading e²/q.   count: the same sum of ones."""
    K, least, best = len(weights), 0.0, -inf
    for k in range(K):
        least = max(least, squares[k])
    least = max(_ROUNDING * least, 1e-300)
    for k in range(K):
        if awake[k]:
            weights[k] = score[k] + log_prior[k]
            if count > 0.0 and precision > 0.0:
                weights[k] -= precision * log(max(squares[k], least) * reach[k])
            best = max(best, weights[k])
    total = 0.0
    for k in range(K):
        weights[k] = exp(weights[k] - best) if awake[k] else 0.0
        total += weights[k]
    if total > 0.0:
        for k in range(K):
            weights[k] /= total


@njit(cache=True)
def learn_scores(score, squares, count, forecasts, target, mixed, reach, awake, memory, scale_memory, learnt):
    """One step: update `score` and `squares`; returns the new count. An expert asleep counts as the mixture `mixed`.

    memory: how much a step's score weighs of the next one's; scale_memory: the same of its squared error.
    learnt: how many steps were learnt before this one.
    """
    K = len(score)
    young = 1.0 / (1.0 + learnt / GROWTH)
    fading, scale_fading = min(memory, 1.0 - young / 5.0), min(scale_memory, 1.0 - young)
    count = scale_fading * count + 1.0
    largest = 0.0
    for k in range(K):
        error = (forecasts[k] if awake[k] else mixed) - target
        squares[k] = scale_fading * squares[k] + error * error / (reach[k] if awake[k] else 1.0)
        largest = max(largest, squares[k])
    least, best = max(_ROUNDING * largest, 1e-300), -inf
    for k in range(K):
        q = reach[k] if awake[k] else 1.0
        error = (forecasts[k] if awake[k] else mixed) - target
        variance = max(squares[k], least) / count * q
        score[k] = fading * score[k] - 0.5 * log(variance)
        score[k] -= 0.5 * (FREEDOM + 1.0) * log1p(error * error / (FREEDOM * variance))
        best = max(best, score[k])
    for k in range(K):
        score[k] = max(score[k] - best, -CAP)
    return count
