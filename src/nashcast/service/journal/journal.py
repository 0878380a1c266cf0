"""The journal's writing side: one process, one thread, whole transactions."""

from __future__ import annotations

import fcntl
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import IO, Any

from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.journal.entries import ENTRY_COLUMNS, OBSERVATION, Entry, EntryRow, Outcome, read_entry
from nashcast.service.journal.schema import FILE, JournalDamaged, JournalUnwritable, migrate

# Rows deleted at once when old ones go: more would keep observations waiting.
_CHUNK = 2000


class Journal:
    """folder: made if it is not there.   identity: of the federation; a journal of another one is refused.

    shape: kept for who reads the journal without the federation's file.
    """

    def __init__(self, folder: str | Path, identity: str, shape: Mapping[str, Any] | None = None):
        self.folder = Path(folder)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = _locked(self.folder / "lock")
        except OSError as error:
            remedy = "Choose a folder that can be written."
            raise InvalidInput("journal", f"{self.folder} ({error.strerror})", remedy) from None
        try:
            self._open(identity, json.dumps(shape or {}))
        except sqlite3.DatabaseError as error:
            self._lock.close()
            raise _at_start(self.folder, error) from error
        except BaseException:
            self._lock.close()
            raise

    def _open(self, identity: str, shape: str) -> None:
        self._connection = _connect(self.folder / FILE)
        damage = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise JournalDamaged(f"{self.folder / FILE} is damaged ({damage}). {_SALVAGE}")
        self.migrated_from = migrate(self._connection)
        found = self.meta("identity")
        if found is None:
            with self._transaction():
                self._set_meta("identity", identity)
                self._set_meta("shape", shape)
        elif found != identity:
            got = f"{self.folder}, the journal of a federation with other settings"
            remedy = "Serve the file it was made with, or choose another folder."
            raise InvalidInput("journal", got, remedy)
        seq_before, chain_before = self.beginning()
        last = self._connection.execute("SELECT seq, chain FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
        last_seq, self.chain = last or (0, chain_before)
        top = self._connection.execute("SELECT max(seq) FROM withdrawn").fetchone()[0] or 0
        # The place of an entry is never given to another one, even when it is withdrawn.
        self.seq = max(top, seq_before, last_seq)
        self.step = self._connection.execute("SELECT max(step) FROM entries WHERE kind = 0").fetchone()[0]

    def close(self) -> None:
        self._connection.close()
        self._lock.close()

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Durable when this returns their checksums; none of them is there if it raises JournalUnwritable."""
        chain, rows = self.chain, []
        for entry in entries:
            rows.append(entry.row(chain))
            chain = rows[-1].chain
        with self._transaction():
            self._connection.executemany(f"INSERT INTO entries ({ENTRY_COLUMNS}) VALUES (?,?,?,?,?,?,?,?)", rows)
        self.chain, self.seq = chain, entries[-1].seq
        self.step = max([entry.step for entry in entries if entry.kind == OBSERVATION], default=self.step)
        return [row.chain for row in rows]

    def record(self, outcomes: Iterable[Outcome], events: Iterable[tuple] = ()) -> None:
        """What followed. It survives the end of this process; a power cut may take it, and start-up computes it again.

        events: (at, step, kind, text).
        """
        # In WAL mode, a later full commit makes this one durable with it.
        self._connection.execute("PRAGMA synchronous = NORMAL")
        try:
            with self._transaction():
                rows = [outcome.row() for outcome in outcomes]
                self._connection.executemany("INSERT OR REPLACE INTO forecasts VALUES (?,?,?,?,?,?,?,?,?,?)", rows)
                self._connection.executemany("INSERT INTO log (at, step, kind, text) VALUES (?,?,?,?)", list(events))
        finally:
            self._connection.execute("PRAGMA synchronous = FULL")

    def log(self, kind: str, text: str, step: int | None = None) -> None:
        self.record((), [(time.time(), step, kind, text)])

    def find(self, kind: int, step: int) -> Entry | None:
        return self._one("kind = ? AND step = ?", kind, step)

    def find_key(self, key: str) -> Entry | None:
        return self._one("key = ?", key)

    def holds(self, seq: int) -> bool:
        """Whether an entry is still there."""
        return self._connection.execute("SELECT 1 FROM entries WHERE seq = ?", (seq,)).fetchone() is not None

    def first_step(self) -> int | None:
        """The oldest step that is still there."""
        return self._connection.execute("SELECT min(step) FROM entries WHERE kind = 0").fetchone()[0]

    def after(self, seq: int, chain: int) -> Iterator[Entry]:
        """Every entry after one, whose checksum is given, each checked against the one before."""
        rows = self._connection.execute(f"SELECT {ENTRY_COLUMNS} FROM entries WHERE seq > ? ORDER BY seq", (seq,))
        for row in map(EntryRow._make, rows):
            if damage := row.damage(chain):
                raise JournalDamaged(f"{self.folder / FILE}: {damage}. {_SALVAGE}")
            chain = row.chain
            yield read_entry(row)

    def forecast_row(self, step: int) -> tuple | None:
        return self._connection.execute("SELECT * FROM forecasts WHERE step = ?", (step,)).fetchone()

    def snapshots(self) -> list[dict[str, Any]]:
        """Those that were written, the newest first."""
        names = ("id", "seq", "step", "chain", "at", "name", "folder", "files")
        rows = self._connection.execute(f"SELECT {', '.join(names)} FROM snapshots ORDER BY seq DESC, id DESC")
        return [dict(zip(names, row, strict=True)) for row in rows]

    def add_snapshot(self, step: int, seq: int, chain: int, folder: str, files: str, name: str | None = None) -> None:
        values = (seq, step, chain, time.time(), name, folder, files)
        with self._transaction():
            self._connection.execute(
                "INSERT INTO snapshots (seq, step, chain, at, name, folder, files) VALUES (?,?,?,?,?,?,?)", values
            )

    def drop_snapshots(self, ids: Sequence[int]) -> None:
        with self._transaction():
            self._connection.executemany("DELETE FROM snapshots WHERE id = ?", [(each,) for each in ids])

    def withdraw(self, seq: int, chain: int, step: int) -> int:
        """Take back every entry after `seq`, whose checksum is given and whose step is `step`. Returns how many."""
        with self._transaction():
            self._connection.execute(
                "INSERT INTO withdrawn SELECT seq, kind, step, key, x, y, at, ? FROM entries WHERE seq > ?",
                (time.time(), seq),
            )
            taken = self._connection.execute("DELETE FROM entries WHERE seq > ?", (seq,)).rowcount
            self._connection.execute("DELETE FROM forecasts WHERE step > ?", (step + 1,))
            self._connection.execute("DELETE FROM snapshots WHERE seq > ?", (seq,))
        self.chain, self.step = chain, step
        return taken

    def forget(self, before_step: int, before_seq: int) -> int:
        """Delete some entries and forecasts older than both, the oldest first. Returns how many entries."""
        rows = self._connection.execute(
            "SELECT seq, chain, step FROM entries WHERE seq < ? ORDER BY seq LIMIT ?", (before_seq, _CHUNK)
        ).fetchall()
        # A late label stays as long as any observation before it in the journal does.
        old = list(takewhile(lambda row: row[-1] < before_step, rows))
        if not old:
            return 0
        last_seq, chain, _ = old[-1]
        with self._transaction():
            self._connection.execute("DELETE FROM entries WHERE seq <= ?", (last_seq,))
            oldest = self._connection.execute("SELECT min(step) FROM entries WHERE kind = 0").fetchone()[0]
            self._connection.execute("DELETE FROM forecasts WHERE step < ?", (oldest,))
            self._connection.execute("DELETE FROM withdrawn WHERE seq <= ?", (last_seq,))
            self._set_meta("chain_before", str(chain))
            self._set_meta("seq_before", str(last_seq))
        return len(old)

    def meta(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    def beginning(self) -> tuple[int, int]:
        """Place and checksum before the first entry that is still there."""
        return int(self.meta("seq_before") or 0), int(self.meta("chain_before") or 0)

    def _set_meta(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def _one(self, where: str, *values) -> Entry | None:
        row = self._connection.execute(f"SELECT {ENTRY_COLUMNS} FROM entries WHERE {where}", values).fetchone()
        return None if row is None else read_entry(row)

    @contextmanager
    def _transaction(self):
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            yield
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._back()
            if isinstance(error, sqlite3.OperationalError):
                raise JournalUnwritable(f"the journal cannot be written: {error}.") from error
            raise
        except BaseException:
            self._back()
            raise

    def _back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


_SALVAGE = (
    "Put a copy of the whole folder back, or take what is sound with `nashcast journal salvage`: it says where it ends."
)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _locked(path: Path) -> IO:
    file = path.open("w")
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
        return JournalDamaged(f"{folder / FILE} is damaged ({text}). {_SALVAGE}")
    return InvalidInput(
        "journal", f"{folder / FILE} ({text})", "Make its folder and files writable, on a disk with room."
    )
