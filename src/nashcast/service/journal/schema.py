"""The journal's tables, version by version: a journal of an older release is brought up to date when it is opened."""

from __future__ import annotations

import sqlite3

from nashcast.errors import NashcastError

FILE = "journal.db"

# Script v brings a journal of version v to version v + 1. Never change one that was released: add another.
MIGRATIONS = (
    """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE entries (
        seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, step INTEGER NOT NULL, key TEXT,
        x BLOB, y BLOB, at REAL NOT NULL, chain INTEGER NOT NULL
    );
    CREATE UNIQUE INDEX entries_by_step ON entries (step, kind);
    CREATE UNIQUE INDEX entries_by_key ON entries (key) WHERE key IS NOT NULL;
    CREATE TABLE forecasts (
        step INTEGER PRIMARY KEY, seq INTEGER NOT NULL, forecast BLOB NOT NULL, bounds BLOB NOT NULL,
        weights BLOB NOT NULL, agents BLOB NOT NULL, beside BLOB, absent TEXT, flags INTEGER NOT NULL,
        crc INTEGER NOT NULL
    );
    CREATE TABLE log (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, step INTEGER, kind TEXT NOT NULL, text TEXT NOT NULL
    );
    CREATE TABLE snapshots (
        id INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER NOT NULL, step INTEGER NOT NULL, chain INTEGER NOT NULL,
        at REAL NOT NULL, name TEXT UNIQUE, folder TEXT NOT NULL, files TEXT NOT NULL
    );
    """,
    """
    CREATE TABLE withdrawn (
        seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, step INTEGER NOT NULL, key TEXT,
        x BLOB, y BLOB, at REAL NOT NULL, withdrawn_at REAL NOT NULL
    );
    """,
)
VERSION = len(MIGRATIONS)


class JournalDamaged(NashcastError):
    """What the journal says cannot be true: it is not served."""


class JournalUnwritable(NashcastError):
    """Nothing can be added to the journal now; what it holds is as it was."""


def migrate(connection: sqlite3.Connection) -> int:
    """Bring the tables up to date, in one piece or not at all. Returns the version they had."""
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > VERSION:
        raise NashcastError(
            f"the journal has version {found}, this release knows versions up to {VERSION}. Use the release that "
            "wrote it, or a newer one."
        )
    if found < VERSION:
        steps = "".join(MIGRATIONS[found:])
        try:
            connection.executescript(f"BEGIN IMMEDIATE;{steps}PRAGMA user_version = {VERSION};COMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    return found


def check_version(connection: sqlite3.Connection) -> None:
    """For who only reads: the tables must be those of this release."""
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != VERSION:
        raise NashcastError(
            f"the journal has version {found}, this release reads version {VERSION}. Start `nashcast serve` on it "
            "once, which brings it up to date, or use the release that wrote it."
        )
