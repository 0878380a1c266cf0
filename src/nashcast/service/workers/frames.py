"""Messages between processes on one machine: JSON and raw bytes in frames of checked size. Nothing is unpickled.

4 bytes   length of the rest, little-endian
4 bytes   length of the JSON
JSON      an object; {"": n} stands for the next n of the bytes that follow
bytes     all of them, in that order
"""

from __future__ import annotations

import json
import struct
from typing import Any

from nashcast.errors import NashcastError

MAX_BYTES = 256 * 2**20
_HEAD = struct.Struct("<II")


class BadFrame(NashcastError):
    """The other process sent an invalid message."""


def encode(message: dict[str, Any]) -> bytes:
    """message: values that JSON supports, and bytes."""
    parts: list[bytes] = []

    def blob(value: Any) -> dict[str, int]:
        if not isinstance(value, bytes):
            raise TypeError(f"a message cannot hold {type(value).__name__}")
        parts.append(value)
        return {"": len(value)}

    text = json.dumps(message, default=blob, separators=(",", ":")).encode()
    size = 4 + len(text) + sum(map(len, parts))
    if size > MAX_BYTES:
        raise BadFrame(f"a message of {size} bytes is too large; at most {MAX_BYTES} are sent.")
    return b"".join([_HEAD.pack(size, len(text)), text, *parts])


class Decoder:
    """Incremental decoder: bytes in, messages out.   max_bytes: limit per message."""

    def __init__(self, max_bytes: int = MAX_BYTES):
        self._buffer, self._max = bytearray(), max_bytes

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        self._buffer += data
        found, at = [], 0
        while len(self._buffer) - at >= _HEAD.size:
            size, text = _HEAD.unpack_from(self._buffer, at)
            if not 4 <= size <= self._max or text > size - 4:
                raise BadFrame(f"a message of {size} bytes with {text} of JSON is not accepted.")
            if len(self._buffer) - at < 4 + size:
                break
            start = at + _HEAD.size
            found.append(_message(bytes(self._buffer[start : at + 4 + size]), text))
            at += 4 + size
        del self._buffer[:at]
        return found

    @property
    def unread(self) -> int:
        """Bytes of an incomplete message."""
        return len(self._buffer)


def decode(data: bytes, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Decode exactly one message."""
    decoder = Decoder(max_bytes)
    found = decoder.feed(data)
    if len(found) != 1 or decoder.unread:
        raise BadFrame(f"{len(data)} bytes are not one message.")
    return found[0]


def _message(data: bytes, text: int) -> dict[str, Any]:
    at = text

    def unfold(value: dict[str, Any]) -> Any:
        nonlocal at
        if len(value) != 1 or "" not in value:
            return value
        size = value[""]
        if type(size) is not int or not 0 <= size <= len(data) - at:
            raise BadFrame("a message names more bytes than it has.")
        at += size
        return data[at - size : at]

    try:
        message = json.loads(data[:text], object_hook=unfold)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"a message is not JSON ({str(error)[:80]}).") from None
    if not isinstance(message, dict) or at != len(data):
        raise BadFrame("a message is no object, or has bytes that it does not name.")
    return message
