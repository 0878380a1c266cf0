"""Exact mean and covariance of hard-sigmoid features: Z = clip(v/6 + 1/2, 0, 1) with v = a + σW, W shared by rows.

With x = a/6 + 1/2 and s = σ/6, Z exceeds z where W exceeds (z - x)/s. So the mean is the average of Φ(-w) over the
interval I = [-x/s, (1-x)/s], and by Hoeffding's formula the covariance of two rows is the average of
Φ(min(w, w'))·Φ(-max(w, w')) over w in I and w' in I'. Nothing cancels in these integrals.

Where both intervals are longer than 1 they are evaluated as differences of ReLU moments, clip(x, 0, 1) = x₊ - (x - 1)₊.
Over a short interval such a difference would lose its digits: there Gauss-Legendre quadrature is exact to rounding.

All arrays of a call have one shape; noise is positive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.games.moments.normal import Tails, tails, tails_at, upper_tail
from nashcast.games.moments.relu import cut_covariance, cut_mean

SHORT = 1.0
# Twelve points on [0, 1]: their error on an interval of length 1 is below rounding.
_NODES, _SHARES = np.polynomial.legendre.leggauss(12)
_NODES, _SHARES = 0.5 * (_NODES + 1.0), 0.5 * _SHARES


class ClippedPoints(NamedTuple):
    """Arguments x + s·W of the clip, with their tails above 0 and above 1."""

    x: np.ndarray
    s: np.ndarray
    low: Tails
    high: Tails


def clipped_points(a: np.ndarray, noise: np.ndarray) -> ClippedPoints:
    x, s = a / 6.0 + 0.5, noise / 6.0
    return ClippedPoints(x, s, tails(x, s), tails(x - 1.0, s))


def clipped_mean(p: ClippedPoints) -> np.ndarray:
    x, s, low, high = p
    from_below = (x * low.below + s * low.density) - ((x - 1.0) * high.below + s * high.density)
    # 1 - E(1 - x)₊ …, where x > 1/2: the form whose two terms do not cancel.
    from_above = ((1.0 - x) * high.above + s * high.density) - (s * low.density - x * low.above)
    mean = np.where(x > 0.5, 1.0 - from_above, from_below)
    short = s > 1.0 / SHORT
    if short.any():
        first = -x[short] / s[short]
        mean[short] = upper_tail(first[..., None] + _NODES / s[short][..., None]) @ _SHARES
    return mean


def clipped_covariance(p: ClippedPoints, q: ClippedPoints) -> np.ndarray:
    crossed = cut_covariance(p.low, q.high)
    crossed = 2.0 * crossed if p is q else crossed + cut_covariance(p.high, q.low)
    result = p.s * q.s * (cut_covariance(p.low, q.low) - crossed + cut_covariance(p.high, q.high))
    short = np.maximum(p.s, q.s) > 1.0 / SHORT
    if short.any():
        result[short] = _average_of_pieces(p.x[short], p.s[short], q.x[short], q.s[short])
    return result


class Interval(NamedTuple):
    """The points w = first + length·z for z in [0, 1]; share: its part of I, as a fraction, where I was clipped."""

    first: np.ndarray
    length: np.ndarray
    share: np.ndarray

    def flipped(self) -> Interval:
        return Interval(-self.first - self.length, self.length, self.share)

    def fraction_below(self, w: np.ndarray) -> np.ndarray:
        inside = np.divide(w - self.first, self.length, where=self.length > 0.0, out=np.zeros_like(w))
        return np.clip(inside, 0.0, 1.0)


def _average_of_pieces(x, s, y, t) -> np.ndarray:
    """Hoeffding's average over I × I', cut into pieces on which the smaller of w and w' is always the same.

    Pieces are fractions of their interval, so that they add up to 1 for any length.
    """
    i, j = _interval(x, s), _interval(y, t)
    # The common piece of both goes from `low` to `high`, as fractions of each.
    i_low, i_high = i.fraction_below(j.first), i.fraction_below(j.first + j.length)
    j_low, j_high = j.fraction_below(i.first), j.fraction_below(i.first + i.length)
    zero, one = np.zeros_like(x), np.ones_like(x)
    total = (i_high - i_low) * (j_high - j_low) * _square(i.first + i.length * i_low, i.length * (i_high - i_low))
    for lower, (a, b), upper, (c, d) in (
        (i, (i_low, i_high), j, (j_low, j_high)),
        (j, (j_low, j_high), i, (i_low, i_high)),
    ):
        below, above = _mass_below(lower, zero, a), _mass_above(upper, d, one)
        total += below * (_mass_above(upper, c, d) + above) + _mass_below(lower, a, b) * above
    return i.share * j.share * total


def _interval(x, s) -> Interval:
    """I, clipped to where the integrand is not 0 unless it is short."""
    first, last = tails(-x, s).u, tails(1.0 - x, s).u
    short = s > 1.0 / SHORT
    length = np.where(short, 1.0 / s, last - first)  # the difference of two large numbers has no digits
    return Interval(first, length, np.where(short, 1.0, s * length))


def _mass_below(i: Interval, low, high) -> np.ndarray:
    """The integral of Φ(first + length·z) over z from low to high."""
    width = high - low
    points = i.first[..., None] + i.length[..., None] * (low[..., None] + width[..., None] * _NODES)
    short = upper_tail(-points) @ _SHARES * width
    difference = cut_mean(tails_at(i.first + i.length * high)) - cut_mean(tails_at(i.first + i.length * low))
    long = width * i.length > SHORT
    return np.where(long, np.divide(difference, i.length, where=long, out=np.zeros_like(width)), short)


def _mass_above(i: Interval, low, high) -> np.ndarray:
    """The integral of Φ(-first - length·z) over z from low to high."""
    return _mass_below(i.flipped(), 1.0 - high, 1.0 - low)


def _square(low, width) -> np.ndarray:
    """The average of Φ(min(w, w'))·Φ(-max(w, w')) over the square from low to low + width: that over its triangle."""
    low = np.where(2.0 * low + width < 0.0, -low - width, low)  # by symmetry, to the tail where both are accurate
    larger = low[..., None] + width[..., None] * _NODES
    smaller = low[..., None, None] + width[..., None, None] * (_NODES[:, None] * _NODES)
    short = 2.0 * (upper_tail(-smaller) @ _SHARES * _NODES * upper_tail(larger)) @ _SHARES
    p, q = tails_at(-low), tails_at(-low - width)
    difference = cut_covariance(p, p) - 2.0 * cut_covariance(p, q) + cut_covariance(q, q)
    long = width > SHORT
    return np.where(long, np.divide(difference, width * width, where=long, out=np.zeros_like(width)), short)
