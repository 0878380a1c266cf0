r"""Bernstein online aggregation (Wintenberger) in compiled form, with prior weights; one target, linearised gains.

With $r_k = 2(\hat y - y)(\hat y - f_k)$, $V_k = \sum r_k^2$, B the largest |r| so far and
$\eta_k = (V_k/\ln(1/\pi_k) + 4B^2)^{-1/2}$,

    weights ∝ π_k η_k exp(η_k Σ_t (r_k - η_k r_k²)).

A step whose |r| exceeds all before it is shrunk to them, so nothing depends on units. The regret against any expert,
and so against any fixed convex mixture of them, is at most of the order of √(V_k ln(1/π_k)) + B ln(1/π_k).
"""

from __future__ import annotations

from math import exp, inf, log, sqrt

from numba import njit

LEAST = log(2.0)  # ln(1/π) of an expert that is all but certain
SMALLEST = 1e-150  # gains below it are none: their squares would be 0


@njit(cache=True)
def fill_bernstein_weights(total, squares, bound, log_prior, awake, weights):
    """Fill `weights` (experts,): those of `log_prior` until there has been a gain."""
    K, best = len(weights), -inf
    for k in range(K):
        if awake[k]:
            weights[k] = log_prior[k]
            if bound > SMALLEST:
                rate = 1.0 / sqrt(squares[k] / max(-log_prior[k], LEAST) + 4.0 * bound * bound)
                weights[k] += log(rate) + rate * total[k]
            best = max(best, weights[k])
    weight = 0.0
    for k in range(K):
        weights[k] = exp(weights[k] - best) if awake[k] else 0.0
        weight += weights[k]
    if weight > 0.0:
        for k in range(K):
            weights[k] /= weight


@njit(cache=True)
def largest_gain(bound, forecasts, target, mixed, awake):
    """`bound`, or what somebody awake gains in this step or loses, if that is more."""
    for k in range(len(forecasts)):
        if awake[k]:
            bound = max(bound, abs(2.0 * (mixed - target) * (mixed - forecasts[k])))
    return bound


@njit(cache=True)
def learn_gains(total, squares, bound, log_prior, forecasts, target, mixed, awake):
    """One step: update `total` and `squares`; returns the new bound. An expert asleep gains nothing."""
    largest = largest_gain(bound, forecasts, target, mixed, awake)
    if bound > SMALLEST:
        for k in range(len(total)):
            if awake[k]:
                gain = 2.0 * (mixed - target) * (mixed - forecasts[k]) * (bound / largest)
                # The rate in force while this step was forecast: before its gain.
                rate = 1.0 / sqrt(squares[k] / max(-log_prior[k], LEAST) + 4.0 * bound * bound)
                total[k] += gain - rate * gain * gain
                squares[k] += gain * gain
    return largest
