"""Snapshots on disk: a folder of files each, whole or not there, with checksums kept in the journal."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from pathlib import Path

from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.journal.journal import Journal
from nashcast.service.journal.schema import JournalUnwritable
from nashcast.service.streams.factory import Made
from nashcast.service.streams.live import Live
from nashcast.service.streams.settings import ServeSettings

FOLDER = "snapshots"
# Automatic snapshots that are kept: should the newest be damaged, the one before it and more of the journal do.
KEPT = 3


def take_snapshot(journal: Journal, live: Live, seq: int, chain: int, name: str | None = None) -> None:
    """Between `learn` and `predict`. seq, chain: place and checksum of the entry that was learnt last."""
    home = journal.folder / FOLDER
    folder = f"{seq:012d}-{secrets.token_hex(4)}"
    partial = home / f"{folder}.partial"
    try:
        partial.mkdir(mode=0o700, parents=True)
        live.save(partial)
        files = {path.name: _digest(path) for path in sorted(partial.iterdir())}
        partial.rename(home / folder)
        _sync(home)
    except (OSError, InvalidInput) as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise JournalUnwritable(f"no snapshot can be written: {error}.") from error
    assert live.step is not None
    try:
        journal.add_snapshot(live.step, seq, chain, folder, json.dumps(files), name)
    except BaseException:
        shutil.rmtree(home / folder, ignore_errors=True)
        raise


def tidy(journal: Journal) -> None:
    """Drop automatic snapshots but the newest, and folders nobody speaks of."""
    known = journal.snapshots()
    old = [each for each in known if each["name"] is None][KEPT:]
    if old:
        journal.drop_snapshots([each["id"] for each in old])
    kept = {each["folder"] for each in known if each not in old}
    home = journal.folder / FOLDER
    for path in home.iterdir() if home.is_dir() else ():
        if path.name not in kept:
            shutil.rmtree(path, ignore_errors=True)


def check_snapshot(journal: Journal, snapshot: dict) -> Path:
    """Its folder. Raises NashcastError if a file is missing or not what was written."""
    folder = journal.folder / FOLDER / snapshot["folder"]
    for name, digest in json.loads(snapshot["files"]).items():
        path = folder / name
        try:
            sound = _digest(path) == digest
        except OSError:
            sound = False
        if not sound:
            raise NashcastError(f"the snapshot of step {snapshot['step']} is damaged: {path} is not what was written.")
    return folder


def load_snapshot(journal: Journal, snapshot: dict, made: Made, serve: ServeSettings) -> Live:
    """The federation as it was."""
    folder = check_snapshot(journal, snapshot)
    live = Live(made, serve)
    live.load(folder)
    return live


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
