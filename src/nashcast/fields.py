"""Named arrays, each checked as it is taken: a component checks everything it restores before it changes anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.validation import shape_text

_REMEDY = "Restore what a component made with the same settings saved."


class Fields:
    """arrays: by name, as a component's `save` returned them or as `read_arrays` read them. They are not changed.

    >>> fields = Fields({"step": np.array(3), "weights": np.array([0.25, 0.75])})
    >>> int(fields.take("step", shape=(), dtype=np.int64, min=0))
    3
    >>> fields.take("weights", shape=(2,), min=0.0, max=1.0)
    array([0.25, 0.75])
    >>> fields.done()
    """

    def __init__(self, arrays: Mapping[str, Any], label: str = "saved "):
        self._left, self._label = dict(arrays), label

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def take(
        self,
        name: str,
        shape: tuple[int | None, ...],
        *,
        dtype: Any = np.float64,
        min: float | None = None,  # noqa: A002
        max: float | None = None,  # noqa: A002
        finite: bool = True,
    ) -> np.ndarray:
        """A copy of one field; InvalidInput if it is missing or not as asked.

        shape: None for an axis of any length.   dtype: exactly this one.   min, max: bounds of all entries except NaN.
        finite: whether NaN and infinite entries are refused.
        """
        if name not in self._left:
            raise self._refused(name, "nothing")
        value = np.asarray(self._left[name])
        if value.dtype != dtype:
            raise self._refused(name, f"type {value.dtype}", f"Pass type {np.dtype(dtype)}.")
        wanted = ["any" if n is None else n for n in shape]
        fits = value.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, value.shape, strict=True))
        if not fits:
            raise self._refused(name, f"shape {value.shape}", f"Pass shape {shape_text(tuple(wanted))}.")
        if finite and value.dtype.kind == "f" and not np.isfinite(value).all():
            raise self._refused(name, "entries that are not finite")
        if min is not None and (value < min).any():
            raise self._refused(name, f"{np.nanmin(value):g}", f"Pass numbers ≥ {min:g}.")
        if max is not None and (value > max).any():
            raise self._refused(name, f"{np.nanmax(value):g}", f"Pass numbers ≤ {max:g}.")
        del self._left[name]
        return value.copy()

    def part(self, prefix: str) -> Fields:
        """The fields whose names begin with the prefix, without it, for a nested component; they count as taken."""
        inner = {name.removeprefix(prefix): value for name, value in self._left.items() if name.startswith(prefix)}
        self._left = {name: value for name, value in self._left.items() if not name.startswith(prefix)}
        return Fields(inner, self._label + prefix)

    def length(self, name: str, *, min: int, max: int) -> int:  # noqa: A002
        """How many rows a field has."""
        if name not in self._left:
            raise self._refused(name, "nothing")
        value = np.asarray(self._left[name])
        if value.ndim < 1 or not min <= len(value) <= max:
            raise self._refused(name, f"shape {value.shape}", f"Pass {min} to {max} rows.")
        return len(value)

    def rest(self) -> dict[str, Any]:
        """All remaining fields, unchecked, for a component that checks them itself; they count as taken."""
        left, self._left = self._left, {}
        return left

    def require(self, name: str, condition: bool, got: str) -> None:
        """Refuse a field that does not fit the others."""
        if not condition:
            raise self._refused(name, got)

    def done(self) -> None:
        """Refuse fields that nothing has taken."""
        if self._left:
            raise self._refused(next(iter(self._left)), "a field that is not known")

    def _refused(self, name: str, got: str, remedy: str = "") -> InvalidInput:
        return InvalidInput(f"{self._label}{name}", got, f"{remedy} {_REMEDY}".strip())


def saved_parts(parts: Iterable[tuple[str, Any]]) -> dict[str, np.ndarray]:
    """The saved fields of several components, each under its prefix."""
    return {prefix + name: value for prefix, part in parts for name, value in part.save().items()}


def restore_parts(parts: Iterable[tuple[str, Any]], fields: Fields) -> None:
    """Restore them from what `saved_parts` returned."""
    for prefix, part in parts:
        part.restore(fields.part(prefix))
