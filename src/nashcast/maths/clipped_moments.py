"""Exact mean and covariance of hard-sigmoid features: Z = clip(v/6 + 1/2, 0, 1) with v = a + σW, W shared by rows.

A clip is the difference of two ReLUs, clip(x, 0, 1) = x₊ - (x - 1)₊, so its moments are sums of theirs.
"""

from __future__ import annotations

from numba import njit

from nashcast.maths.relu_moments import cut_covariance, tails


@njit(cache=True)
def hard_sigmoid(v):
    return min(max(v / 6.0 + 0.5, 0.0), 1.0)


@njit(cache=True)
def clipped_mean(a, noise):
    x, s = a / 6.0 + 0.5, noise / 6.0
    if noise == 0.0:
        return min(max(x, 0.0), 1.0)
    # From above, 1 - E(1 - x)₊ …: the branch whose two terms do not cancel.
    if x > 0.5:
        high, low = tails(1.0 - x, s), tails(-x, s)
        return 1.0 - ((1.0 - x) * high.below + s * high.density) + (s * low.density - x * low.below)
    low, high = tails(x, s), tails(x - 1.0, s)
    return (x * low.below + s * low.density) - ((x - 1.0) * high.below + s * high.density)


@njit(cache=True)
def clipped_covariance(a, noise_a, b, noise_b):
    if noise_a == 0.0 or noise_b == 0.0:
        return 0.0
    s, t = noise_a / 6.0, noise_b / 6.0
    x, y = a / 6.0 + 0.5, b / 6.0 + 0.5
    x_low, x_high = tails(x, s), tails(x - 1.0, s)
    if a == b and noise_a == noise_b:
        both = cut_covariance(x_low, x_low) - 2.0 * cut_covariance(x_low, x_high)
        return s * s * (both + cut_covariance(x_high, x_high))
    y_low, y_high = tails(y, t), tails(y - 1.0, t)
    both = cut_covariance(x_low, y_low) - cut_covariance(x_low, y_high)
    return s * t * (both - cut_covariance(x_high, y_low) + cut_covariance(x_high, y_high))
