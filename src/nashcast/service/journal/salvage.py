"""What is sound of a damaged journal, in a new one."""

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
    """entries: how many were taken.   last_step: the last observation among them.   stopped: why it ended there."""

    entries: int
    last_step: int | None
    stopped: str | None


def salvage(folder: str | Path, out: str | Path, *, until: int | None = None) -> Salvaged:
    """Copy entries from the first on as long as each fits the one before. until: the last step to take.

    Forecasts are computed again when the new journal is served. It starts from the first observation or, where older
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


def _copy(old: sqlite3.Connection, new: sqlite3.Connection, source: Path, target: Path, until: int | None) -> Salvaged:
    if old.execute("PRAGMA user_version").fetchone()[0] != VERSION:
        raise NashcastError("the journal is of another version. Salvage it with the release that wrote it.")
    meta = dict(old.execute("SELECT name, value FROM meta"))
    chain, count, step, last, stopped = int(meta.get("chain_before", 0)), 0, None, 0, None
    new.execute("BEGIN IMMEDIATE")
    new.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())
    try:
        for row in map(EntryRow._make, old.execute(f"SELECT {ENTRY_COLUMNS} FROM entries ORDER BY seq")):
            if until is not None and row.kind == OBSERVATION and row.step > until:
                stopped = f"step {row.step} is past the end asked for"
                break
            if stopped := row.damage(chain):
                break
            new.execute(f"INSERT INTO entries ({ENTRY_COLUMNS}) VALUES (?,?,?,?,?,?,?,?)", row)
            chain, count, last = row.chain, count + 1, row.seq
            step = row.step if row.kind == OBSERVATION else step
    except (sqlite3.DatabaseError, ValueError, TypeError, OverflowError) as error:
        stopped = str(error)
    if "seq_before" in meta:
        _copy_snapshots(old, new, source, target, last)
    new.execute("COMMIT")
    return Salvaged(count, step, stopped)


def _copy_snapshots(old: sqlite3.Connection, new: sqlite3.Connection, source: Path, target: Path, last: int) -> None:
    """Without the first observations, the state before those that are left is only in snapshots."""
    columns = "id, seq, step, chain, at, name, folder, files"
    for row in old.execute(f"SELECT {columns} FROM snapshots WHERE seq <= ?", (last,)).fetchall():
        *_, name, _ = row
        folder = source / "snapshots" / name
        if folder.is_dir():
            shutil.copytree(folder, target / "snapshots" / name)
            new.execute(f"INSERT INTO snapshots ({columns}) VALUES (?,?,?,?,?,?,?,?)", row)
