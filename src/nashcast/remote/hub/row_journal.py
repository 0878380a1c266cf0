"""A write-ahead journal of the present row: the events that the hub published, and the agents' answers.

A hub that is killed between a forecast and its label resumes from the state before the row. Agents have received the
row's input and sums by then and refuse different ones: so the row is replayed from this file instead of asked again.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from nashcast.federation.saving.double_buffered_file import DoubleBufferedFile, read_slots
from nashcast.remote.wire.format import LIMITS, MalformedMessage, pack, unpack
from nashcast.remote.wire.joint.joint_messages import Said
from nashcast.remote.wire.transport import Failure

# A row of many agents exceeds the limits of a message; the file is trusted, as the hub wrote it.
_LIMITS = LIMITS._replace(size=1 << 28, values=1 << 20, items=1 << 14)


class Row(NamedTuple):
    """The question of a row: events of a run from `number` on; the last one is the input.

    names, answers, reasons: by agent; without an answer, empty bytes and a reason. All empty until the row is answered.
    """

    run: int
    number: int
    events: tuple[bytes, ...]
    players: bytes
    names: tuple[str, ...]
    answers: tuple[bytes, ...]
    reasons: tuple[str, ...]

    def answered(self, replies: dict[str, Said | Failure]) -> Row:
        said = [(b"", each.reason) if isinstance(each, Failure) else (pack(each), "") for each in replies.values()]
        return self._replace(
            names=tuple(replies), answers=tuple(data for data, _ in said), reasons=tuple(why for _, why in said)
        )

    def replies(self) -> dict[str, Said | Failure]:
        found = zip(self.names, self.answers, self.reasons, strict=True)
        return {name: unpack(data, (Said,)) if data else Failure(reason) for name, data, reason in found}


class RowJournal:
    """path: of the file; None to store nothing."""

    def __init__(self, path: Path | None):
        self._path = path
        self._file = None if path is None else DoubleBufferedFile(path)

    def keep(self, row: Row) -> None:
        """Write a row; it is in the file when this returns."""
        if self._file is not None:
            self._file.write(b"", [np.frombuffer(pack(row, limits=_LIMITS), np.uint8)])

    def last(self) -> Row | None:
        """The last row written; None if there is no readable one."""
        if self._path is None or not self._path.is_file():
            return None
        try:
            _, content = read_slots(self._path.read_bytes())
            return unpack(bytes(content), (Row,), limits=_LIMITS)
        except (OSError, ValueError, MalformedMessage):
            return None

    def forget(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
