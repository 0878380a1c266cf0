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
    # Many streams in one journal. Existing entries become an unnamed stream, until one with its settings is served.
    """
    CREATE TABLE streams (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, identity TEXT NOT NULL, document TEXT,
        shape TEXT NOT NULL, created REAL NOT NULL, seq_before INTEGER NOT NULL DEFAULT 0,
        chain_before INTEGER NOT NULL DEFAULT 0
    );
    INSERT INTO streams (id, name, identity, shape, created, seq_before, chain_before)
        SELECT 1, '', value, coalesce((SELECT value FROM meta WHERE name = 'shape'), '{}'), 0.0,
            coalesce((SELECT value FROM meta WHERE name = 'seq_before'), 0),
            coalesce((SELECT value FROM meta WHERE name = 'chain_before'), 0)
        FROM meta WHERE name = 'identity';
    DELETE FROM meta;
    ALTER TABLE entries RENAME TO entries_2;
    DROP INDEX entries_by_step;
    DROP INDEX entries_by_key;
    CREATE TABLE entries (
        stream INTEGER NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL, step INTEGER NOT NULL, key TEXT,
        x BLOB, y BLOB, at REAL NOT NULL, chain INTEGER NOT NULL, time REAL, PRIMARY KEY (stream, seq)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX entries_by_step ON entries (stream, step, kind);
    CREATE UNIQUE INDEX entries_by_key ON entries (stream, key) WHERE key IS NOT NULL;
    INSERT INTO entries SELECT 1, seq, kind, step, key, x, y, at, chain, NULL FROM entries_2;
    DROP TABLE entries_2;
    ALTER TABLE forecasts RENAME TO forecasts_2;
    CREATE TABLE forecasts (
        stream INTEGER NOT NULL, step INTEGER NOT NULL, seq INTEGER NOT NULL, forecast BLOB NOT NULL,
        bounds BLOB NOT NULL, weights BLOB NOT NULL, agents BLOB NOT NULL, beside BLOB, ahead BLOB, ahead_bounds BLOB,
        absent TEXT, flags INTEGER NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (stream, step)
    ) WITHOUT ROWID;
    INSERT INTO forecasts
        SELECT 1, step, seq, forecast, bounds, weights, agents, beside, NULL, NULL, absent, flags, crc FROM forecasts_2;
    DROP TABLE forecasts_2;
    ALTER TABLE log ADD COLUMN stream INTEGER;
    UPDATE log SET stream = 1;
    CREATE INDEX log_by_stream ON log (stream, id);
    ALTER TABLE snapshots RENAME TO snapshots_2;
    CREATE TABLE snapshots (
        id INTEGER PRIMARY KEY AUTOINCREMENT, stream INTEGER NOT NULL, seq INTEGER NOT NULL, step INTEGER NOT NULL,
        chain INTEGER NOT NULL, at REAL NOT NULL, name TEXT, folder TEXT NOT NULL, files TEXT NOT NULL,
        UNIQUE (stream, name)
    );
    INSERT INTO snapshots SELECT id, 1, seq, step, chain, at, name, folder, files FROM snapshots_2;
    DROP TABLE snapshots_2;
    CREATE INDEX snapshots_by_stream ON snapshots (stream, seq);
    ALTER TABLE withdrawn RENAME TO withdrawn_2;
    CREATE TABLE withdrawn (
        stream INTEGER NOT NULL, seq INTEGER NOT NULL, kind INTEGER NOT NULL, step INTEGER NOT NULL, key TEXT,
        x BLOB, y BLOB, at REAL NOT NULL, withdrawn_at REAL NOT NULL, PRIMARY KEY (stream, seq)
    ) WITHOUT ROWID;
    INSERT INTO withdrawn SELECT 1, seq, kind, step, key, x, y, at, withdrawn_at FROM withdrawn_2;
    DROP TABLE withdrawn_2;
    """,
)
VERSION = len(MIGRATIONS)


class JournalDamaged(NashcastError):
    """The journal is inconsistent and is not served."""


class JournalUnwritable(NashcastError):
    """The journal cannot be written now; its content is unchanged."""


def migrate(connection: sqlite3.Connection) -> int:
    """Upgrade the tables in one transaction. Returns their previous version."""
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
    """For readers: require tables of this release's version."""
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != VERSION:
        raise NashcastError(
            f"the journal has version {found}, this release reads version {VERSION}. Start `nashcast serve` on it "
            "once, which brings it up to date, or use the release that wrote it."
        )
