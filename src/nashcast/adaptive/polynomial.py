r"""ML-Poly (see `ml_poly`) in compiled form; one target, linearised gains r_k = 2(ŷ - y)(ŷ - f_k), |r| ≤ B.

    weights ∝ max(Σ r_k, 0) / (B² + Σ r_k²)

A step whose |r| exceeds all before it is shrunk to them, so nothing depends on units.
"""

from __future__ import annotations

from numba import njit

from nashcast.adaptive.bernstein import largest_gain


@njit(cache=True)
def fill_polynomial_weights(total, squares, bound, awake, weights):
    """Fill `weights` (experts,): alike until somebody awake has gained on the mixture."""
    K, weight, count = len(weights), 0.0, 0
    for k in range(K):
        weights[k] = 0.0
        if awake[k]:
            count += 1
            if total[k] > 0.0:
                # In units of B: its square may be too small or too large for a number where it is not.
                weights[k] = total[k] / bound / (1.0 + squares[k] / bound / bound)
                weight += weights[k]
    for k in range(K):
        if weight > 0.0:
            weights[k] /= weight
        elif awake[k]:
            weights[k] = 1.0 / count


@njit(cache=True)
def learn_polynomial(total, squares, bound, forecasts, target, mixed, awake):
    """One step: update `total` and `squares`; returns the new bound. An expert asleep gains nothing."""
    # The last rule's experts are fewer than the forecasts it is given: the last of those is its own.
    largest = largest_gain(bound, forecasts[: len(total)], target, mixed, awake)
    if bound > 0.0:
        for k in range(len(total)):
            if awake[k]:
                gain = 2.0 * (mixed - target) * (mixed - forecasts[k]) * (bound / largest)
                total[k] += gain
                squares[k] += gain * gain
    return largest
