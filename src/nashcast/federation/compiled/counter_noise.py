"""Twin of `games.moments.counter_noise`: one number at a time, to the bit."""

from __future__ import annotations

from math import cos, log, pi, sqrt

import numpy as np
from numba import njit, uint64

# The increments and multipliers of SplitMix64 (Steele, Lea and Flood, 2014), whose output passes BigCrush.
_GOLDEN = uint64(0x9E3779B97F4A7C15)
_FIRST = uint64(0xBF58476D1CE4E5B9)
_SECOND = uint64(0x94D049BB133111EB)


@njit(cache=True)
def _scramble(bits):
    bits = (bits ^ (bits >> uint64(30))) * _FIRST
    bits = (bits ^ (bits >> uint64(27))) * _SECOND
    return bits ^ (bits >> uint64(31))


@njit(cache=True)
def _uniform(bits):
    """In the open interval (0, 1), from the upper 53 bits."""
    return (np.float64(bits >> uint64(11)) + 0.5) * 2.0**-53


@njit(cache=True)
def standard_normal_at(key, step, index):
    """The number of one key at one step and index, by Box and Muller's transform of two hashed uniforms."""
    place = _scramble(uint64(key) + _GOLDEN * (uint64(step) + uint64(1)))
    bits = _scramble(place + _GOLDEN * (uint64(index) + uint64(1)))
    radius = sqrt(-2.0 * log(_uniform(bits)))
    return radius * cos(2.0 * pi * _uniform(_scramble(bits + _GOLDEN)))
