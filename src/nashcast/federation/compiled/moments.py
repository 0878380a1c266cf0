"""Twin of `games.moments`: an echo state's sampled moments, one number at a time.

The hard sigmoid's closed form is a difference of ReLU moments here, which needs σ ≤ 6; `replay` refuses larger values.
"""

from __future__ import annotations

from math import erfc, exp, pi, sqrt, tanh
from typing import NamedTuple

import numpy as np
from numba import njit

RELU, HARD_SIGMOID, TANH = 0, 1, 2
CODES = {"relu": RELU, "hard_sigmoid": HARD_SIGMOID, "tanh": TANH}
LARGEST_NOISE = 6.0
# Beyond this many standard deviations Φ is 0 or 1 and φ is 0 in float64, and u itself may overflow.
CERTAIN = 40.0


class Echo(NamedTuple):
    """One echo state's settings. activation: its code.   recurrent: B, (y_dim, y_dim).   noise: σ, (y_dim,)."""

    activation: int
    leak: float
    recurrent: np.ndarray
    noise: np.ndarray


class Tails(NamedTuple):
    """A standardised point u with Φ(u), Φ(-u) and φ(u), each to full relative accuracy where it is small."""

    u: float
    below: float
    above: float
    density: float


@njit(cache=True)
def tails(a, noise):
    """The point a / noise, clipped where Φ is 0 or 1 to rounding; noise > 0."""
    u = a / noise if abs(a) < CERTAIN * noise else (CERTAIN if a > 0.0 else -CERTAIN)
    small = 0.5 * erfc(abs(u) / sqrt(2.0))
    density = exp(-0.5 * u * u) / sqrt(2.0 * pi)
    return Tails(u, 1.0 - small, small, density) if u > 0.0 else Tails(u, small, 1.0 - small, density)


@njit(cache=True)
def cut_mean(p):
    """E (u + W)₊."""
    return p.u * p.below + p.density


@njit(cache=True)
def removed_mean(p):
    """E (-u - W)₊: the mean that the cut removes."""
    return p.density - p.u * p.above


@njit(cache=True)
def cut_covariance(p, q):
    """Cov((u + W)₊, (v + W)₊)."""
    if p.u < q.u:
        p, q = q, p
    u, v = p.u, q.u
    if u <= 0.0:
        product = (u * v + 1.0) * q.below + u * q.density
        return product - cut_mean(p) * cut_mean(q)
    if v <= 0.0:
        return q.below - cut_mean(q) * removed_mean(p)
    product = (u * v + 1.0) * p.above - v * p.density
    return 1.0 - p.above - q.above + product - removed_mean(p) * removed_mean(q)


@njit(cache=True)
def relu_mean(a, noise):
    if noise == 0.0:
        return max(a, 0.0)
    point = tails(a, noise)
    return a * point.below + noise * point.density


@njit(cache=True)
def relu_covariance(a, noise_a, b, noise_b):
    if noise_a == 0.0 or noise_b == 0.0:
        return 0.0
    return noise_a * noise_b * cut_covariance(tails(a, noise_a), tails(b, noise_b))


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


@njit(cache=True)
def activate(activation, v):
    if activation == RELU:
        return max(v, 0.0)
    if activation == HARD_SIGMOID:
        return hard_sigmoid(v)
    return tanh(v)


@njit(cache=True)
def _mean(activation, a, noise):
    return relu_mean(a, noise) if activation == RELU else clipped_mean(a, noise)


@njit(cache=True)
def _covariance(activation, a, noise_a, b, noise_b):
    if activation == RELU:
        return relu_covariance(a, noise_a, b, noise_b)
    return clipped_covariance(a, noise_a, b, noise_b)


@njit(cache=True)
def drawn_steps(activation, steps):
    """The steps of a window whose noise is drawn, as first and last + 1."""
    return 1, steps if activation == TANH else steps - 1


@njit(cache=True, nogil=True)
def fill_echo_moments(echo, drive, start, normals, scratch, mean, covariance):
    """The compiled form. normals: (samples, steps, features).   scratch: (2, samples, y_dim).

    Only `drawn_steps` of the normals are used: the first step is known, and the last of a closed form is not drawn.
    """
    activation, leak, recurrent, noise = echo
    steps, p, d = drive.shape
    samples = len(normals)
    exact = activation != TANH
    paths, expected = scratch[0], scratch[1]
    covariance[:] = 0.0
    for f in range(d):
        for k in range(p):
            mean[0, k, f] = start[k, f]
            for s in range(samples):
                paths[s, k] = start[k, f]
        for t in range(1, steps):
            # All paths leave the same start: where their next step has a closed form, one path suffices.
            used = 1 if exact and t == 1 else samples
            for s in range(samples):
                for k in range(p):
                    total = drive[t, k, f]
                    for j in range(p):
                        total += recurrent[k, j] * paths[s, j]
                    expected[s, k] = total
                if exact and s < used:
                    # The variance of a path once all but its last step is known.
                    for k in range(p):
                        for j in range(k + 1):
                            own = _covariance(activation, expected[s, k], noise[k], expected[s, j], noise[j])
                            covariance[t, k, j, f, f] += leak * leak * own / used
                for k in range(p):
                    entering, kept = expected[s, k], (1.0 - leak) * paths[s, k]
                    if not exact or t < steps - 1:
                        drawn = activate(activation, entering + noise[k] * normals[s, t, f])
                        paths[s, k] = kept + leak * drawn
                    if not exact:
                        expected[s, k] = paths[s, k]
                    elif s < used:
                        expected[s, k] = kept + leak * _mean(activation, entering, noise[k])
            for k in range(p):
                total = 0.0
                for s in range(used):
                    total += expected[s, k]
                mean[t, k, f] = total / used
            for k in range(p):
                for j in range(k + 1):
                    total = 0.0
                    for s in range(used):
                        total += (expected[s, k] - mean[t, k, f]) * (expected[s, j] - mean[t, j, f])
                    covariance[t, k, j, f, f] += total / max(used - 1, 1)
                    covariance[t, j, k, f, f] = covariance[t, k, j, f, f]
