"""A state that is kept after every step: written in place, by turns in two slots, of which one is always whole.

To replace a file takes the file system longer than a whole step. Whoever is killed while it writes leaves a slot whose
checksum is wrong, and the other one as it was: the state before.
"""

from __future__ import annotations

import os
import struct
import zlib
from errno import ENOSPC
from pathlib import Path

import numpy as np

from nashcast.errors import InvalidInput

MAGIC = b"nashkept"
_HEAD = struct.Struct("<8sQ")  # the mark, and the bytes that a slot may take
_SLOT = struct.Struct("<IQQQ")  # a checksum of the rest, a number that counts up, and the lengths of text and numbers


class KeptFile:
    """path: made with the first write, anew if it is there; whoever wants what was in it reads it before."""

    def __init__(self, path: str | Path):
        self._path = Path(path)
        self._fd, self._number, self._room, self._place = -1, 0, 0, 0
        self.described: tuple[object, bytes] | None = None  # the last text, and of what it is

    def write(self, text: bytes, arrays: list[np.ndarray]) -> None:
        """The file then survives the end of this program, but not any power cut."""
        numbers = b"".join([array.tobytes() for array in arrays])
        rest = struct.pack("<QQQ", self._number, len(text), len(numbers)) + text + numbers
        slot = struct.pack("<I", zlib.crc32(rest)) + rest
        try:
            if len(slot) > self._room or not self._is_there():
                self._make(slot)
            elif os.pwrite(self._fd, slot, _HEAD.size + self._place * self._room) < len(slot):
                raise OSError(ENOSPC, os.strerror(ENOSPC))
        except OSError as error:
            got = f"{self._path.name}: {error.strerror}"
            raise InvalidInput("path", got, "Choose a folder that can be written.") from error
        self._number, self._place = self._number + 1, 1 - self._place

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._room = -1, 0

    def __del__(self) -> None:
        self.close()

    def _is_there(self) -> bool:
        """Not if somebody has removed it, or put another in its place."""
        try:
            return self._fd >= 0 and os.path.samestat(self._path.stat(), os.fstat(self._fd))
        except FileNotFoundError:
            return False

    def _make(self, slot: bytes) -> None:
        """Beside it first: a full disk or a crash leaves the old file as it was."""
        self.close()
        room, partial = 2 * len(slot), self._path.with_name(f"{self._path.name}.partial")
        try:
            self._fd = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o600)
            if os.write(self._fd, _HEAD.pack(MAGIC, room) + slot) < _HEAD.size + len(slot):
                raise OSError(ENOSPC, os.strerror(ENOSPC))
            partial.replace(self._path)
        except OSError:
            self.close()
            partial.unlink(missing_ok=True)
            raise
        self._room, self._place = room, 0


def read_kept(data: bytes) -> tuple[bytes, bytes]:
    """Text and numbers of the newest slot that is whole. Raises ValueError if none is."""
    _, room = _HEAD.unpack_from(data)
    found = [_slot(data, _HEAD.size), _slot(data, _HEAD.size + room)]
    whole = [slot for slot in found if slot is not None]
    if not whole:
        raise ValueError("no part of it is whole")
    return max(whole)[1:]


def _slot(data: bytes, at: int) -> tuple[int, bytes, bytes] | None:
    if len(data) < at + _SLOT.size:
        return None
    checksum, number, text, numbers = _SLOT.unpack_from(data, at)
    begin, end = at + _SLOT.size, at + _SLOT.size + text + numbers
    if end > len(data) or zlib.crc32(data[at + 4 : end]) != checksum:
        return None
    return number, data[begin : begin + text], data[begin + text : end]
