"""The journal: what it keeps, replays, brings up to date, forgets, takes back and exports."""

import csv
import sqlite3

import numpy as np
import pytest

from nashcast.cli.main import main
from nashcast.client import ServiceRefused
from nashcast.errors import NashcastError
from nashcast.service.journal.reader import JournalReader
from nashcast.service.journal.schema import MIGRATIONS, VERSION
from nashcast.service.streams.intake import Conflict
from support.service.running import Running, filled, forecasts
from support.service.served import DEFAULT, FILE, PAPERS, RULE, Served, entries, recorded, series, uninterrupted

# The tables of the first version, with what the one stream has.
BACK_TO_1 = """
CREATE TABLE old_entries (
    seq INTEGER PRIMARY KEY, kind INTEGER NOT NULL, step INTEGER NOT NULL, key TEXT, x BLOB, y BLOB, at REAL NOT NULL,
    chain INTEGER NOT NULL
);
INSERT INTO old_entries SELECT seq, kind, step, key, x, y, at, chain FROM entries;
CREATE TABLE old_forecasts (
    step INTEGER PRIMARY KEY, seq INTEGER NOT NULL, forecast BLOB NOT NULL, bounds BLOB NOT NULL,
    weights BLOB NOT NULL, agents BLOB NOT NULL, beside BLOB, absent TEXT, flags INTEGER NOT NULL, crc INTEGER NOT NULL
);
INSERT INTO old_forecasts
    SELECT step, seq, forecast, bounds, weights, agents, beside, absent, flags, crc FROM forecasts;
CREATE TABLE old_snapshots (
    id INTEGER PRIMARY KEY AUTOINCREMENT, seq INTEGER NOT NULL, step INTEGER NOT NULL, chain INTEGER NOT NULL,
    at REAL NOT NULL, name TEXT UNIQUE, folder TEXT NOT NULL, files TEXT NOT NULL
);
INSERT INTO old_snapshots SELECT id, seq, step, chain, at, name, folder, files FROM snapshots;
INSERT INTO meta SELECT 'identity', identity FROM streams UNION SELECT 'shape', shape FROM streams;
DROP TABLE entries; DROP TABLE forecasts; DROP TABLE snapshots; DROP TABLE withdrawn; DROP TABLE streams;
DROP INDEX log_by_stream; ALTER TABLE log DROP COLUMN stream;
ALTER TABLE old_entries RENAME TO entries;
ALTER TABLE old_forecasts RENAME TO forecasts;
ALTER TABLE old_snapshots RENAME TO snapshots;
CREATE UNIQUE INDEX entries_by_step ON entries (step, kind);
CREATE UNIQUE INDEX entries_by_key ON entries (key) WHERE key IS NOT NULL;
PRAGMA user_version = 1;
"""

KINDS = pytest.mark.parametrize(
    ("text", "agents"), [(FILE, 5), (PAPERS, 3), (RULE, 5), (DEFAULT, 10)], ids=["joint", "paper", "rule", "default"]
)


@KINDS
def test_forecasts_are_those_of_the_library_and_replay_gives_them_again(text, agents, tmp_path):
    folder = filled(tmp_path, text=text)
    expected = uninterrupted(tmp_path / "federation.toml", entries(folder))
    assert forecasts(folder, agents) == expected
    with Running(tmp_path, text) as again:
        assert 0 < again.computing.replayed < 60
        assert again.live.outcome.forecast.tolist() == expected[130]
        assert forecasts(folder, agents) == expected


@KINDS
def test_replay_from_the_beginning_and_from_every_snapshot_give_the_same_state(text, agents, tmp_path):
    folder = filled(tmp_path, text=text)
    with Running(tmp_path, text) as again:
        views, counts, scores = (
            again.live.agents(),
            again.live.counts(),
            again.live.scores.recent(),
        )
    connection = sqlite3.connect(folder / "journal.db")
    connection.execute("DELETE FROM snapshots")
    connection.commit()
    connection.close()
    with Running(tmp_path, text) as anew:
        assert anew.computing.from_step is None
        assert len(views) == agents
        assert anew.live.agents() == views
        assert anew.live.counts() == counts
        np.testing.assert_array_equal(anew.live.scores.recent(), scores)


@KINDS
def test_a_label_that_is_late_across_a_restart_teaches_the_same(text, agents, tmp_path):
    values = series(60)
    with Running(tmp_path, text) as running:
        running.observe(values[:41], 0, missing=(39, 40))
    with Running(tmp_path, text) as again:  # from the snapshot taken when it stopped
        assert again.computing.replayed == 0
        again.label(40, values[40])
        again.label(39, values[39])
        again.observe(values[41:60], 41)
    assert forecasts(again.folder, agents) == uninterrupted(again.file, entries(again.folder))


def test_forecasts_that_were_not_written_before_a_power_cut_are_written_at_the_next_start(tmp_path):
    folder = filled(tmp_path)
    expected = forecasts(folder)
    connection = sqlite3.connect(folder / "journal.db")
    connection.execute("DELETE FROM forecasts WHERE step > 125")
    connection.commit()
    connection.close()
    with Running(tmp_path):
        assert forecasts(folder) == expected


def test_a_journal_of_an_older_version_is_brought_up_to_date_and_a_newer_one_refused(tmp_path):
    folder = filled(tmp_path)
    expected = forecasts(folder)
    connection = sqlite3.connect(folder / "journal.db")
    connection.executescript(BACK_TO_1)
    connection.close()
    with pytest.raises(NashcastError, match=f"has version 1, this release reads version {VERSION}"):
        JournalReader(folder)
    with Running(tmp_path) as again:
        assert again.journal.migrated_from == 1
        assert [row.name for row in again.journal.streams()] == ["federation"]
        assert forecasts(folder) == expected
    connection = sqlite3.connect(folder / "journal.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(NashcastError, match="has version 99, this release knows versions up to"):
        Running(tmp_path)


def test_a_migration_that_fails_leaves_the_journal_as_it_was(tmp_path, monkeypatch):
    filled(tmp_path)
    from nashcast.service.journal import schema as journal_schema

    monkeypatch.setattr(journal_schema, "MIGRATIONS", (*MIGRATIONS, "CREATE TABLE a (b); CREATE TABLE streams (c);"))
    monkeypatch.setattr(journal_schema, "VERSION", VERSION + 1)
    with pytest.raises(NashcastError, match="streams already exists"):
        Running(tmp_path)
    monkeypatch.undo()
    with Running(tmp_path) as again:
        assert again.journal.migrated_from == VERSION


def test_a_restore_point_brings_everything_back_and_what_came_after_is_withdrawn(tmp_path):
    values = series(200)
    pairs = [(v, v) for v in values]
    pairs[68] = (values[68], None)
    with Served(tmp_path) as served, served.client() as client:
        client.observe_many(pairs[:70], first_step=0)
        assert client.save_point("monday") == {"name": "monday", "step": 69}
        with pytest.raises(ServiceRefused, match="'monday', which is taken"):
            client.save_point("monday")
        before = client.forecast()
        client.label(68, values[68])
        client.observe_many([(v, v) for v in values[100:190]], first_step=70)
        assert client.restore("monday") == {"name": "monday", "step": 69, "withdrawn": 91}
        after = client.forecast()
        assert (after.step, after.forecast, after.bounds) == (before.step, before.forecast, before.bounds)
        client.observe_many(pairs[70:90], first_step=70)
        with pytest.raises(ServiceRefused, match="'friday', which is no save point"):
            client.restore("friday")
        expected = uninterrupted(tmp_path / "federation.toml", entries(served.journal))
        assert recorded(client) == expected
    with Served(tmp_path) as served, served.client() as client:
        assert client.forecast().forecast == expected[90]
        automatic = [each for each in client.save_points() if each["automatic"]]
        assert automatic
        assert client.restore(automatic[-1]["name"])["step"] == automatic[-1]["step"]
        assert client.restore("monday")["step"] == 69
        assert client.drop_save_point("monday") == {"name": "monday", "step": 69}
    with Running(tmp_path) as empty:
        assert empty.live.step == 69


def test_old_steps_are_forgotten_and_the_rest_is_still_replayed(tmp_path):
    text = FILE.replace("snapshot_every = 40", "snapshot_every = 200\nretain = 1000")
    values = series(2500)
    with Running(tmp_path, text) as running:
        for start in range(0, 2500, 100):
            running.observe(values[start : start + 100], start)
        oldest = running.stream.journal.first_step()
        assert 1000 <= oldest <= 1500
        with pytest.raises(Conflict, match=f"older than the oldest stored step, {oldest}"):
            running.observe(values[3:4], 3)
    with Running(tmp_path, text) as again:
        again.observe(values[:10], 2500)
    reader = JournalReader(running.folder)
    stream = reader.named("federation")
    oldest, newest = stream.steps()
    assert stream.sound() == (newest - oldest, 2509, None)
    reader.close()


def test_export_has_every_number_exactly(tmp_path, capsys):
    pa = pytest.importorskip("pyarrow.parquet")
    folder = filled(tmp_path)
    assert main(["journal", "export", str(folder), str(tmp_path / "all.csv")]) == 0
    assert capsys.readouterr().out.endswith("all.csv: 131 steps\n")
    assert main(["journal", "export", str(folder), str(tmp_path / "some.parquet"), "--from", "50", "--to", "59"]) == 0
    with (tmp_path / "all.csv").open() as file:
        rows = list(csv.DictReader(file))
    expected = forecasts(folder)
    assert {int(row["step"]): [float(row["forecast_0"])] for row in rows[1:]} == expected
    assert rows[30]["target_0"] == ""  # never known
    assert [float(rows[20]["target_0"]), rows[20]["late"]] == [series(130)[20], "True"]
    weights = [sum(float(row[name]) for name in row if name.startswith("weight: ")) for row in rows[1:]]
    np.testing.assert_allclose(weights, 1.0, rtol=1e-12)
    table = pa.read_table(tmp_path / "some.parquet").to_pylist()
    assert [row["step"] for row in table] == list(range(50, 60))
    assert [[row["forecast_0"]] for row in table] == [expected[step] for step in range(50, 60)]
    assert table[0]["lower_90_0"] < table[0]["forecast_0"] < table[0]["upper_90_0"]
    for arguments, words in (
        ([str(folder), "x.txt"], "End its name with .csv or .parquet"),
        ([str(tmp_path), str(tmp_path / "x.csv")], "which holds no journal"),
        ([str(folder), str(tmp_path / "no" / "x.csv")], "Choose a file that can be written"),
    ):
        assert main(["journal", "export", *arguments]) == 1
        assert words in capsys.readouterr().err
