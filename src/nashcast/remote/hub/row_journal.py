"""What the hub published of the present row, and what agents answered: written before it is relied on.

A hub that is killed between a forecast and its label goes on from the state before the row. Agents have heard the row's
input and sums by then, and take neither otherwise: so the row is played again from this file, and not asked for anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from nashcast.federation.saving.double_buffered_file import DoubleBufferedFile, read_slots
from nashcast.remote.wire.format import LIMITS, MalformedMessage, pack, unpack
from nashcast.remote.wire.joint.joint_messages import Said
from nashcast.remote.wire.transport import Failure

# A row of many agents is longer than a message may be; what is read was written here.
_LIMITS = LIMITS._replace(size=1 << 28, values=1 << 20, items=1 << 14)


class Row(NamedTuple):
    """The question of a row: events of a run from `number` on, of which the last is the input.

    names, answers: of agents, empty bytes and a reason for those without; none at all while the row is asked for.
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
    """path: of the file; None to keep nothing."""

    def __init__(self, path: Path | None):
        self._path = path
        self._file = None if path is None else DoubleBufferedFile(path)

    def keep(self, row: Row) -> None:
        """In the file when this returns."""
        if self._file is not None:
            self._file.write(b"", [np.frombuffer(pack(row, limits=_LIMITS), np.uint8)])

    def last(self) -> Row | None:
        """What was kept last; None if there is nothing that can be read."""
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
