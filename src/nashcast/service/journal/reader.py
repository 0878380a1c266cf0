"""The journal's reading side: any number of readers in any process, concurrent with the writer."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nashcast.errors import InvalidInput
from nashcast.service.events.kinds import EVENTS
from nashcast.service.journal.entries import (
    ENTRY_COLUMNS,
    OUTCOME_COLUMNS,
    Entry,
    EntryRow,
    Outcome,
    read_entry,
    read_outcome,
    row_crc,
)
from nashcast.service.journal.schema import FILE, JournalDamaged, check_version

# Entries read at once: an open read transaction prevents a checkpoint of the write-ahead log.
_CHUNK = 256


class JournalReader:
    """folder: the journal's folder. A row with a wrong checksum raises JournalDamaged."""

    def __init__(self, folder: str | Path):
        path = Path(folder) / FILE
        if not path.is_file():
            raise InvalidInput(
                "journal", f"{folder}, which holds no journal", "Pass the folder `nashcast serve` writes to."
            )
        self.folder = Path(folder)
        # Not opened read-only: opening a database in WAL mode may have to create its index file.
        self.connection = sqlite3.connect(
            f"file:{quote(str(path.resolve()))}?mode=rw", uri=True, isolation_level=None, check_same_thread=False,
            timeout=10.0,
        )  # fmt: skip
        try:
            self.connection.execute("PRAGMA query_only = ON")
            check_version(self.connection)
        except sqlite3.DatabaseError as error:
            self.connection.close()
            raise JournalDamaged(f"{path} cannot be read ({error}).") from error
        except BaseException:
            self.connection.close()
            raise

    def close(self) -> None:
        self.connection.close()

    def names(self) -> list[str]:
        return [row[0] for row in self.connection.execute("SELECT name FROM streams ORDER BY name")]

    def stream(self, number: int) -> StreamReader:
        return StreamReader(self, number)

    def named(self, name: str | None) -> StreamReader:
        """A stream by its name; None selects the only stream."""
        names = self.names()
        if name is None and len(names) == 1:
            name = names[0]
        if name is None or name not in names:
            got = "nothing" if name is None else repr(name)
            raise InvalidInput("stream", got, f"Pass one of {', '.join(names[:20]) or 'no streams: there is none'}.")
        number = self.connection.execute("SELECT id FROM streams WHERE name = ?", (name,)).fetchone()[0]
        return StreamReader(self, number)

    def events(
        self, after: int | None, limit: int, kinds: Collection[str] = tuple(EVENTS)
    ) -> tuple[list[dict], int]:  # fmt: skip
        """Events of all streams with ids above `after`, the newest if it is None; and the last id of the log."""
        last = self.connection.execute("SELECT coalesce(max(id), 0) FROM log").fetchone()[0]
        order = "DESC" if after is None else "ASC"
        rows = self.connection.execute(
            "SELECT log.id, log.at, streams.name, log.step, log.kind, log.text FROM log "
            f"JOIN streams ON streams.id = log.stream WHERE log.id > ? AND log.id <= ? "
            f"AND log.kind IN ({','.join('?' * len(kinds))}) ORDER BY log.id {order} LIMIT ?",
            (-1 if after is None else after, last, *kinds, limit),
        ).fetchall()
        names = ("id", "at", "stream", "step", "kind", "text")
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return found[::-1] if after is None else found, last

    def size(self) -> tuple[int, int]:
        """Number of entries, and bytes of the main file."""
        count = self.connection.execute("SELECT count(*) FROM entries").fetchone()[0]
        pages = self.connection.execute("PRAGMA page_count").fetchone()[0]
        return count, pages * self.connection.execute("PRAGMA page_size").fetchone()[0]


class StreamReader:
    """number: the stream's id in the journal."""

    def __init__(self, reader: JournalReader, number: int):
        self._connection, self.id, self.folder = reader.connection, number, reader.folder

    def steps(self) -> tuple[int, int] | None:
        """The oldest and the newest step; the newest may have only a forecast."""
        first = self._value("SELECT min(step) FROM entries WHERE stream = ? AND kind = 0")
        if first is None:
            return None
        last = self._value("SELECT max(step) FROM entries WHERE stream = ? AND kind = 0")
        ahead = self._value("SELECT max(step) FROM forecasts WHERE stream = ?")
        return first, max(last, ahead or 0)

    def shape(self) -> dict[str, Any] | None:
        """Sizes, coverages and names of the agents; None if there is no forecast."""
        text = self._value("SELECT shape FROM streams WHERE id = ?")
        empty = self._value("SELECT 1 FROM forecasts WHERE stream = ? LIMIT 1") is None
        return None if text is None or empty else json.loads(text)

    def raw_shape(self) -> dict[str, Any]:
        return json.loads(self._value("SELECT shape FROM streams WHERE id = ?"))

    def count(self) -> int:
        return self._value("SELECT count(*) FROM entries WHERE stream = ?")

    def beginning(self) -> tuple[int, int]:
        """Position and checksum before the oldest stored entry."""
        row = self._connection.execute(
            "SELECT seq_before, chain_before FROM streams WHERE id = ?", (self.id,)
        ).fetchone()
        return row or (0, 0)

    def after(self, seq: int, chain: int, limit: int | None = None) -> Iterator[tuple[Entry, int]]:
        """Entries after `seq` with their checksums, each verified against the one before. chain: checksum of `seq`."""
        while True:
            size = _CHUNK if limit is None else min(limit, _CHUNK)
            rows = self._connection.execute(
                f"SELECT {ENTRY_COLUMNS} FROM entries WHERE stream = ? AND seq > ? ORDER BY seq LIMIT ?",
                (self.id, seq, size),
            ).fetchall()
            for row in map(EntryRow._make, rows):
                if damage := row.damage(chain):
                    raise JournalDamaged(f"{self.folder / FILE}: {damage}. {_SALVAGE}")
                seq, chain = row.seq, row.chain
                yield read_entry(row), chain
            limit = None if limit is None else limit - len(rows)
            if len(rows) < size or limit == 0:
                return

    def after_unchecked(self, seq: int) -> Iterator[tuple[Entry, int]]:
        """The entry after `seq`, not verified: `after` verifies it when it is read."""
        rows = self._connection.execute(
            f"SELECT {ENTRY_COLUMNS} FROM entries WHERE stream = ? AND seq > ? ORDER BY seq LIMIT 1", (self.id, seq)
        ).fetchall()
        return ((read_entry(row), row[7]) for row in rows)

    def end(self) -> tuple[int, int | None]:
        """Position of the last entry, and the step of the last observation."""
        seq = self._value("SELECT max(seq) FROM entries WHERE stream = ?") or 0
        return seq, self._value("SELECT max(step) FROM entries WHERE stream = ? AND kind = 0")

    def snapshots(self) -> list[dict[str, Any]]:
        """Registered snapshots, the newest first."""
        names = ("id", "seq", "step", "chain", "at", "name", "folder", "files")
        rows = self._connection.execute(
            f"SELECT {', '.join(names)} FROM snapshots WHERE stream = ? ORDER BY seq DESC, id DESC", (self.id,)
        )
        return [dict(zip(names, row, strict=True)) for row in rows]

    def forecast_row(self, step: int) -> tuple | None:
        query = f"SELECT {OUTCOME_COLUMNS} FROM forecasts WHERE stream = ? AND step = ?"
        return self._connection.execute(query, (self.id, step)).fetchone()

    def entries(self, first: int, last: int, every: int = 1, offset: int = 0) -> Iterator[Entry]:
        """Observations and late labels of steps first … last, in order of steps, a label after its observation.

        offset: only steps with step % every == offset.
        """
        rows = self._connection.execute(
            f"SELECT {ENTRY_COLUMNS} FROM entries WHERE stream = ? AND step BETWEEN ? AND ? AND step % ? = ? "
            "ORDER BY step, kind",
            (self.id, first, last, every, offset),
        ).fetchall()
        return map(read_entry, rows)

    def outcomes(self, first: int, last: int, agents: int, y_dim: int, every: int = 1) -> Iterator[Outcome]:
        rows = self._connection.execute(
            f"SELECT {OUTCOME_COLUMNS} FROM forecasts WHERE stream = ? AND step BETWEEN ? AND ? AND step % ? = 0 "
            "ORDER BY step",
            (self.id, first, last, every),
        ).fetchall()
        for row in rows:
            if row_crc(row[:-1]) != row[-1]:
                raise JournalDamaged(f"the forecast of step {row[0]} is damaged in the journal.")
            yield read_outcome(row, agents, y_dim)

    def last_targets(self, count: int) -> list[tuple[float, bytes | None]]:
        """Time and bytes of the newest observations' targets, the oldest first."""
        rows = self._connection.execute(
            "SELECT coalesce(time, at), y FROM entries WHERE stream = ? AND kind = 0 ORDER BY seq DESC LIMIT ?",
            (self.id, count),
        ).fetchall()
        return rows[::-1]

    def log(self, after: int, limit: int) -> list[dict]:
        """Log lines with ids above `after`; the newest if it is -1."""
        newest = after < 0
        order, where = ("DESC", "") if newest else ("ASC", "AND id > ?")
        query = f"SELECT id, at, step, kind, text FROM log WHERE stream = ? {where} ORDER BY id {order} LIMIT ?"
        given = (self.id, limit) if newest else (self.id, after, limit)
        rows = self._connection.execute(query, given).fetchall()
        names = ("id", "at", "step", "kind", "text")
        return [dict(zip(names, row, strict=True)) for row in (reversed(rows) if newest else rows)]

    def sound(self) -> tuple[int, int | None, str | None]:
        """Number of sound entries from the first on, the step of the last one, and the damage after it."""
        _, chain = self.beginning()
        count, step = 0, None
        try:
            rows = self._connection.execute(
                f"SELECT {ENTRY_COLUMNS} FROM entries WHERE stream = ? ORDER BY seq", (self.id,)
            )
            for row in map(EntryRow._make, rows):
                if damage := row.damage(chain):
                    return count, step, damage
                chain, count, step = row.chain, count + 1, row.step
        except (sqlite3.DatabaseError, ValueError, TypeError, OverflowError) as error:
            return count, step, str(error)
        return count, step, None

    def _value(self, query: str) -> Any:
        row = self._connection.execute(query, (self.id,)).fetchone()
        return None if row is None else row[0]


_SALVAGE = (
    "Put a copy of the whole folder back, or recover its sound part: `nashcast journal salvage` reports where it ends."
)
