"""Exact mean and covariance of ReLU random features: Z = ReLU(a + σW) with one W for each column, shared by its rows.

Everything comes from one standardised function, the covariance of (u + W)₊ and (v + W)₊. Written as E[··] - E[·]E[·]
it loses all digits once u is large, so each sign has its own form: with g(u) = (-u - W)₊ what the cut removes,
(u + W)₊ = u + W + g(u), and E[W g(u)] = -Φ(-u).
"""

from __future__ import annotations

from math import erfc, exp, pi, sqrt
from typing import NamedTuple

from numba import njit

# Beyond this many standard deviations Φ and φ are 0 or 1 in float64, and u itself may overflow.
CERTAIN = 40.0


class Tails(NamedTuple):
    """A standardised point u with Φ(u), Φ(-u) and φ(u), each to full relative accuracy where it is small."""

    u: float
    below: float
    above: float
    density: float


@njit(cache=True)
def tails(a, noise):
    """The point a / noise, held where the normal distribution has become certain; noise > 0."""
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
    """E (-u - W)₊: what the cut takes away."""
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
