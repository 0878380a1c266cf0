"""Arguments checked once, at the edge: compiled solvers trust what they are given."""

from __future__ import annotations

from math import inf

import numpy as np

from nashcast.errors import InvalidInput

_FLOAT = np.dtype(np.float64)


def describe(value) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    return f"{type(value).__name__} {value!r:.60}"


def shape_text(shape: str | tuple) -> str:
    if isinstance(shape, str):
        return shape
    return "(" + ", ".join(str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"


def numbers(name: str, value, meaning: str | tuple) -> np.ndarray:
    """`value` as a contiguous float64 array; the same array where it is one already."""
    if type(value) is np.ndarray and value.dtype == np.float64 and value.flags.c_contiguous:
        return value
    try:
        return np.asarray(value, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InvalidInput(name, describe(value), f"Pass numbers of shape {shape_text(meaning)}.") from None


def shaped(name: str, value, shape: tuple, meaning: str) -> np.ndarray:
    """`value` as a contiguous float64 array of exactly this shape; `meaning` spells the shape out for the message."""
    if type(value) is np.ndarray and value.shape == shape and value.dtype is _FLOAT and value.flags.c_contiguous:
        return value
    result = numbers(name, value, meaning)
    if result.shape != shape:
        got = f"shape {shape_text(result.shape)}"
        raise InvalidInput(name, got, f"Pass an array of shape {meaning} = {shape_text(shape)}.")
    return result


def array(name: str, value, shape: tuple, meaning: str) -> np.ndarray:
    """As `shaped`, and finite throughout."""
    result = shaped(name, value, shape, meaning)
    finite(name, result)
    return result


def of_rank(name: str, value, meaning: tuple) -> np.ndarray:
    """`value` as a contiguous float64 array with one axis of length ≥ 1 for each word of `meaning`."""
    result = numbers(name, value, meaning)
    if result.ndim != len(meaning) or 0 in result.shape:
        got = f"shape {shape_text(result.shape)}"
        raise InvalidInput(name, got, f"Pass an array of shape {shape_text(meaning)}, every length at least 1.")
    return result


def all_finite(values: np.ndarray) -> bool:
    """Whether every entry is finite."""
    return bool(np.isfinite(values).all())


def finite(name: str, value: np.ndarray) -> None:
    if all_finite(value):
        return
    bad = ~np.isfinite(value)
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    where = f" at index {place}" if place else ""
    remedy = f"Remove or fill the {int(bad.sum())} entries that are not finite."
    raise InvalidInput(name, f"{value[place]}{where}", remedy)


def per_agent(name: str, value, agents: int) -> np.ndarray:
    """One number for each agent, from one number for all or an array with one each. Its range is not checked here."""
    if type(value) is not np.ndarray and np.ndim(value) == 0:
        return np.full(agents, number(name, value))
    return shaped(name, value, (agents,), "(agents,)")


def in_range(name: str, value: np.ndarray, *, above: float | None = None, least: float | None = None) -> None:
    finite(name, value)
    lowest = value.min()
    if above is not None and not lowest > above:
        raise InvalidInput(name, f"{lowest:g}", f"Pass numbers > {above:g}.")
    if least is not None and not lowest >= least:
        raise InvalidInput(name, f"{lowest:g}", f"Pass numbers ≥ {least:g}.")


def number(
    name: str, value, *, above: float | None = None, least: float | None = None, most: float | None = None
) -> float:
    """One finite number in range."""
    try:
        result = float(value)
    except (TypeError, ValueError):
        raise InvalidInput(name, describe(value), "Pass one number.") from None
    if not -inf < result < inf:
        raise InvalidInput(name, f"{result}", "Pass a finite number.")
    if above is not None and not result > above:
        raise InvalidInput(name, f"{result:g}", f"Pass a number > {above:g}.")
    if least is not None and not result >= least:
        raise InvalidInput(name, f"{result:g}", f"Pass a number ≥ {least:g}.")
    if most is not None and not result <= most:
        raise InvalidInput(name, f"{result:g}", f"Pass a number ≤ {most:g}.")
    return result


def whole(name: str, value, *, least: int) -> int:
    """One whole number in range."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidInput(name, describe(value), f"Pass a whole number ≥ {least}.")
    return int(value)
