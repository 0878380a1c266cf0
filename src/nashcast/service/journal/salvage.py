"""Copy the sound part of a damaged journal into a new one."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.journal.entries import ENTRY_COLUMNS, OBSERVATION, EntryRow
from nashcast.service.journal.schema import FILE, VERSION, JournalDamaged, migrate


class Salvaged(NamedTuple):
    """stream: its name.   entries: number of copied entries.

    last_step: step of the last copied observation.   stopped: why copying ended there.
    """

    stream: str
    entries: int
    last_step: int | None
    stopped: str | None


def salvage(folder: str | Path, out: str | Path, *, until: int | None = None) -> list[Salvaged]:
    """Copy entries of every stream up to the first one that breaks the checksum chain. until: the last step to copy.

    Forecasts are recomputed when the new journal is served. It starts from the first observation or, where older
    ones were deleted, from the newest snapshot that is not past the end.
    """
    source, target = Path(folder), Path(out)
    if not (source / FILE).is_file():
        raise InvalidInput(
            "journal", f"{source}, which holds no journal", "Pass the folder `nashcast serve` writes to."
        )
    if target.exists():
        raise InvalidInput("out", f"{target}, which is there already", "Choose a folder that is not.")
    old = sqlite3.connect(f"file:{quote(str((source / FILE).resolve()))}?mode=rw", uri=True, isolation_level=None)
    old.execute("PRAGMA query_only = ON")
    target.mkdir(mode=0o700, parents=True)
    new = sqlite3.connect(target / FILE, isolation_level=None)
    try:
        migrate(new)
        return _copy(old, new, source, target, until)
    except sqlite3.DatabaseError as error:
        raise JournalDamaged(f"{source / FILE} cannot be read at all ({error}). Put a copy back.") from error
    finally:
        old.close()
        new.close()


def _copy(
    old: sqlite3.Connection, new: sqlite3.Connection, source: Path, target: Path, until: int | None
) -> list[Salvaged]:
    if old.execute("PRAGMA user_version").fetchone()[0] != VERSION:
        raise NashcastError("the journal is of another version. Salvage it with the release that wrote it.")
    columns = "id, name, identity, document, shape, created, seq_before, chain_before"
    found = []
    new.execute("BEGIN IMMEDIATE")
    for row in old.execute(f"SELECT {columns} FROM streams ORDER BY id").fetchall():
        new.execute(f"INSERT INTO streams ({columns}) VALUES (?,?,?,?,?,?,?,?)", row)
        number, name, *_, seq_before, chain = row
        salvaged, last = _copy_stream(old, new, (number, name), chain, until)
        if seq_before:
            _copy_snapshots(old, new, source, target, (number, last))
        found.append(salvaged)
    new.execute("COMMIT")
    return found


def _copy_stream(
    old: sqlite3.Connection, new: sqlite3.Connection, stream: tuple[int, str], chain: int, until: int | None
) -> tuple[Salvaged, int]:
    number, name = stream
    count, step, last, stopped = 0, None, 0, None
    insert = f"INSERT INTO entries (stream, {ENTRY_COLUMNS}) VALUES (?{',?' * len(EntryRow._fields)})"
    try:
        rows = old.execute(f"SELECT {ENTRY_COLUMNS} FROM entries WHERE stream = ? ORDER BY seq", (number,))
        for row in map(EntryRow._make, rows):
            if until is not None and row.kind == OBSERVATION and row.step > until:
                stopped = f"step {row.step} is after the requested end"
                break
            if stopped := row.damage(chain):
                break
            new.execute(insert, (number, *row))
            chain, count, last = row.chain, count + 1, row.seq
            step = row.step if row.kind == OBSERVATION else step
    except (sqlite3.DatabaseError, ValueError, TypeError, OverflowError) as error:
        stopped = str(error)
    return Salvaged(name, count, step, stopped), last


def _copy_snapshots(
    old: sqlite3.Connection, new: sqlite3.Connection, source: Path, target: Path, until: tuple[int, int]
) -> None:
    """If the first observations were deleted, only snapshots hold the state before the remaining ones.

    until: the stream's id and its last entry.
    """
    columns = "id, stream, seq, step, chain, at, name, folder, files"
    for row in old.execute(f"SELECT {columns} FROM snapshots WHERE stream = ? AND seq <= ?", until).fetchall():
        *_, name, _ = row
        folder = source / "snapshots" / name
        if folder.is_dir():
            shutil.copytree(folder, target / "snapshots" / name)
            new.execute(f"INSERT INTO snapshots ({columns}) VALUES (?,?,?,?,?,?,?,?,?)", row)
