"""The journal's writing side: one process, one thread, whole transactions, all streams in one file."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.journal.entries import ENTRY_COLUMNS, Entry, EntryRow
from nashcast.service.journal.schema import FILE, JournalDamaged, JournalUnwritable, migrate
from nashcast.service.journal.stream_journal import StreamJournal

SALVAGE = (
    "Put a copy of the whole folder back, or recover its sound part: `nashcast journal salvage` reports where it ends."
)


class StreamRow(NamedTuple):
    """A stream's row. document: its settings if it was created over HTTP, None if a file has them."""

    id: int
    name: str
    identity: str
    document: dict[str, Any] | None
    shape: dict[str, Any]


class Recorded(NamedTuple):
    """Results for entries of one stream. rows: from `Outcome.row`.   events: (at, step, kind, text)."""

    stream: int
    rows: Sequence[tuple]
    events: Sequence[tuple] = ()


class Journal:
    """folder: created if missing, readable by its owner only."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _locked(self.folder / "lock")
        except OSError as error:
            remedy = "Choose a folder that can be written."
            raise InvalidInput("journal", f"{self.folder} ({error.strerror})", remedy) from None
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self._lock.close()
            raise _at_start(self.folder, error) from error
        except BaseException:
            self._lock.close()
            raise

    def _open(self) -> None:
        self.connection = _connect(self.folder / FILE)
        damage = self.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise JournalDamaged(f"{self.folder / FILE} is damaged ({damage}). {SALVAGE}")
        self.migrated_from = migrate(self.connection)

    def close(self) -> None:
        self.connection.close()
        self._lock.close()

    def streams(self) -> list[StreamRow]:
        """Every stream, in order of creation."""
        rows = self.connection.execute("SELECT id, name, identity, document, shape FROM streams ORDER BY id").fetchall()
        return [
            StreamRow(number, name, identity, None if document is None else json.loads(document), json.loads(shape))
            for number, name, identity, document, shape in rows
        ]

    def make_stream(
        self, name: str, identity: str, shape: Mapping[str, Any], document: Mapping[str, Any] | None = None
    ) -> StreamJournal:
        """document: settings of a stream created over HTTP, stored here."""
        kept = None if document is None else json.dumps(document)
        with self.transaction():
            made = self.connection.execute(
                "INSERT INTO streams (name, identity, document, shape, created) VALUES (?,?,?,?,?)",
                (name, identity, kept, json.dumps(shape), time.time()),
            )
        assert made.lastrowid is not None
        return self.stream(made.lastrowid)

    def stream(self, number: int) -> StreamJournal:
        return StreamJournal(self, number)

    def fill_stream(self, number: int, before: tuple[int, int], rows: Sequence[EntryRow]) -> StreamJournal:
        """Insert entries of a new stream. before: position and checksum of the last earlier entry (not stored)."""
        with self.transaction():
            self.connection.execute(
                "UPDATE streams SET seq_before = ?, chain_before = ? WHERE id = ?", (*before, number)
            )
            self.connection.executemany(_INSERT_ENTRY, [(number, *row) for row in rows])
        return self.stream(number)

    def change_stream(self, number: int, **values: Any) -> None:
        """Update columns of the stream's row; mappings are stored as JSON."""
        cells = [json.dumps(value) if isinstance(value, Mapping) else value for value in values.values()]
        with self.transaction():
            self.connection.execute(
                f"UPDATE streams SET {', '.join(f'{name} = ?' for name in values)} WHERE id = ?", (*cells, number)
            )

    def remove_stream(self, number: int) -> None:
        """Delete the stream, except its snapshots' files."""
        with self.transaction():
            for table in ("entries", "forecasts", "log", "snapshots", "withdrawn"):
                self.connection.execute(f"DELETE FROM {table} WHERE stream = ?", (number,))
            self.connection.execute("DELETE FROM streams WHERE id = ?", (number,))

    def append(self, groups: Sequence[tuple[StreamJournal, Sequence[Entry]]]) -> None:
        """Append entries of several streams, durable when this returns; stores none if it raises JournalUnwritable."""
        rows: list[tuple] = []
        ends: list[tuple[StreamJournal, Sequence[Entry], int]] = []
        for stream, entries in groups:
            chain = stream.chain
            for entry in entries:
                row = entry.row(chain)
                chain = row.chain
                rows.append((stream.id, *row))
            ends.append((stream, entries, chain))
        with self.transaction():
            self.connection.executemany(_INSERT_ENTRY, rows)
        for stream, entries, chain in ends:
            stream.moved(entries, chain)

    def record(self, recorded: Iterable[Recorded]) -> None:
        """Record results. They survive the end of this process; those lost in a power cut are recomputed at start."""
        # In WAL mode, a later full commit makes this one durable with it.
        self.connection.execute("PRAGMA synchronous = NORMAL")
        try:
            with self.transaction():
                for stream, rows, events in recorded:
                    self.connection.executemany(_INSERT_OUTCOME, [(stream, *row) for row in rows])
                    self.connection.executemany(
                        "INSERT INTO log (stream, at, step, kind, text) VALUES (?,?,?,?,?)",
                        [(stream, *event) for event in events],
                    )
        finally:
            self.connection.execute("PRAGMA synchronous = FULL")

    def log(self, kind: str, text: str) -> None:
        """Log an event that belongs to no single stream."""
        with self.transaction():
            self.connection.execute("INSERT INTO log (at, kind, text) VALUES (?,?,?)", (time.time(), kind, text))

    @contextmanager
    def transaction(self):
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            yield
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._back()
            if isinstance(error, sqlite3.OperationalError):
                raise JournalUnwritable(f"the journal cannot be written: {error}.") from error
            raise
        except BaseException:
            self._back()
            raise

    def _back(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")


_INSERT_ENTRY = f"INSERT INTO entries (stream, {ENTRY_COLUMNS}) VALUES (?{',?' * len(EntryRow._fields)})"
_INSERT_OUTCOME = f"INSERT OR REPLACE INTO forecasts VALUES (?{',?' * 12})"


def _connect(path: Path) -> sqlite3.Connection:
    # SQLite gives its other files the same mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _locked(path: Path) -> IO:
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InvalidInput(
            "journal", f"{path.parent}, which another nashcast serve is using", "Stop it, or choose another folder."
        ) from None
    return file


def _at_start(folder: Path, error: sqlite3.DatabaseError) -> NashcastError:
    text = str(error)
    if "malformed" in text or "not a database" in text or "corrupt" in text:
        return JournalDamaged(f"{folder / FILE} is damaged ({text}). {SALVAGE}")
    return InvalidInput(
        "journal", f"{folder / FILE} ({text})", "Make its folder and files writable, on a disk with room."
    )
