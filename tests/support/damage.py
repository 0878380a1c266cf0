"""Damaged state files, and a reader of sound ones that shares no code with the package.

The reader follows the layouts in the docstrings of `state_file` and `double_buffered_file`, and checks nothing.
"""

import hashlib
import json
import struct
import zlib

import numpy as np

from nashcast.federation.saving.double_buffered_file import DoubleBufferedFile
from nashcast.federation.saving.state_file import write_arrays, write_slot

HUGE = (2**31, 2**40, 2**62, 2**63, 2**64 - 1, 10**30)
SIZES = (*HUGE, -1, 0, 1, 2, 3, 5, 1.0, True, "2", None, [2], 1e300)
REFUSED_DTYPES = ("|O", "<c16", "<M8[s]", "|V8", "<U4", "|S8", ">f8", "f8", "float64", 3, None)
DTYPES = (*REFUSED_DTYPES, "<f8", "<i8", "|b1", "|u1", "<f4")
NAMES = ("", "a" * 201, "a\n", "\ud800", "step", "grid", 3, None, ["a"], "a" * 200)


def frame(header, content, lengths=None):
    lengths = struct.pack("<QQ", *(lengths or (len(header), len(content))))
    digest = hashlib.blake2b(lengths + header + content, digest_size=16).digest()
    return b"nashstat" + lengths + digest + header + content


def unframe(data):
    header, content = struct.unpack_from("<QQ", data, 8)
    return data[40 : 40 + header], data[40 + header : 40 + header + content]


def slots(*parts, lengths=None, room=None):
    """A double-buffered file of one or two (number, header, content)."""
    written = []
    for number, header, content in parts:
        rest = struct.pack("<QQQ", number, *(lengths or (len(header), len(content)))) + header + content
        written.append(struct.pack("<I", zlib.crc32(rest)) + rest)
    room = room or 2 * max(map(len, written))
    head = struct.pack("<8sQ", b"nashslot", room)
    head += struct.pack("<I", zlib.crc32(head))
    return head + written[0].ljust(room, b"\0") + b"".join(written[1:])


def newest_slot(data):
    (room,) = struct.unpack_from("<Q", data, 8)
    found = []
    for at in (20, 20 + room):
        if len(data) < at + 28:
            continue
        checksum, number, header, content = struct.unpack_from("<IQQQ", data, at)
        if zlib.crc32(data[at + 4 : at + 28 + header + content]) == checksum:
            begin = at + 28 + header
            found.append((number, data[at + 28 : begin], data[begin : begin + content]))
    return max(found, key=lambda slot: slot[0])[1:]


def read_plainly(data):
    header, content = newest_slot(data) if data.startswith(b"nashslot") else unframe(data)
    document, arrays, at = json.loads(header), {}, 0
    for name, dtype, shape in document["arrays"]:
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(content, dtype, count, at).reshape(shape)
        at += count * np.dtype(dtype).itemsize
    return arrays, document["about"]


def sample_state(rng, number):
    arrays = {
        "step": np.array(number),
        "grid": rng.normal(size=(3, 4)),
        "counts": rng.integers(0, 9, size=5).astype(np.uint64),
        "flags": rng.random(6) < 0.5,
        "bytes": rng.integers(0, 256, size=20).astype(np.uint8),
        "none": np.zeros((0, 2)),
    }
    return arrays, {"number": number, "agents": [["a", 3], ["β", None]], "ridge": 0.5}


def sound_files(folder, rng):
    """A snapshot, and double-buffered files written one to three times."""
    write_arrays(folder / "snapshot", *sample_state(rng, 7))
    files = [(folder / "snapshot").read_bytes()]
    file = DoubleBufferedFile(folder / "slots")
    for number in range(3):
        write_slot(file, *sample_state(rng, number))
        files.append((folder / "slots").read_bytes())
    file.close()
    return files


def flipped(data, rng, most=8):
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, most + 1))):
        changed[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def truncated(data, rng):
    return data[: int(rng.integers(len(data)))]


def extended(data, rng):
    return data + rng.bytes(int(rng.integers(1, 100)))


def swapped(data, rng):
    size = int(rng.integers(1, len(data) // 3))
    first, second = sorted(int(i) for i in rng.integers(0, len(data) - size, size=2))
    second = max(second, first + size)
    parts = data[:first], data[first : first + size], data[first + size : second], data[second : second + size]
    return parts[0] + parts[3] + parts[2] + parts[1] + data[second + size :]


def removed_or_repeated(data, rng):
    first, second = sorted(int(i) for i in rng.integers(0, len(data), size=2))
    return data[:first] + data[second:] if rng.random() < 0.5 else data[:second] + data[first:]


def overwritten(data, rng):
    at = int(rng.integers(len(data)))
    part = [b"\0" * 64, b"\xff" * 8, rng.bytes(30), struct.pack("<Q", HUGE[int(rng.integers(5))])][int(rng.integers(4))]
    return data[:at] + part + data[at + len(part) :]


def parts_of(data):
    return newest_slot(data) if data.startswith(b"nashslot") else unframe(data)


def framed_as(data, header, content, lengths=None):
    """The same kind of file, with checksums that are right."""
    if data.startswith(b"nashslot"):
        return slots((9, header, content), lengths=lengths)
    return frame(header, content, lengths)


def edited_header(data, rng):
    header, content = parts_of(data)
    document = json.loads(header)
    for _ in range(int(rng.integers(1, 4))):
        _edit(document, rng)
    return framed_as(data, json.dumps(document).encode(), content)


def _edit(document, rng):
    def one(values):
        return values[int(rng.integers(len(values)))]

    index = document["arrays"] if isinstance(document.get("arrays"), list) else []
    entry = one(index) if index else [None, None, [0]]
    kind = int(rng.integers(10))
    if kind == 0:
        shape = [one(SIZES) for _ in range(int(rng.integers(0, 10)))]
        entry[2:3] = [shape]
    elif kind == 1 and entry and isinstance(entry[-1], list) and entry[-1]:
        entry[-1][int(rng.integers(len(entry[-1])))] = one(SIZES)
    elif kind == 2:
        entry[1:2] = [one(DTYPES)]
    elif kind == 3:
        entry[0:1] = [one(NAMES)]
    elif kind == 4 and index:
        del index[int(rng.integers(len(index)))]
    elif kind == 5 and index:
        index.append(list(entry))
    elif kind == 6 and index:
        rng.shuffle(index)
    elif kind == 7:
        document[one(["version", "arrays", "about", "more"])] = one([None, 1, 3, "3", [], {}, [[]], 10**400, 1e999])
    elif kind == 8:
        document.pop(one(["version", "arrays", "about"]), None)
    else:
        entry.append(3)


def edited_text(data, rng):
    """The header's text changed byte by byte, with a right checksum."""
    header, content = parts_of(data)
    kind = int(rng.integers(5))
    if kind == 0:
        header = flipped(header, rng, 3)
    elif kind == 1:
        header = header.replace(b'"about"', b'"about": {}, "about"')
    elif kind == 2:
        header = header.replace(b"0.5", b"[" * int(rng.integers(1, 3000)))
    elif kind == 3:
        nested = int(rng.integers(1, 3000))
        header = header.replace(b"0.5", b"[" * nested + b"]" * nested)
    else:
        header = header[: int(rng.integers(len(header)))]
    return framed_as(data, header, content)


def edited_lengths(data, rng):
    header, content = parts_of(data)
    some = (len(header), len(content), 0, 1, len(header) + len(content), len(content) - 8, *HUGE[:5])
    lengths = [some[int(rng.integers(len(some)))] for _ in range(2)]
    return framed_as(data, header, content, lengths)


def edited_content(data, rng):
    header, content = parts_of(data)
    return framed_as(data, header, rng.bytes(len(content)) if rng.random() < 0.5 else content[:-1])


def not_a_state(data, rng):
    start = [b"", b"nashstat", b"nashslot", b"PK\3\4", b"\x93NUMPY"][int(rng.integers(5))]
    return start + rng.bytes(int(rng.integers(0, 300)))


# Whose checksum is not made right again, and whose is.
ACCIDENTS = (flipped, truncated, extended, swapped, removed_or_repeated, overwritten, not_a_state)
EDITS = (edited_header, edited_text, edited_lengths, edited_content)
