"""Exact mean and covariance of ReLU random features: Z = ReLU(a + σW) with one W for each column, shared by its rows.

Everything comes from one standardised function, the covariance of (u + W)₊ and (v + W)₊. Written as E[··] - E[·]E[·]
it loses all digits once u is large, so each sign has its own form: with g(u) = (-u - W)₊ what the cut removes,
(u + W)₊ = u + W + g(u), and E[W g(u)] = -Φ(-u).
"""

from __future__ import annotations

from math import erfc, exp, pi, sqrt

from numba import njit

# Beyond this many standard deviations Φ and φ are 0 or 1 in float64, and u itself may overflow.
CERTAIN = 40.0


@njit(cache=True)
def normal_density(u):
    return exp(-0.5 * u * u) / sqrt(2.0 * pi)


@njit(cache=True)
def normal_below(u):
    """Φ(u), to full relative accuracy in the left tail."""
    return 0.5 * erfc(-u / sqrt(2.0))


@njit(cache=True)
def cut_mean(u):
    """E (u + W)₊."""
    return u * normal_below(u) + normal_density(u)


@njit(cache=True)
def _cut_product(u, v):
    """E (u + W)₊ (v + W)₊."""
    low = min(u, v)
    return (u * v + 1.0) * normal_below(low) + (u + v - low) * normal_density(low)


@njit(cache=True)
def cut_covariance(u, v):
    """Cov((u + W)₊, (v + W)₊)."""
    if u < v:
        u, v = v, u
    if u <= 0.0:
        return _cut_product(u, v) - cut_mean(u) * cut_mean(v)
    if v <= 0.0:
        return normal_below(v) - cut_mean(v) * cut_mean(-u)
    removed = _cut_product(-u, -v) - cut_mean(-u) * cut_mean(-v)
    return 1.0 - normal_below(-u) - normal_below(-v) + removed


@njit(cache=True)
def standardise(a, noise):
    """A / noise, held where the normal distribution has become certain; noise > 0."""
    if abs(a) >= CERTAIN * noise:
        return CERTAIN if a > 0.0 else -CERTAIN
    return a / noise


@njit(cache=True)
def relu_mean(a, noise):
    if noise == 0.0:
        return max(a, 0.0)
    u = standardise(a, noise)
    return a * normal_below(u) + noise * normal_density(u)


@njit(cache=True)
def relu_covariance(a, noise_a, b, noise_b):
    if noise_a == 0.0 or noise_b == 0.0:
        return 0.0
    return noise_a * noise_b * cut_covariance(standardise(a, noise_a), standardise(b, noise_b))
