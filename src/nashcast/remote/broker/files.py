"""Atomic file writes, private files, folder locks, and optional packages."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nashcast import extras
from nashcast.errors import InvalidInput, NashcastError


def needed(module: str) -> Any:
    """A module of the extra `remote`; if its package is missing, the message says how to install it."""
    return extras.needed(module, module.split(".")[0], "remote", "remote")


def write_whole(path: Path, content: str | bytes, *, private: bool = False, overwrite: bool = False) -> Path:
    """Write a file and its missing folders. private: readable by its owner only, from the first byte on."""
    data = content.encode() if isinstance(content, str) else content
    claimed = False
    try:
        make_folder(path.parent)
        if not overwrite:
            # Created before it is filled: of two concurrent writers, one succeeds.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            claimed = True
        _replace(path, data, 0o600 if private else 0o644)
    except FileExistsError:
        remedy = "It is kept: pass --overwrite to replace it, or choose another place."
        raise InvalidInput("file", f"{path}, which exists", remedy) from None
    except OSError as error:
        if claimed:
            with suppress(OSError):
                path.unlink()
        raise _cannot_write(path, error) from None
    return path


def make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(folder, error) from None
    return folder


def _replace(path: Path, data: bytes, mode: int) -> None:
    # Written to a temporary file first: a full disk or a crash leaves the old file unchanged.
    handle, scratch = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        Path(scratch).replace(path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def _cannot_write(path: Path, error: OSError) -> NashcastError:
    return NashcastError(f"cannot write {path}: {error.strerror}. Choose a folder that can be written.")


def check_private(path: Path) -> None:
    """Refuse a secret that other users of this machine could read."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise InvalidInput("key", f"{path} of mode {mode:o}, which others can read", f"Run: chmod 600 {path}")


@contextmanager
def locked(folder: Path, patience: float = 20.0) -> Iterator[None]:
    """An exclusive lock on a folder, across processes, for reading, changing and writing its files."""
    import fcntl

    try:
        handle = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
    except OSError as error:
        raise NashcastError(
            f"cannot write in {folder}: {error.strerror}. Choose a folder that can be written."
        ) from None
    try:
        waited_until = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > waited_until:
                    raise NashcastError(f"{folder} is being changed by another command. Try again later.") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(handle)
