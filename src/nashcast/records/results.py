"""The results of many runs in a folder: appended as runs finish, by any number of processes, without loss.

Every writer has its own file, `results-<host>-<pid>-<random>.jsonl`, and every finished run is one line of it,
`{"key": …, "result": …}`, written in one call: a killed process loses nothing it has added.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from nashcast.errors import InvalidInput, NashcastError

WHOSE = "whose.json"
_KEY_DIGITS = 24
# Seconds between two flushes to disk (fsync).
_SYNC_EVERY = 1.0
_line = json.JSONEncoder(separators=(",", ":"), default=lambda value: _plain(value)).encode


def settings_key(settings: Any) -> str:
    """A key that is equal for equal settings, in any order of their names and in any process; 1 equals 1.0.

    >>> settings_key({"ridge": 1, "seeds": [1, 2]}) == settings_key({"seeds": (1, 2), "ridge": 1.0})
    True
    """
    try:
        text = json.dumps(canonical(settings), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            "settings", f"a value that JSON cannot represent ({error})", "Pass names, numbers and lists."
        ) from None
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]


def canonical(value: Any) -> Any:
    """The value as plain dicts, lists and numbers, integral numbers as integers."""
    if isinstance(value, dict):
        return {str(name): canonical(part) for name, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [canonical(part) for part in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is neither a number, a text nor a list of them")


class Results:
    """The results in a folder, by key. `done` reads them; `writer` adds to them."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self._known: dict[str, Any] = {}
        self._read: dict[str, int] = {}  # bytes of each file that are read already
        self._lock = threading.Lock()

    def done(self) -> dict[str, Any]:
        """Every result so far, of all writers; for a key added twice, the first. Later calls read new lines only."""
        with self._lock:
            try:
                found = {entry.name: entry.stat().st_size for entry in os.scandir(self.folder) if _is_ours(entry.name)}
            except FileNotFoundError:
                found = {}
            except OSError as error:
                raise NashcastError(f"cannot read results in {self.folder}: {error.strerror}.") from None
            for name in sorted(found):
                if found[name] > self._read.get(name, 0):
                    self._read_on(self.folder / name)
            return dict(self._known)

    def writer(self) -> Writer:
        """A new file to add results to, for a `with` block or closed by `close`."""
        return Writer(self.folder)

    def belong_to(self, what: dict) -> None:
        """Mark the folder with these settings. Raises if it has results of other settings: folders are never mixed."""
        mine = json.dumps(canonical(what), indent=1, sort_keys=True)
        scratch = self.folder / f".whose-{secrets.token_hex(8)}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            scratch.write_text(mine)
            # A link is created atomically, and only the first of several processes can create it.
            with suppress(FileExistsError):
                os.link(scratch, self.folder / WHOSE)
            there = (self.folder / WHOSE).read_text()
        except OSError as error:
            raise _cannot_write(self.folder, error) from None
        finally:
            with suppress(OSError):
                scratch.unlink()
        if there != mine:
            differing = _differences(_parsed(there), json.loads(mine))
            got = f"{self.folder}, which holds results of other settings ({', '.join(differing[:3])})"
            raise InvalidInput("folder", got, "Pass another folder, or remove this one.")

    def _read_on(self, path: Path) -> None:
        start = self._read.get(path.name, 0)
        with path.open("rb") as file:
            file.seek(start)
            content = file.read()
        bad = 0  # the first unreadable line, counted from `start`
        read = 0
        for number, line in enumerate(content.splitlines(keepends=True), start=1):
            try:
                entry = json.loads(line)
                key, result = entry["key"], entry["result"]
            except (ValueError, KeyError, TypeError):
                bad = bad or number
                continue
            if bad:
                remedy = "The file is damaged: remove it, and its runs are done again."
                raise InvalidInput("results", f"{path}, unreadable at line {bad} from byte {start}", remedy)
            self._known.setdefault(key, result)
            read += len(line)
        # An unreadable last line is unfinished or being written; the next call reads it again.
        self._read[path.name] = start + read


class Writer:
    """Adds results to one file. May be used from several threads."""

    def __init__(self, folder: Path):
        host = re.sub(r"[^A-Za-z0-9.]+", "_", socket.gethostname()) or "host"
        self.path = folder / f"results-{host}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        self._lock = threading.Lock()
        self._size, self._synced, self._closed = 0, time.monotonic(), False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        except OSError as error:
            raise _cannot_write(folder, error) from None

    def add(self, key: str, result: Any) -> None:
        """Add one finished run. After this returns, killing the process cannot lose it."""
        line = (_line({"key": key, "result": result}) + "\n").encode()
        with self._lock:
            if self._closed:
                raise NashcastError("this writer of results is closed.")
            try:
                written = os.write(self._file, line)
                if written < len(line):
                    self._finish(line[written:])
            except OSError as error:
                self._take_back()
                raise _cannot_write(self.path.parent, error) from None
            self._size += len(line)
            now = time.monotonic()
            if now - self._synced < _SYNC_EVERY:
                return
            self._synced = now
            with suppress(OSError):  # not supported by every file system
                os.fsync(self._file)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            with suppress(OSError):
                os.fsync(self._file)
            os.close(self._file)
            if self._size == 0:
                self.path.unlink(missing_ok=True)

    def _finish(self, rest: bytes) -> None:
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def _take_back(self) -> None:
        # Remove a partial line: the next one would be appended to it.
        with suppress(OSError):
            os.ftruncate(self._file, self._size)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _is_ours(name: str) -> bool:
    return name.startswith("results-") and name.endswith(".jsonl")


def _cannot_write(folder: Path, error: OSError) -> NashcastError:
    return NashcastError(f"cannot write results to {folder}: {error.strerror}. Pass a folder with room.")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Dotted names of the values that differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = [
            (f"{place}.{name}".lstrip("."), old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys())
        ]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(f"{place}[{i}]", *pair) for i, pair in enumerate(zip(old, new, strict=True))]
    else:
        return [f"{place or 'everything'} was {old!r:.40}, is {new!r:.40}"]
    return [name for below, was, now in pairs if was != now for name in _differences(was, now, below)]
