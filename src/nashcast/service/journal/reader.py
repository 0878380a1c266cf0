"""The journal's reading side: any number of readers, beside the one who writes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nashcast.errors import InvalidInput
from nashcast.service.journal.entries import ENTRY_COLUMNS, Entry, EntryRow, Outcome, read_entry, read_outcome, row_crc
from nashcast.service.journal.schema import FILE, JournalDamaged, check_version


class JournalReader:
    """folder: of a journal.   A row whose checksum is wrong raises JournalDamaged."""

    def __init__(self, folder: str | Path):
        path = Path(folder) / FILE
        if not path.is_file():
            raise InvalidInput(
                "journal", f"{folder}, which holds no journal", "Pass the folder `nashcast serve` writes to."
            )
        # Read-only by itself would not do: who opens a journal in WAL mode may have to make its index file.
        self._connection = sqlite3.connect(
            f"file:{quote(str(path.resolve()))}?mode=rw", uri=True, isolation_level=None, check_same_thread=False,
            timeout=10.0,
        )  # fmt: skip
        try:
            self._connection.execute("PRAGMA query_only = ON")
            check_version(self._connection)
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise JournalDamaged(f"{path} cannot be read ({error}).") from error

    def close(self) -> None:
        self._connection.close()

    def steps(self) -> tuple[int, int] | None:
        """First and last step of which there is an observation or a forecast."""
        first, last = self._connection.execute("SELECT min(step), max(step) FROM entries WHERE kind = 0").fetchone()
        return None if first is None else (first, last + 1)

    def shape(self) -> dict[str, Any] | None:
        """x_dim, y_dim, coverages and the agents' names; None while there is no forecast."""
        row = self._connection.execute("SELECT value FROM meta WHERE name = 'shape'").fetchone()
        empty = self._connection.execute("SELECT 1 FROM forecasts LIMIT 1").fetchone() is None
        return None if row is None or empty else json.loads(row[0])

    def size(self) -> tuple[int, int]:
        """Entries, and bytes of the main file."""
        count = self._connection.execute("SELECT count(*) FROM entries").fetchone()[0]
        pages = self._connection.execute("PRAGMA page_count").fetchone()[0]
        return count, pages * self._connection.execute("PRAGMA page_size").fetchone()[0]

    def entries(self, first: int, last: int, every: int = 1, offset: int = 0) -> Iterator[Entry]:
        """Observations and late labels of steps first … last, in order of steps, a label after its observation.

        offset: what is left of those steps when they are divided by `every`.
        """
        rows = self._connection.execute(
            f"SELECT {ENTRY_COLUMNS} FROM entries WHERE step BETWEEN ? AND ? AND step % ? = ? ORDER BY step, kind",
            (first, last, every, offset),
        )
        return map(read_entry, rows)

    def outcomes(self, first: int, last: int, agents: int, y_dim: int, every: int = 1) -> Iterator[Outcome]:
        rows = self._connection.execute(
            "SELECT * FROM forecasts WHERE step BETWEEN ? AND ? AND step % ? = 0 ORDER BY step", (first, last, every)
        )
        for row in rows:
            if row_crc(row[:-1]) != row[-1]:
                raise JournalDamaged(f"the forecast of step {row[0]} is damaged in the journal.")
            yield read_outcome(row, agents, y_dim)

    def log(self, after: int, limit: int) -> list[dict]:
        """What happened, from an id on; the newest if after is -1."""
        newest = after < 0
        order, where = ("DESC", "") if newest else ("ASC", "WHERE id > ?")
        query = f"SELECT id, at, step, kind, text FROM log {where} ORDER BY id {order} LIMIT ?"
        rows = self._connection.execute(query, (limit,) if newest else (after, limit)).fetchall()
        names = ("id", "at", "step", "kind", "text")
        return [dict(zip(names, row, strict=True)) for row in (reversed(rows) if newest else rows)]

    def save_points(self) -> list[dict]:
        rows = self._connection.execute("SELECT name, step, at FROM snapshots WHERE name IS NOT NULL ORDER BY seq, id")
        return [dict(zip(("name", "step", "at"), row, strict=True)) for row in rows]

    def sound(self) -> tuple[int, int | None, str | None]:
        """How many entries are sound from the first on, the last sound one's step, and what is wrong after it."""
        names = dict(self._connection.execute("SELECT name, value FROM meta"))
        chain, count, step = int(names.get("chain_before", 0)), 0, None
        try:
            rows = self._connection.execute(f"SELECT {ENTRY_COLUMNS} FROM entries ORDER BY seq")
            for row in map(EntryRow._make, rows):
                if damage := row.damage(chain):
                    return count, step, damage
                chain, count, step = row.chain, count + 1, row.step
        except (sqlite3.DatabaseError, ValueError, TypeError, OverflowError) as error:
            return count, step, str(error)
        return count, step, None
