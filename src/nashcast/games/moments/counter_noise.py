"""Counter-based noise: the normal number at (key, step, index) is always the same.

An encoder's noise at step t then does not depend on earlier calls: forecasting twice, replaying a series in one call,
or resuming a saved run gives the same numbers, in any process.
"""

from __future__ import annotations

from functools import lru_cache
from math import cos, log, pi

import numpy as np

# The increments and multipliers of SplitMix64 (Steele, Lea and Flood, 2014), whose output passes BigCrush.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_BITS = 2**64
# Steps, and numbers per step, that are computed at a time: a stream asks for one step after the other.
_BLOCK_STEPS, _BLOCK_NUMBERS = 32, 4096


def _scramble(bits: np.ndarray) -> np.ndarray:
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))


def _uniform(bits: np.ndarray) -> np.ndarray:
    """In the open interval (0, 1), from the upper 53 bits."""
    return ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _each(function, values: np.ndarray) -> np.ndarray:
    """The C library's function of every number: NumPy's own log and cos differ in the last bit between processors."""
    return np.fromiter(map(function, values.ravel().tolist()), np.float64, values.size).reshape(values.shape)


def step_normals(key: int, step: int, size: int) -> np.ndarray:
    """The first `size` numbers of one step. If few, those of neighbouring steps are computed and cached too."""
    if size > _BLOCK_NUMBERS // _BLOCK_STEPS:
        return standard_normals(key, step, np.arange(size))
    block, place = divmod(step, _BLOCK_STEPS)
    return _block(key, block, size)[place].copy()


@lru_cache(maxsize=64)
def _block(key: int, block: int, size: int) -> np.ndarray:
    steps = np.arange(block * _BLOCK_STEPS, (block + 1) * _BLOCK_STEPS)
    return standard_normals(key, steps[:, None], np.arange(size))


def standard_normals(key: int, steps: np.ndarray | int, indices: np.ndarray | int) -> np.ndarray:
    """The numbers of one key at steps and indices, broadcast, by Box and Muller's transform of two hashed uniforms."""
    # Arrays of at least one axis: unsigned integers wrap around in them without a warning.
    step = np.atleast_1d(np.asarray(steps, dtype=np.int64)).view(np.uint64)
    index = np.atleast_1d(np.asarray(indices, dtype=np.int64)).view(np.uint64)
    one = np.uint64(1)
    place = _scramble(np.uint64(key % _BITS) + _GOLDEN * (step + one))
    bits = _scramble(place + _GOLDEN * (index + one))
    radius = np.sqrt(-2.0 * _each(log, _uniform(bits)))
    return radius * _each(cos, 2.0 * pi * _uniform(_scramble(bits + _GOLDEN)))
