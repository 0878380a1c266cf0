"""Fast decoding of messages exactly as `pack` writes them, with their fields in order.

Any other message raises `NotAsWritten`, and `format` decodes it with full checks. Maps come as tuples of pairs, lists
as lists.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from nashcast.remote.wire.field_types import Form, forms_of, type_name

_FLOATS = np.dtype("<f8")


class NotAsWritten(Exception):
    """The message is not in the order that `pack` writes; it may still be valid."""


class _Reader(NamedTuple):
    """How one value is decoded: types that are taken as they are, maps by their first pair, lists."""

    plain: frozenset[type]
    records: dict[tuple[str, str], Any]
    array: bool
    items: Any


def read_as_written(value: Any, kinds: Sequence[type], version: int, rank: int, elements: int) -> Any:
    if type(value) is not tuple or not value or value[0] != ("v", version) or type(value[0][1]) is not int:
        raise NotAsWritten
    try:
        return _read(_outermost(tuple(kinds)), value[1:], rank, elements)
    except (LookupError, TypeError, ValueError):
        raise NotAsWritten from None


@lru_cache
def _outermost(kinds: tuple[type, ...]) -> _Reader:
    return _Reader(frozenset(), {("type", type_name(kind)): _fields(kind) for kind in kinds}, False, None)


@lru_cache
def _fields(kind: type) -> tuple[Any, list[tuple[str, _Reader]]]:
    return kind, [(field, _reader(form)) for field, form in forms_of(kind).items()]


def _reader(form: Form) -> _Reader:
    records = {("type", name): _fields(kind) for name, kind in form.records.items()}
    return _Reader(form.plain, records, form.array, None if form.items is None else _reader(form.items))


def _read(reader: _Reader, value: Any, rank: int, elements: int) -> Any:
    kind = type(value)
    if kind in reader.plain:
        return value
    if kind is tuple:
        make, fields = reader.records[value[0]]
        if len(value) != len(fields) + 1:
            raise NotAsWritten
        parts = []
        for (key, part), (field, inner) in zip(value[1:], fields, strict=True):
            if key != field:
                raise NotAsWritten
            parts.append(part if type(part) in inner.plain else _read(inner, part, rank, elements))
        return make(*parts)
    if kind is list and reader.array:
        return _array(value, rank, elements)
    if kind is list and reader.items is not None:
        return tuple([_read(reader.items, part, rank, elements) for part in value])
    raise NotAsWritten


def _array(value: list, rank: int, elements: int) -> np.ndarray:
    dtype, shape, content = value
    numbers, room = 1, 1
    for length in shape:
        if type(length) is not int or length < 0:
            raise NotAsWritten
        numbers, room = numbers * length, room * (length or 1)
    right = dtype == "<f8" and type(shape) is list and type(content) is bytes and 8 * numbers == len(content)
    if not right or len(shape) > rank or room > elements or sys.byteorder != "little":
        raise NotAsWritten
    return np.ndarray(shape, _FLOATS, bytearray(content))
