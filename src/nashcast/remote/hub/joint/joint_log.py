"""The hub's public log of one run: events still to be published, and events still to be stored for later readers."""

from __future__ import annotations

import numpy as np

from nashcast.remote.hub.row_journal import Row
from nashcast.remote.wire.format import pack, unpack
from nashcast.remote.wire.joint.joint_messages import Event, LogPart, Told, event_bytes


class EventLog:
    """run: number of the run.   number: of the next event."""

    def __init__(self, run: int):
        self.run, self.number = run, 0
        self._unsaid: list[bytes] = []  # not published yet
        self._unkept: list[bytes] = []  # not in the durable log yet
        self._keeping = b""  # the part being stored: it may be lost if the hub is killed

    def add(self, event: Event) -> None:
        self._add(event_bytes(event))

    def _add(self, data: bytes) -> None:
        self._unsaid.append(data)
        self._unkept.append(data)
        self.number += 1

    def unpublished(self, players: bytes) -> Row:
        """The unpublished events, as the question of a row without answers."""
        return Row(self.run, self.number - len(self._unsaid), tuple(self._unsaid), players, (), (), ())

    def continue_with(self, row: Row) -> None:
        """Add the events of a row that was published before the hub was killed."""
        for data in row.events[self.number - row.number :]:
            self._add(data)

    def told(self, ask: str, players: bytes = b"") -> bytes:
        """A message with all unpublished events."""
        events, self._unsaid = tuple(self._unsaid), []
        return pack(Told(self.run, self.number - len(events), events, ask, players))

    @property
    def unsaid(self) -> bool:
        return bool(self._unsaid)

    def part(self, step: int) -> bytes:
        """The events to be stored now."""
        events, self._unkept = tuple(self._unkept), []
        self._keeping = pack(LogPart(self.run, step, self.number - len(events), events))
        return self._keeping

    def save(self) -> dict[str, np.ndarray]:
        """The log's state; call after `part`."""
        unsaid = pack(Told(self.run, self.number - len(self._unsaid), tuple(self._unsaid), "", b""))
        parts = {"unsaid": np.frombuffer(unsaid, np.uint8), "keeping": np.frombuffer(self._keeping, np.uint8)}
        return {"run": np.array(self.run), "number": np.array(self.number), **parts}

    def restore(self, fields) -> None:
        self.run = int(fields.take("run", (), dtype=np.int64, min=0))
        self.number = int(fields.take("number", (), dtype=np.int64, min=0))
        unsaid = unpack(fields.take("unsaid", (None,), dtype=np.uint8).tobytes(), (Told,))
        fields.require("unsaid", unsaid.number + len(unsaid.events) == self.number, "events of another number")
        keeping = fields.take("keeping", (None,), dtype=np.uint8).tobytes()
        kept = list(unpack(keeping, (LogPart,)).events) if keeping else []
        self._unsaid, self._unkept = list(unsaid.events), kept  # stored again: readers take each event once
