"""Messages between processes: read as they were written in any pieces, and refused where they cannot be one."""

import json
import struct

import pytest

from nashcast.service.workers.frames import BadFrame, Decoder, encode

MESSAGES = [
    {"do": "go", "streams": {"1": 5}},
    {"rows": [[1, 2, b"\x00\xff", None, "text"], [3, 4, b"", 1.5, True]], "standing": b"x" * 1000},
    {},
]


@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
def test_messages_are_read_in_any_pieces(size):
    data, decoder, found = b"".join(map(encode, MESSAGES)), Decoder(), []
    for start in range(0, len(data), size):
        found += decoder.feed(data[start : start + size])
    assert found == MESSAGES


def framed(text: bytes, rest: bytes = b"", length: int | None = None) -> bytes:
    size = 4 + len(text) + len(rest) if length is None else length
    return struct.pack("<II", size, len(text)) + text + rest


@pytest.mark.parametrize(
    "data",
    [
        framed(b"{}", length=2**31),
        framed(b"{}", length=3),
        framed(b"{"),
        framed(b"[]"),
        framed(b"{}", b"left over"),
        framed(json.dumps({"a": {"": 5}}).encode(), b"1234"),
        framed(json.dumps({"a": {"": -1}}).encode(), b"1234"),
        framed(json.dumps({"a": {"": "x"}}).encode(), b"1234"),
        framed(b"[" * 100_000),
        struct.pack("<II", 10, 20) + b"{}        ",
    ],
)
def test_what_is_no_message_is_refused(data):
    with pytest.raises(BadFrame):
        Decoder(max_bytes=2**20).feed(data)


def test_objects_other_than_numbers_texts_and_bytes_are_not_sent():
    with pytest.raises(TypeError, match="cannot hold object"):
        encode({"a": object()})
