"""Float64 numbers as integers modulo 2^128: their sums are exact and do not depend on the order of summation.

x is stored as round(x · 2^fraction) in two's complement, in two uint64 limbs, the low one first. A sum of N numbers
differs from the true sum by at most N · 2^-(fraction + 1), then it is rounded once to float64 (2^-53 relative). With 64
fraction bits that is 3e-16 for 10^4 agents before the rounding; numbers of 2^-12 and more are represented exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput, NashcastError

FRACTION = 64
MOST_TERMS = 2**14  # a sum of this many numbers cannot wrap around


class OutOfRange(NashcastError, ArithmeticError):
    """A number is not finite, or so large that a sum over agents could wrap around."""

    def __init__(self, value: float, limit: float):
        super().__init__(
            f"terms: got {value:g}. Numbers to be added up under masks must be finite and below {limit:.2g} in size: "
            "sit this game out, scale the stream, or lower the fraction bits."
        )
        self.value = value


def largest(fraction: int = FRACTION) -> float:
    """The bound on the absolute value of every number: 2^(113 - fraction)."""
    if isinstance(fraction, bool) or not isinstance(fraction, int) or not 0 <= fraction <= 112:
        raise InvalidInput("fraction", check.describe(fraction), "Pass a whole number of bits from 0 to 112.")
    return 2.0 ** (127 - fraction) / MOST_TERMS


def encode(values: np.ndarray, fraction: int = FRACTION) -> np.ndarray:
    """Numbers of any shape as limbs, (size, 2) uint64."""
    flat, limit = check.numbers("values", values, "any shape").reshape(-1), largest(fraction)
    fits = np.abs(flat) < limit
    if not fits.all():
        raise OutOfRange(float(flat[np.argmin(fits)]), limit)
    # Either below 2^53 and rounded here, or an integer already: both limbs are exact as float64.
    size = np.rint(np.abs(flat) * 2.0**fraction)
    upper = np.floor(size / _LIMB)
    limbs = np.stack([size - upper * _LIMB, upper], axis=1).astype(np.uint64)
    return np.where((flat < 0.0)[:, None], _negative(limbs), limbs)


def decode(limbs: np.ndarray, fraction: int = FRACTION) -> np.ndarray:
    """The numbers nearest to these limbs, (size,)."""
    largest(fraction)
    below_zero = limbs[:, 1] >> TOP == ONE
    low, high = np.where(below_zero[:, None], _negative(limbs), limbs).T
    # The leading 64 bits; the last is a sticky bit for all bits that are cut off, so that only one rounding occurs.
    lead, shift = high.copy(), np.zeros(len(limbs), dtype=np.uint64)
    for step in (32, 16, 8, 4, 2, 1):
        empty = lead >> np.uint64(64 - step) == ZERO
        lead = np.where(empty, lead << np.uint64(step), lead)
        shift += np.where(empty, np.uint64(step), ZERO)
    # A shift by 64 is not defined; where the upper limb is empty the lower one is taken whole.
    carried = np.where(shift > ZERO, low >> (np.uint64(64) - np.maximum(shift, ONE)), ZERO)
    rest = low << np.minimum(shift, TOP)
    leading = lead | carried | np.where(rest != ZERO, ONE, ZERO)
    whole = high == ZERO
    unit = np.where(whole, 1.0, _LIMB * np.exp2(-shift.astype(np.float64))) * 2.0**-fraction
    size = np.where(whole, low, leading).astype(np.float64) * unit
    return np.where(below_zero, -size, size)


def add_up(terms: np.ndarray, minus: Sequence[bool] | np.ndarray | None = None) -> np.ndarray:
    """The sum of (terms, size, 2) over its first axis, modulo 2^128; terms marked in `minus` are subtracted."""
    if len(terms) > MOST_TERMS:
        raise InvalidInput("terms", f"{len(terms)} of them", f"Add up at most {MOST_TERMS}.")
    if minus is not None:
        terms = np.where(np.asarray(minus, dtype=np.bool_)[:, None, None], _negative(terms), terms)
    # 32-bit halves in 64-bit words leave room for the carries of MOST_TERMS terms.
    halves = np.stack([terms & HALF, terms >> HALF_BITS], axis=-1).sum(axis=0, dtype=np.uint64)
    (low, low_up), (high, high_up) = (halves[:, limb].T for limb in (0, 1))
    low_up = low_up + (low >> HALF_BITS)
    high = high + (low_up >> HALF_BITS)
    high_up = high_up + (high >> HALF_BITS)
    return np.stack([low & HALF | low_up << HALF_BITS, high & HALF | high_up << HALF_BITS], axis=1)


ZERO, ONE, TOP = np.uint64(0), np.uint64(1), np.uint64(63)
HALF, HALF_BITS = np.uint64(2**32 - 1), np.uint64(32)
_LIMB = 2.0**64


def _negative(limbs: np.ndarray) -> np.ndarray:
    """Minus these numbers, (…, 2)."""
    low = ~limbs[..., 0] + ONE
    return np.stack([low, ~limbs[..., 1] + np.where(low == ZERO, ONE, ZERO)], axis=-1)
