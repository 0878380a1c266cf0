"""Snapshots on disk: one folder each, complete or absent, with checksums in the journal."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.journal.schema import JournalUnwritable
from nashcast.service.workers.live import Live

FOLDER = "snapshots"
# Number of automatic snapshots stored: if the newest is damaged, recovery uses the one before it.
KEPT = 2


def write_snapshot(journal: Path, stream: int, live: Live, seq: int) -> tuple[str, str]:
    """Call between `learn` and `predict`. Returns the folder's name, and digests of its files as JSON.

    journal: the journal's folder.   seq: position of the last learnt entry.
    """
    return write_folder(journal, f"s{stream}-{seq:012d}", live.save)


def write_folder(journal: Path, prefix: str, fill: Callable[[Path], None]) -> tuple[str, str]:
    """Write a snapshot folder atomically. fill: writes the files into an empty folder."""
    home = journal / FOLDER
    folder = f"{prefix}-{secrets.token_hex(4)}"
    partial = home / f"{folder}.partial"
    try:
        home.mkdir(mode=0o700, exist_ok=True)
        partial.mkdir(mode=0o700)
        fill(partial)
        files = {path.name: _digest(path) for path in sorted(partial.iterdir())}
        partial.rename(home / folder)
        _sync(home)
    except (OSError, InvalidInput) as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise JournalUnwritable(f"no snapshot can be written: {error}.") from error
    return folder, json.dumps(files)


def remove_folder(journal: Path, folder: str) -> None:
    shutil.rmtree(journal / FOLDER / folder, ignore_errors=True)


def remove_unreferenced(journal: Path, known: Collection[str]) -> None:
    """Remove snapshot folders that the journal does not list: remains of an interrupted write."""
    home = journal / FOLDER
    for path in home.iterdir() if home.is_dir() else ():
        if path.name not in known:
            shutil.rmtree(path, ignore_errors=True)


def check_snapshot(journal: Path, snapshot: dict) -> Path:
    """The snapshot's folder. Raises NashcastError if a file is missing or its digest differs."""
    folder = journal / FOLDER / snapshot["folder"]
    for name, digest in json.loads(snapshot["files"]).items():
        path = folder / name
        try:
            sound = _digest(path) == digest
        except OSError:
            sound = False
        if not sound:
            raise NashcastError(f"the snapshot of step {snapshot['step']} is damaged: {path} is not what was written.")
    return folder


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
