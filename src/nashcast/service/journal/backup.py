"""Copy a journal while it is in use: the database with SQLite's backup function, and the snapshots it lists."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from urllib.parse import quote

from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.journal.schema import FILE, check_version

# Pages copied at once; the service can write in between.
_PAGES = 500


def backup(folder: str | Path, out: str | Path) -> int:
    """Copy everything a service needs to continue into a new folder. Returns the number of entries in the copy."""
    source, target = Path(folder), Path(out)
    if not (source / FILE).is_file():
        remedy = "Pass the folder `nashcast serve` writes to."
        raise InvalidInput("journal", f"{source}, which holds no journal", remedy)
    if target.exists():
        raise InvalidInput("out", f"{target}, which is there already", "Choose a folder that is not.")
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700, parents=True)
    try:
        count = _copy(source, partial)
        partial.rename(target)
    except (OSError, sqlite3.DatabaseError) as error:
        raise NashcastError(f"{source} cannot be copied: {error}.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return count


def _copy(source: Path, target: Path) -> int:
    os.close(os.open(target / FILE, os.O_RDWR | os.O_CREAT, 0o600))
    old = sqlite3.connect(f"file:{quote(str((source / FILE).resolve()))}?mode=rw", uri=True, timeout=30.0)
    new = sqlite3.connect(target / FILE)
    try:
        check_version(old)
        old.backup(new, pages=_PAGES)
        (count,) = new.execute("SELECT count(*) FROM entries").fetchone()
        # A snapshot dropped meanwhile is not needed: recovery uses an older one, or the beginning.
        for (name,) in new.execute("SELECT folder FROM snapshots").fetchall():
            if _copied(source / "snapshots" / name, target / "snapshots" / name):
                continue
            new.execute("DELETE FROM snapshots WHERE folder = ?", (name,))
        new.commit()
    finally:
        new.close()
        old.close()
    tokens = source / "tokens.json"
    if tokens.is_file():
        shutil.copy(tokens, target / tokens.name)
    return count


def _copied(folder: Path, copy: Path) -> bool:
    try:
        copy.parent.mkdir(mode=0o700, exist_ok=True)
        shutil.copytree(folder, copy)
    except (OSError, shutil.Error):
        shutil.rmtree(copy, ignore_errors=True)
        return False
    return True
