"""The size of a msgpack message, from the heads of its values, without building any object."""

from __future__ import annotations

from collections.abc import Sequence

NUMBER, MAP, LIST, TEXT, BYTES = range(5)
KINDS = ("number", "map", "list", "text", "bytes")
_REFUSED = 255
FINE, VALUES, CUT, STRANGE, LONG, CLAIMS, DEEP, MORE = range(8)


def _heads() -> list[tuple[int, int, int]]:
    """For each first byte of a value: its kind, the width of its length field in bytes, and its length if it has none.

    Extension types, float32, and the byte that msgpack never uses are refused.
    """
    heads = [(_REFUSED, 0, 0)] * 256
    for byte in (*range(0x80), *range(0xE0, 0x100), 0xC0, 0xC2, 0xC3):
        heads[byte] = NUMBER, 0, 0
    for byte in range(0xCC, 0xD4):
        heads[byte] = NUMBER, 0, 1 << (byte & 3)
    heads[0xCB] = NUMBER, 0, 8
    for byte in range(0x80, 0x90):
        heads[byte] = MAP, 0, byte & 0x0F
        heads[byte + 0x10] = LIST, 0, byte & 0x0F
    for byte in range(0xA0, 0xC0):
        heads[byte] = TEXT, 0, byte & 0x1F
    for i in range(3):
        heads[0xC4 + i] = BYTES, 1 << i, 0
        heads[0xD9 + i] = TEXT, 1 << i, 0
    for i in range(2):
        heads[0xDC + i] = LIST, 2 << i, 0
        heads[0xDE + i] = MAP, 2 << i, 0
    return heads


HEADS = _heads()


def measure(data: bytes, most: Sequence[int], most_values: int, most_depth: int) -> tuple[int, int, int, int]:
    """The first fault in the bytes, its position, kind and length; FINE if there is none.

    most: the greatest length of each kind.
    """
    size, at, values = len(data), 0, 0
    awaited = [1]  # for each open map and list, the number of values still to come
    while awaited:
        if awaited[-1] == 0:
            awaited.pop()
            continue
        awaited[-1] -= 1
        values += 1
        if values > most_values:
            return VALUES, at, 0, values
        if at >= size:
            return CUT, at, 0, 0
        kind, width, length = HEADS[data[at]]
        if kind == _REFUSED:
            return STRANGE, at, 0, data[at]
        at += 1
        if width:
            if at + width > size:
                return CUT, at, 0, 0
            length = int.from_bytes(data[at : at + width], "big")
            at += width
        if length > most[kind]:
            return LONG, at, kind, length
        claimed = 2 * length if kind == MAP else length
        if claimed > size - at:
            return CLAIMS, at, kind, claimed
        if kind not in (MAP, LIST):
            at += length
        elif len(awaited) > most_depth:
            return DEEP, at, kind, most_depth
        else:
            awaited.append(claimed)
    return (MORE, at, 0, size - at) if at < size else (FINE, at, 0, 0)
