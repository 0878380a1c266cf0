"""The standard normal distribution at points u = a/σ, each tail to full relative accuracy, without SciPy."""

from __future__ import annotations

from math import erfc, pi, sqrt
from typing import NamedTuple

import numpy as np

# Beyond this many standard deviations Φ is 0 or 1 and φ is 0 in float64, and u itself may overflow.
CERTAIN = 40.0


class Tails(NamedTuple):
    """Points u with Φ(u), Φ(-u) and φ(u)."""

    u: np.ndarray
    below: np.ndarray
    above: np.ndarray
    density: np.ndarray


def upper_tail(u: np.ndarray) -> np.ndarray:
    """Φ(-u)."""
    scaled = (u / sqrt(2.0)).ravel().tolist()
    return 0.5 * np.fromiter(map(erfc, scaled), np.float64, u.size).reshape(u.shape)


def tails_at(u: np.ndarray) -> Tails:
    small = upper_tail(np.abs(u))
    large, positive = 1.0 - small, u > 0.0
    density = np.exp(-0.5 * u * u) / sqrt(2.0 * pi)
    return Tails(u, np.where(positive, large, small), np.where(positive, small, large), density)


def tails(a: np.ndarray, noise: np.ndarray) -> Tails:
    """The points a / noise, clipped where Φ is 0 or 1 to rounding; noise > 0."""
    with np.errstate(over="ignore", under="ignore"):
        u = a / noise
    return tails_at(np.minimum(np.maximum(u, -CERTAIN), CERTAIN))
