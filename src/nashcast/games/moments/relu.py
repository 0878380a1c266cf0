"""Exact mean and covariance of ReLU random features: Z = ReLU(a + σW) with one W for each column, shared by its rows.

Everything comes from one standardised function, the covariance of (u + W)₊ and (v + W)₊. Written as E[··] - E[·]E[·]
it loses all digits once u is large, so each sign has its own form: with g(u) = (-u - W)₊, the part that the cut
removes, (u + W)₊ = u + W + g(u), and E[W g(u)] = -Φ(-u).

All arrays of a call have one shape; noise is positive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.games.moments.normal import Tails, tails


def cut_mean(p: Tails) -> np.ndarray:
    """E (u + W)₊."""
    return p.u * p.below + p.density


def removed_mean(p: Tails) -> np.ndarray:
    """E (-u - W)₊: the mean that the cut removes."""
    return p.density - p.u * p.above


def cut_covariance(p: Tails, q: Tails) -> np.ndarray:
    """Cov((u + W)₊, (v + W)₊)."""
    if p is q:
        return _cut_variance(p)
    swap = p.u < q.u
    if swap.all():
        p, q = q, p
    elif swap.any():
        p, q = (
            Tails(*(np.where(swap, b, a) for a, b in zip(p, q, strict=True))),
            Tails(*(np.where(swap, a, b) for a, b in zip(p, q, strict=True))),
        )
    u, v = p.u, q.u
    both_negative = (u * v + 1.0) * q.below + u * q.density - cut_mean(p) * cut_mean(q)
    apart = q.below - cut_mean(q) * removed_mean(p)
    product = (u * v + 1.0) * p.above - v * p.density
    both_positive = 1.0 - p.above - q.above + product - removed_mean(p) * removed_mean(q)
    return np.where(u <= 0.0, both_negative, np.where(v <= 0.0, apart, both_positive))


def _cut_variance(p: Tails) -> np.ndarray:
    """Var (u + W)₊: the forms of both signs in the smaller tail, which differ by the variance without the cut."""
    size, small = np.abs(p.u), np.minimum(p.below, p.above)
    mean = p.density - size * small
    variance = (size * size + 1.0) * small - size * p.density - mean * mean
    return variance + np.where(p.u > 0.0, 1.0 - 2.0 * small, 0.0)


class ReluPoints(NamedTuple):
    """Arguments of the activation, a + noise·W, with their tails."""

    a: np.ndarray
    noise: np.ndarray
    tails: Tails


def relu_points(a: np.ndarray, noise: np.ndarray) -> ReluPoints:
    return ReluPoints(a, noise, tails(a, noise))


def relu_mean(p: ReluPoints) -> np.ndarray:
    return p.a * p.tails.below + p.noise * p.tails.density


def relu_covariance(p: ReluPoints, q: ReluPoints) -> np.ndarray:
    return p.noise * q.noise * cut_covariance(p.tails, q.tails)
