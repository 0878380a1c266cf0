"""A file for a state written after every step: two slots, written in place by turns, one of them always complete.

Replacing a file takes the file system longer than a whole step. A process that is killed while it writes leaves a slot
with a wrong checksum; the other slot still has the state before. Layout, all integers little-endian:

    8 bytes   b"nashslot"
    8 bytes   room: the bytes of a slot
    4 bytes   CRC-32 of the 16 bytes before
    slot 0    starts here;   slot 1 starts `room` bytes later

A slot is the CRC-32 of the rest (4 bytes), a number that counts writes, the lengths of header and content (8 bytes
each), the header and the content.
"""

from __future__ import annotations

import os
import struct
import zlib
from errno import ENOSPC
from pathlib import Path

import numpy as np

from nashcast.errors import InvalidInput

MAGIC = b"nashslot"
_HEAD = struct.Struct("<8sQI")
_SLOT = struct.Struct("<IQQQ")
_CHECKSUM = struct.calcsize("<I")


class DoubleBufferedFile:
    """path: created by the first write, which replaces an existing file; read that one before."""

    def __init__(self, path: str | Path):
        self._path = Path(path)
        self._fd, self._number, self._room, self._slot = -1, 0, 0, 0
        self.last_header: tuple[object, bytes] | None = None  # a key of the header's content, and the header

    def write(self, header: bytes, arrays: list[np.ndarray]) -> None:
        """Write the next slot. It survives the end of this process, but not every power cut."""
        content = b"".join([array.tobytes() for array in arrays])
        rest = struct.pack("<QQQ", self._number, len(header), len(content)) + header + content
        slot = struct.pack("<I", zlib.crc32(rest)) + rest
        try:
            if len(slot) > self._room or not self._is_current():
                self._create(slot)
            elif os.pwrite(self._fd, slot, _HEAD.size + self._slot * self._room) < len(slot):
                raise OSError(ENOSPC, os.strerror(ENOSPC))
        except OSError as error:
            got = f"{self._path.name}: {error.strerror}"
            raise InvalidInput("path", got, "Choose a folder that can be written.") from error
        self._number, self._slot = self._number + 1, 1 - self._slot

    def close(self) -> None:
        """Release the file; the next write creates it again."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._room = -1, 0

    def __del__(self) -> None:
        self.close()

    def _is_current(self) -> bool:
        """Whether the path still leads to the open file: it may have been removed or replaced."""
        try:
            return self._fd >= 0 and os.path.samestat(self._path.stat(), os.fstat(self._fd))
        except FileNotFoundError:
            return False

    def _create(self, slot: bytes) -> None:
        """Write a temporary file and rename it: a full disk or a crash leaves the old file as it was."""
        self.close()
        room, partial = 2 * len(slot), self._path.with_name(f"{self._path.name}.partial")
        try:
            partial.unlink(missing_ok=True)  # an existing one may be readable by others
            self._fd = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
            content = _head(room) + slot
            if os.write(self._fd, content) < len(content):
                raise OSError(ENOSPC, os.strerror(ENOSPC))
            partial.replace(self._path)
        except OSError:
            self.close()
            partial.unlink(missing_ok=True)
            raise
        self._room, self._slot = room, 0


def read_slots(data: bytes) -> tuple[memoryview, memoryview]:
    """Header and content of the newest complete slot. Raises ValueError if there is none."""
    if len(data) < _HEAD.size:
        raise ValueError("it is cut short")
    _, room, _ = _HEAD.unpack_from(data)
    if data[: _HEAD.size] != _head(room):
        raise ValueError("its first bytes have a wrong checksum")
    if len(data) > _HEAD.size + 2 * room:
        raise ValueError("it has bytes after its second slot")
    found = [_read_slot(memoryview(data)[_HEAD.size + first :][:room]) for first in (0, room)]
    whole = [slot for slot in found if slot is not None]
    if not whole:
        raise ValueError("neither of its two slots is whole")
    return max(whole, key=lambda slot: slot[0])[1:]


def _head(room: int) -> bytes:
    start = struct.pack("<8sQ", MAGIC, room)
    return start + struct.pack("<I", zlib.crc32(start))


def _read_slot(slot: memoryview) -> tuple[int, memoryview, memoryview] | None:
    if len(slot) < _SLOT.size:
        return None
    checksum, number, header, content = _SLOT.unpack_from(slot)
    end = _SLOT.size + header + content
    if end > len(slot) or zlib.crc32(slot[_CHECKSUM:end]) != checksum:
        return None
    return number, slot[_SLOT.size : _SLOT.size + header], slot[_SLOT.size + header : end]
