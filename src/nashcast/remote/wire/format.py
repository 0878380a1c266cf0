"""Messages as bytes and back: msgpack, versioned, strict. Reading untrusted bytes is safe.

A message is a NamedTuple. On the wire it is a map of all its fields, with the name of its `type`; the outermost map
also has the version `v`. An array is the list of its dtype, its shape and its bytes. Bytes are measured before
anything is built from them, and a message is built only if every field is of the type its NamedTuple declares.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nashcast.errors import InvalidInput, NashcastError
from nashcast.extras import needed
from nashcast.remote.wire import message_size
from nashcast.remote.wire.fast_decoding import NotAsWritten, read_as_written
from nashcast.remote.wire.field_types import WORDS, Form, forms_of, type_name
from nashcast.validation import describe, shape_text

__all__ = ["LIMITS", "PROTOCOL", "VERSION", "Limits", "MalformedMessage", "pack", "type_name", "unpack"]
VERSION = 1  # of the encoding of messages
PROTOCOL = 2  # of their meaning; part of an agent's hello
_VERSION, _TYPE, _DTYPE = "v", "type", "<f8"

_SHORT = 4_000

Message = TypeVar("Message", bound=tuple)


class MalformedMessage(NashcastError):
    """Bytes or a message that are not what was expected; the text is the reason."""


class Limits(NamedTuple):
    """The limits on one message."""

    size: int = 1 << 20  # bytes in all: the broker's default limit
    depth: int = 8  # maps and lists inside each other
    values: int = 16_384  # values in all, each map, list and key counted too
    fields: int = 32  # of one map
    items: int = 4_096  # of one list
    text: int = 4_096  # bytes of one text
    elements: int = 131_072  # of one array
    rank: int = 5  # of one array


LIMITS = Limits()


def pack(message: tuple, *, limits: Limits = LIMITS) -> bytes:
    """A message as bytes that `unpack` reads with the same limits."""
    name = type_name(type(message))
    try:
        data = _msgpack().packb({_VERSION: VERSION, **_plain(message)}, default=_plain, strict_types=True)
        if len(data) > _SHORT or limits != LIMITS:  # shorter messages of our own types are within all limits
            _measure(data, limits)
    except (MalformedMessage, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(name, f"what cannot be sent ({error})", "Send less of it, or another type.") from None
    return data


def unpack(data: bytes, kinds: Sequence[type[Message]], *, limits: Limits = LIMITS) -> Message:
    """The message in these bytes, one of these kinds of NamedTuple. Its arrays are new and bit-identical to those sent.

    Raises MalformedMessage, and nothing else, whatever the bytes are.
    """
    _measure(data, limits)
    at_most = {"max_str_len": limits.text, "max_array_len": limits.items, "max_map_len": limits.fields}
    try:
        pairs = _msgpack().unpackb(data, object_pairs_hook=tuple, max_ext_len=0, **at_most)
        return read_as_written(pairs, kinds, VERSION, limits.rank, limits.elements)
    except (NotAsWritten, ValueError):
        return _unpack_with_care(data, kinds, limits, at_most)


def _unpack_with_care(data: bytes, kinds: Sequence[type[Message]], limits: Limits, at_most: dict) -> Message:
    """Decode fields in any order; errors name what is wrong."""
    try:
        outermost = _msgpack().unpackb(data, object_pairs_hook=_unique, max_ext_len=0, **at_most)
    except ValueError as error:  # measured bytes can still be invalid UTF-8, or have a key that is no text
        raise MalformedMessage(f"{error!s:.80}") from None
    if type(outermost) is not dict:
        raise MalformedMessage(f"got {_shown(outermost)}, expected a map")
    version = outermost.pop(_VERSION, None)
    if type(version) is not int or version != VERSION:
        raise MalformedMessage(f"version {_shown(version)}, expected {VERSION}")
    return _record({type_name(kind): kind for kind in kinds}, outermost, "message", limits)


def _msgpack() -> Any:
    return needed("msgpack", "msgpack", "remote", "remote")


def _plain(value) -> Any:
    """One value as a type that msgpack knows; msgpack calls this again for the values inside."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind != "f" or value.dtype.itemsize != 8:
            raise TypeError(f"{describe(value)}, not float64")
        return [_DTYPE, list(value.shape), value.astype(_DTYPE, copy=False).tobytes()]
    if isinstance(value, tuple):
        kind = type(value)
        return (
            dict(zip(_keys(kind), (type_name(kind), *value), strict=True)) if hasattr(kind, "_fields") else list(value)
        )
    return value.item() if isinstance(value, np.generic) else value


@lru_cache
def _keys(kind) -> tuple[str, ...]:
    return (_TYPE, *kind._fields)


def _measure(data: bytes, limits: Limits) -> None:
    """Refuse bytes that are too large, too deep, cut off or of an unknown type, before anything is built from them."""
    size = len(data)
    if size > limits.size:
        raise MalformedMessage(f"{size} bytes, at most {limits.size} are read")
    most = _longest(limits)
    found, at, kind, length = message_size.measure(data, most, limits.values, limits.depth)
    if found == message_size.FINE:
        return
    what = message_size.KINDS[kind]
    raise MalformedMessage(
        {
            message_size.VALUES: f"more than {limits.values} values",
            message_size.CUT: f"cut off after {size} bytes",
            message_size.STRANGE: f"byte {length:#04x} at {at} begins nothing that is read here",
            message_size.LONG: f"a {what} of length {length}, at most {most[kind]} is read",
            message_size.CLAIMS: f"a {what} that claims {length} of the {size - at} bytes left",
            message_size.DEEP: f"more than {limits.depth} maps and lists inside each other",
            message_size.MORE: f"{length} bytes too many",
        }[found]
    )


@lru_cache
def _longest(limits: Limits) -> tuple[int, ...]:
    """The greatest length of each kind of value, in the order of `message_size.KINDS`."""
    return 8, limits.fields, limits.items, limits.text, limits.size


def _unique(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise MalformedMessage("a map has the same key twice")
    for key in found:
        if type(key) is not str:
            raise MalformedMessage(f"a map has the key {_shown(key)}, expected a text")
    return found


def _build(form: Form, value, where: str, limits: Limits) -> Any:
    kind = type(value)
    if kind in form.plain:
        return value
    if kind is dict and form.records:
        return _record(form.records, value, where, limits)
    if kind is list and form.array:
        return _array(value, where, limits)
    if kind is list and form.items is not None:
        return tuple(_build(form.items, part, f"{where}[{i}]", limits) for i, part in enumerate(value))
    if kind is int and float in form.plain:
        return float(value)
    raise MalformedMessage(f"{where}: got {_shown(value)}, expected {form.words}")


def _record(kinds: dict[str, type[Message]], value: dict, where: str, limits: Limits) -> Message:
    name = value.pop(_TYPE, None)
    if type(name) is not str or name not in kinds:
        raise MalformedMessage(f"{where}: got type {_shown(name)}, expected {' or '.join(kinds)}")
    forms = forms_of(kinds[name])
    if value.keys() != forms.keys():
        missing, unknown = [f for f in forms if f not in value], [f for f in value if f not in forms]
        told = f"without {', '.join(missing)}" if missing else f"with an unknown field {_shown(unknown[0])}"
        raise MalformedMessage(f"{where}: got a {name} {told}")
    inside = name if where == "message" else where
    return kinds[name](*[_build(form, value[field], f"{inside}.{field}", limits) for field, form in forms.items()])


def _array(value: list, where: str, limits: Limits) -> np.ndarray:
    if [type(part) for part in value] != [str, list, bytes]:
        raise MalformedMessage(f"{where}: got {_shown(value)}, expected dtype, shape and bytes of an array")
    dtype, shape, content = value
    if dtype != _DTYPE:
        raise MalformedMessage(f"{where}: got dtype {_shown(dtype)}, expected {_DTYPE!r}")
    if len(shape) > limits.rank or not all(type(length) is int and length >= 0 for length in shape):
        raise MalformedMessage(f"{where}: got shape {_shown(shape)}, expected at most {limits.rank} whole numbers ≥ 0")
    # Empty axes count as 1, so that they do not hide long ones: NumPy multiplies those as well.
    if prod([length or 1 for length in shape]) > limits.elements:
        raise MalformedMessage(f"{where}: got shape {shape_text(tuple(shape))}, at most {limits.elements} numbers")
    if 8 * prod(shape) != len(content):
        told = f"shape {shape_text(tuple(shape))} in {len(content)} bytes"
        raise MalformedMessage(f"{where}: got {told}, expected {8 * prod(shape)} bytes")
    return np.frombuffer(content, dtype=_DTYPE).reshape(shape).astype(np.float64)


def _shown(value) -> str:
    """A short description of an untrusted value of any size."""
    if isinstance(value, list | dict):
        return f"a {'list' if isinstance(value, list) else 'map'} of length {len(value)}"
    if isinstance(value, str | bytes):
        return repr(value[:40]) + ("…" if len(value) > 40 else "")
    return WORDS[type(None)] if value is None else repr(value)
