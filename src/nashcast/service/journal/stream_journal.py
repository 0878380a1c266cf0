"""One stream in the journal, for the writer thread: its end, its entries and its snapshots."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from nashcast.service.journal.entries import ENTRY_COLUMNS, OBSERVATION, Entry, read_entry

if TYPE_CHECKING:
    from nashcast.service.journal.journal import Journal

# Old rows deleted at once; larger deletions would delay observations.
_CHUNK = 2000


class StreamJournal:
    """last, chain: position and checksum of the last entry.   seq: the highest position ever assigned.

    step: step of the last observation, None if there is none.
    """

    def __init__(self, journal: Journal, number: int):
        self._journal, self._connection, self.id = journal, journal.connection, number
        seq_before, chain_before = self.beginning()
        last = self._connection.execute(
            "SELECT seq, chain FROM entries WHERE stream = ? ORDER BY seq DESC LIMIT 1", (number,)
        ).fetchone()
        self.last, self.chain = last or (seq_before, chain_before)
        top = self._value("SELECT max(seq) FROM withdrawn WHERE stream = ?") or 0
        # Positions are never reused, even those of withdrawn entries.
        self.seq = max(top, self.last)
        self.step = self._value("SELECT max(step) FROM entries WHERE stream = ? AND kind = 0")

    @property
    def folder(self):
        return self._journal.folder

    def moved(self, entries: Sequence[Entry], chain: int) -> None:
        """Advance past entries that are now in the journal."""
        self.chain, self.seq = chain, entries[-1].seq
        self.last = self.seq
        self.step = max([entry.step for entry in entries if entry.kind == OBSERVATION], default=self.step)

    def find(self, kind: int, step: int) -> Entry | None:
        return self._one("kind = ? AND step = ?", kind, step)

    def find_key(self, key: str) -> Entry | None:
        return self._one("key = ?", key)

    def holds(self, seq: int) -> bool:
        """Whether an entry is stored."""
        return self._value("SELECT 1 FROM entries WHERE stream = ? AND seq = ?", seq) is not None

    def chain_at(self, seq: int) -> int | None:
        """The checksum of an entry."""
        return self._value("SELECT chain FROM entries WHERE stream = ? AND seq = ?", seq)

    def first_step(self) -> int | None:
        """The oldest stored step."""
        return self._value("SELECT min(step) FROM entries WHERE stream = ? AND kind = 0")

    def beginning(self) -> tuple[int, int]:
        """Position and checksum before the oldest stored entry."""
        row = self._connection.execute(
            "SELECT seq_before, chain_before FROM streams WHERE id = ?", (self.id,)
        ).fetchone()
        return row or (0, 0)

    def snapshots(self) -> list[dict[str, Any]]:
        """Registered snapshots, the newest first."""
        names = ("id", "seq", "step", "chain", "at", "name", "folder", "files")
        rows = self._connection.execute(
            f"SELECT {', '.join(names)} FROM snapshots WHERE stream = ? ORDER BY seq DESC, id DESC", (self.id,)
        )
        return [dict(zip(names, row, strict=True)) for row in rows]

    def add_snapshot(self, step: int, seq: int, chain: int, folder: str, files: str, name: str | None = None) -> None:
        values = (self.id, seq, step, chain, time.time(), name, folder, files)
        with self._journal.transaction():
            self._connection.execute(
                "INSERT INTO snapshots (stream, seq, step, chain, at, name, folder, files) VALUES (?,?,?,?,?,?,?,?)",
                values,
            )

    def drop_snapshots(self, ids: Sequence[int]) -> None:
        with self._journal.transaction():
            self._connection.executemany("DELETE FROM snapshots WHERE id = ?", [(each,) for each in ids])

    def name_snapshot(self, number: int, name: str) -> None:
        with self._journal.transaction():
            self._connection.execute("UPDATE snapshots SET name = ? WHERE id = ?", (name, number))

    def withdraw(self, seq: int, chain: int, step: int) -> int:
        """Withdraw every entry after `seq`, which has checksum `chain` and step `step`. Returns their number."""
        here = (self.id, seq)
        with self._journal.transaction():
            self._connection.execute(
                "INSERT INTO withdrawn SELECT stream, seq, kind, step, key, x, y, at, ? FROM entries "
                "WHERE stream = ? AND seq > ?",
                (time.time(), *here),
            )
            taken = self._connection.execute("DELETE FROM entries WHERE stream = ? AND seq > ?", here).rowcount
            self._connection.execute(
                "DELETE FROM forecasts WHERE stream = ? AND (step > ? OR seq > ?)", (self.id, step + 1, seq)
            )
            self._connection.execute("DELETE FROM snapshots WHERE stream = ? AND seq > ?", here)
        self.chain, self.step, self.last = chain, step, seq
        return taken

    def forget_learnt(self) -> None:
        """Drop forecasts and snapshots, to recompute them from the entries with other settings."""
        with self._journal.transaction():
            for table in ("forecasts", "snapshots"):
                self._connection.execute(f"DELETE FROM {table} WHERE stream = ?", (self.id,))

    def forget(self, before_step: int, before_seq: int) -> int:
        """Delete some entries and forecasts older than both limits, oldest first. Returns the number of entries."""
        rows = self._connection.execute(
            "SELECT seq, chain, step FROM entries WHERE stream = ? AND seq < ? ORDER BY seq LIMIT ?",
            (self.id, before_seq, _CHUNK),
        ).fetchall()
        # A late label is kept as long as any observation before it in the journal.
        old = list(takewhile(lambda row: row[-1] < before_step, rows))
        if not old:
            return 0
        last_seq, chain, _ = old[-1]
        with self._journal.transaction():
            self._connection.execute("DELETE FROM entries WHERE stream = ? AND seq <= ?", (self.id, last_seq))
            oldest = self.first_step()
            self._connection.execute("DELETE FROM forecasts WHERE stream = ? AND step < ?", (self.id, oldest))
            self._connection.execute("DELETE FROM withdrawn WHERE stream = ? AND seq <= ?", (self.id, last_seq))
            self._connection.execute(
                "UPDATE streams SET chain_before = ?, seq_before = ? WHERE id = ?", (chain, last_seq, self.id)
            )
        return len(old)

    def _one(self, where: str, *values) -> Entry | None:
        row = self._connection.execute(
            f"SELECT {ENTRY_COLUMNS} FROM entries WHERE stream = ? AND {where}", (self.id, *values)
        ).fetchone()
        return None if row is None else read_entry(row)

    def _value(self, query: str, *values) -> Any:
        row = self._connection.execute(query, (self.id, *values)).fetchone()
        return None if row is None else row[0]
