"""Rows of the journal: observations and late labels in the order of acceptance, and the forecasts made from them."""

from __future__ import annotations

import json
import struct
from typing import NamedTuple
from zlib import crc32

import numpy as np

OBSERVATION, LABEL = 0, 1
_LITTLE = np.dtype("<f8")


class Entry(NamedTuple):
    """seq: position in the journal.   kind: OBSERVATION or LABEL.   key: the client's idempotency key.

    x: inputs known at this step, NaN where missing; None for a label.   y: the target of this step; None if not known.
    at: time of acceptance, seconds since 1970.   time: the sender's timestamp, seconds since 1970.
    """

    seq: int
    kind: int
    step: int
    key: str | None
    x: np.ndarray | None
    y: np.ndarray | None
    at: float
    time: float | None = None

    def same_content(self, x: np.ndarray | None, y: np.ndarray | None) -> bool:
        return _same(self.x, x) and _same(self.y, y)

    def row(self, before: int) -> EntryRow:
        """The entry as a table row. before: checksum of the preceding entry."""
        cells = (self.seq, self.kind, self.step, self.key, packed(self.x), packed(self.y), self.at)
        return EntryRow(*cells, chained(before, cells, self.time), self.time)


class EntryRow(NamedTuple):
    """An entry as a table row. x, y: as bytes.   chain: checksum of this entry and all entries before it."""

    seq: int
    kind: int
    step: int
    key: str | None
    x: bytes | None
    y: bytes | None
    at: float
    chain: int
    time: float | None = None

    def damage(self, before: int) -> str | None:
        """Description of the damage, None if sound. before: checksum of the preceding entry."""
        if chained(before, self[:-2], self.time) == self.chain:
            return None
        return f"entry {self.seq} (step {self.step}) is damaged, or one before it is missing"


ENTRY_COLUMNS = ", ".join(EntryRow._fields)


class Outcome(NamedTuple):
    """The forecast of `step`. seq: the entry it was made after.   agents: the members' forecasts, (members, y_dim).

    bounds: (coverages, 2, y_dim).   beside: the forecast of the same agents without a game, if computed.
    ahead: forecasts of the steps after it, (horizon - 1, y_dim).   ahead_bounds: (horizon - 1, coverages, 2, y_dim).
    absent: absent agents with reasons.   played: a game was played.   fell_back: some or all used the greedy step.
    """

    step: int
    seq: int
    forecast: np.ndarray
    bounds: np.ndarray
    weights: np.ndarray
    agents: np.ndarray
    beside: np.ndarray | None
    absent: dict[str, str]
    played: bool
    fell_back: bool
    ahead: np.ndarray | None = None
    ahead_bounds: np.ndarray | None = None

    def row(self) -> tuple:
        absent = json.dumps(self.absent) if self.absent else None
        arrays = (
            self.forecast, self.bounds, self.weights, self.agents, self.beside, self.ahead, self.ahead_bounds,
        )  # fmt: skip
        cells = (self.step, self.seq, *map(packed, arrays), absent, 2 * self.played + self.fell_back)
        return (*cells, row_crc(cells))


def packed(values: np.ndarray | None) -> bytes | None:
    return None if values is None else np.ascontiguousarray(values, dtype=_LITTLE).tobytes()


def unpacked(data: bytes | None) -> np.ndarray | None:
    return None if data is None else np.frombuffer(data, dtype="<f8").astype(np.float64)


def _same(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return packed(a) == packed(b)


def chained(before: int, cells: tuple, time: float | None = None) -> int:
    """A checksum of an entry's cells and of all entries of its stream before it."""
    seq, kind, step, key, x, y, at = cells
    head = struct.pack("<IQBqd", before, seq, kind, step, at)
    # Without a timestamp, the checksum is that of journals before version 3.
    return _crc((key if key is None else key.encode(), x, y), head if time is None else head + struct.pack("<d", time))


def row_crc(cells: tuple) -> int:
    """A checksum of the cells of a forecast, in their order."""
    step, seq, *arrays, absent, flags = cells
    # For a one-step forecast, the checksum is that of journals before version 3.
    arrays = arrays if arrays[-2] is not None else arrays[:-2]
    return _crc((*arrays, absent if absent is None else absent.encode()), struct.pack("<qqB", step, seq, flags))


def _crc(parts: tuple, head: bytes) -> int:
    # A missing cell and an empty one differ.
    return crc32(b"".join(b"-" if part is None else b"+%d:%b" % (len(part), part) for part in parts), crc32(head))


def read_entry(row: tuple) -> Entry:
    """row: the cells of an `EntryRow`."""
    seq, kind, step, key, x, y, at, _, time = row
    return Entry(seq, kind, step, key, unpacked(x), unpacked(y), at, time)


OUTCOME_COLUMNS = "step, seq, forecast, bounds, weights, agents, beside, ahead, ahead_bounds, absent, flags, crc"


def read_outcome(row: tuple, agents: int, y_dim: int) -> Outcome:
    """row: the cells named by OUTCOME_COLUMNS."""
    step, seq, forecast, bounds, weights, own, beside, ahead, ahead_bounds, absent, flags, _ = row
    limits = np.frombuffer(bounds, dtype="<f8").reshape(-1, 2, y_dim)
    each = np.frombuffer(own, dtype="<f8").reshape(agents, y_dim)
    mixed, w = np.frombuffer(forecast, dtype="<f8"), np.frombuffer(weights, dtype="<f8")
    later = later_bounds = None
    if ahead is not None:
        later = np.frombuffer(ahead, dtype="<f8").reshape(-1, y_dim)
        later_bounds = np.frombuffer(ahead_bounds, dtype="<f8").reshape(len(later), -1, 2, y_dim)
    why = json.loads(absent) if absent else {}
    flagged = bool(flags & 2), bool(flags & 1)
    return Outcome(step, seq, mixed, limits, w, each, unpacked(beside), why, *flagged, later, later_bounds)
