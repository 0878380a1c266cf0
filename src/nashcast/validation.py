"""Checks of arguments at the edge of the package; internal code does not check again.

Each check returns the value in the form the mathematics takes, or raises `InvalidInput` with the argument's name, what
it got and what to pass instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from math import inf

import numpy as np

from nashcast.errors import InvalidInput

_FLOAT = np.dtype(np.float64)
_NUMERIC_KINDS = "biuf"  # NumPy's kinds of bool, signed and unsigned integer, and float
_TEXT = (str, bytes, bytearray, np.str_, np.bytes_)


def describe(value) -> str:
    """A value in a message: shape and type of an array, type and the first characters of anything else."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    try:
        return f"{type(value).__name__} {value!r:.60}"
    except Exception:  # an integer of more than 4300 digits, or an object whose __repr__ fails
        return f"an object of type {type(value).__name__}"


def shape_text(shape: str | tuple) -> str:
    """A shape in a message; the entries may be numbers or words."""
    if isinstance(shape, str):
        return shape
    return "(" + ", ".join(str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"


def numbers(name: str, value, meaning: str | tuple) -> np.ndarray:
    """`value` as a contiguous float64 array; the same array where it is one already.

    NumPy converts strings, dates, masked and complex arrays to float64 silently; they are refused here by name.
    """
    if type(value) is np.ndarray and value.dtype == np.float64 and value.flags.c_contiguous:
        return value
    if type(value) is float:
        return np.array(value)
    _refuse_lookalikes(name, value)
    try:
        array = np.asarray(value)
        if array.dtype.kind not in _NUMERIC_KINDS + "O":
            _refuse_kind(name, array.dtype)
        if array.dtype.kind == "O":
            _refuse_lookalikes_inside(name, array)
        with np.errstate(over="ignore"):  # a longdouble beyond float64 becomes infinite
            return np.asarray(array, dtype=np.float64, order="C")
    except OverflowError:
        raise InvalidInput(name, "an integer beyond the largest float", "Rescale it.") from None
    except InvalidInput:
        raise
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
    """Refuse an array with a NaN or an infinite entry; the message says where the first one is."""
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


def in_range(name: str, value: np.ndarray, *, above: float | None = None, min: float | None = None) -> None:  # noqa: A002
    """Refuse an array that is not finite or has an entry out of range: entries must be > above and ≥ min."""
    finite(name, value)
    lowest = value.min()
    if above is not None and not lowest > above:
        raise InvalidInput(name, f"{lowest:g}", f"Pass numbers > {above:g}.")
    if min is not None and not lowest >= min:
        raise InvalidInput(name, f"{lowest:g}", f"Pass numbers ≥ {min:g}.")


def number(
    name: str,
    value,
    *,
    above: float | None = None,
    min: float | None = None,  # noqa: A002
    max: float | None = None,  # noqa: A002
) -> float:
    """One finite number in range: > above, ≥ min and ≤ max."""
    try:
        result = float(value)
    except OverflowError:
        raise InvalidInput(name, "an integer beyond the largest float", "Pass a finite number.") from None
    except (TypeError, ValueError):
        raise InvalidInput(name, describe(value), "Pass one number.") from None
    if not -inf < result < inf:
        raise InvalidInput(name, f"{result}", "Pass a finite number.")
    if above is not None and not result > above:
        raise InvalidInput(name, f"{result:g}", f"Pass a number > {above:g}.")
    if min is not None and not result >= min:
        raise InvalidInput(name, f"{result:g}", f"Pass a number ≥ {min:g}.")
    if max is not None and not result <= max:
        raise InvalidInput(name, f"{result:g}", f"Pass a number ≤ {max:g}.")
    return result


def integer(name: str, value, *, min: int, max: int | None = None) -> int:  # noqa: A002
    """One integer ≥ min and ≤ max. A bool is not one."""
    # NumPy's durations are integers by type.
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, int | np.integer) or value < min:
        raise InvalidInput(name, describe(value), f"Pass a whole number ≥ {min}.")
    if max is not None and value > max:
        raise InvalidInput(name, f"{value}", f"Pass a whole number ≤ {max}.")
    return int(value)


def _refuse_lookalikes(name: str, value) -> None:
    """Refuse values that NumPy would convert to other numbers than intended, or cannot convert."""
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidInput(name, "a masked array", "Pass value.filled(np.nan), or an array without a mask.")
    if isinstance(value, list | tuple) and any(entry is np.ma.masked for entry in value):
        raise InvalidInput(name, "a masked entry", "Pass np.nan in its place.")
    if isinstance(value, _TEXT):
        raise InvalidInput(name, describe(value), "Pass numbers, e.g. float(text).")
    if isinstance(value, Mapping):
        raise InvalidInput(
            name, f"a {type(value).__name__}", "Pass its values in order, e.g. [row[key] for key in keys]."
        )
    if isinstance(value, Set):
        raise InvalidInput(name, f"a {type(value).__name__}, which has no order", "Pass a list or an array.")
    if isinstance(value, Iterator):
        raise InvalidInput(name, f"a {type(value).__name__}, which can be read only once", "Pass list(value).")


def _refuse_kind(name: str, dtype: np.dtype) -> None:
    if dtype.kind == "c":
        raise InvalidInput(name, f"complex numbers ({dtype})", "Pass the real and imaginary parts as two columns.")
    if dtype.kind in "Mm":
        what = "dates" if dtype.kind == "M" else "durations"
        remedy = "Convert them to numbers first, e.g. seconds since the start of the data."
        raise InvalidInput(name, f"{what} ({dtype})", remedy)
    if dtype.kind in "SUT":
        raise InvalidInput(name, f"text ({dtype})", "Pass numbers, e.g. array.astype(float).")
    raise InvalidInput(name, f"entries of type {dtype}", "Pass an array of numbers.")


def _refuse_lookalikes_inside(name: str, array: np.ndarray) -> None:
    """Refuse entries of an object array that are not numbers; None is read as NaN by NumPy, and allowed."""
    for entry in array.ravel():
        _refuse_lookalikes(name, entry)
        if isinstance(entry, complex | np.complexfloating):
            _refuse_kind(name, np.dtype(complex))
        if isinstance(entry, np.datetime64 | np.timedelta64):
            _refuse_kind(name, entry.dtype)
        if entry is not None and not hasattr(entry, "__float__"):
            raise InvalidInput(name, f"an entry of type {type(entry).__name__}", "Pass numbers only.")
