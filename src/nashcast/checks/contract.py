"""Defines a contract, runs a list of them, and compares two results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import NashcastError

STEPS = 12  # of the stream made up for a check


class ContractViolation(NashcastError):
    """An encoder or an agent breaks a contract; the message names it, the violation and the remedy."""

    def __init__(self, contract: str, seen: str, remedy: str):
        super().__init__(f"contract '{contract}' is broken: {seen}. {remedy}")
        self.contract = contract


class Contract(NamedTuple):
    name: str
    description: str
    remedy: str
    check: Callable[[Any], str | None]


def run(contracts: list[Contract], case) -> list[str]:
    for contract in contracts:
        try:
            seen = contract.check(case)
        except Exception as error:
            raised = f"{type(error).__name__}: {error}".rstrip(".")
            raise ContractViolation(contract.name, f"raised {raised}", contract.remedy) from error
        if seen is not None:
            raise ContractViolation(contract.name, seen, contract.remedy)
    return [contract.name for contract in contracts]


def same(a, b) -> bool:
    """Whether two plain values agree to the bit. NaN agrees with NaN: a state may have missing values."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        both = isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b)
        return bool(both) and all(same(one, other) for one, other in zip(a, b, strict=True))
    if a is None or b is None:
        return a is b
    return np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)


def near(a, b, tolerance: float = 1e-12) -> bool:
    """Whether two plain values agree up to rounding, relative to the largest number in them."""
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return all(near(one, other, tolerance) for one, other in zip(a, b, strict=True))
    if a is None or b is None or isinstance(a, tuple) or isinstance(b, tuple) or np.shape(a) != np.shape(b):
        return same(a, b)
    scale = max(np.max(np.abs(a), initial=0.0), np.max(np.abs(b), initial=0.0))
    return bool(np.allclose(a, b, rtol=0.0, atol=tolerance * scale, equal_nan=True))


def is_whole(value) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= 0)


def wrong_array(name: str, value, shape: tuple) -> str | None:
    """The fault of `value` as a finite float64 array of this shape, or None."""
    if type(value) is not np.ndarray or value.shape != shape:
        return f"{name} is {check.describe(value)}, not an array of shape {check.shape_text(shape)}"
    return wrong_numbers(name, value)


def wrong_numbers(name: str, value: np.ndarray) -> str | None:
    if value.dtype != np.float64:
        return f"{name} has type {value.dtype}"
    if not np.isfinite(value).all():
        return f"{name} has {int((~np.isfinite(value)).sum())} entries that are not finite"
    return None
