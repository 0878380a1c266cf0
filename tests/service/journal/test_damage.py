"""What start-up makes of a damaged journal: it refuses, or goes on with nothing changed."""

import json
import os
import sqlite3
import subprocess
import sys

import pytest

from nashcast.cli.main import main
from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.journal.reader import JournalReader
from nashcast.service.journal.writer import Failed
from support.service.running import Running, filled, forecasts
from support.service.served import FILE, entries


def test_a_truncated_snapshot_is_passed_over_for_an_older_one_and_logged(tmp_path):
    folder = filled(tmp_path)
    expected = forecasts(folder)
    newest = max((folder / "snapshots").iterdir())
    victim = newest / "federation.state"
    victim.write_bytes(victim.read_bytes()[:-100])
    with Running(tmp_path) as again:
        assert again.computing.replayed > 40
        assert forecasts(folder) == expected
        reader = JournalReader(folder)
        damage = [event["text"] for event in reader.named("federation").log(-1, 100) if event["kind"] == "damage"]
        reader.close()
    assert "federation.state is not what was written. An older one is used." in damage[0]
    for path in (folder / "snapshots").iterdir():
        (path / "service.state").unlink()
    with Running(tmp_path) as from_nothing:
        assert from_nothing.computing.from_step is None
        assert forecasts(folder) == expected


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE entries SET y = x'000000000000f03f' WHERE step = 128 AND kind = 0", "entry .* is damaged"),
        ("DELETE FROM entries WHERE step = 127", "one before it is missing"),
        ("UPDATE entries SET at = at + 1 WHERE step = 129", "entry .* is damaged"),
        ("DELETE FROM entries WHERE step > 60", "the journal ends at"),
        ("UPDATE forecasts SET forecast = x'000000000000f03f' WHERE step = 128", "is not the one recorded"),
    ],
)
def test_what_cannot_be_true_is_not_served(statement, words, tmp_path):
    folder = filled(tmp_path)
    connection = sqlite3.connect(folder / "journal.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(Failed, match=words):
        Running(tmp_path)


def test_bytes_overwritten_anywhere_near_the_end_never_give_other_forecasts(tmp_path):
    """Each of the last pages in turn: start-up refuses, or everything it serves is as it was."""
    folder = filled(tmp_path)
    expected, whole = forecasts(folder), (folder / "journal.db").read_bytes()
    kept = {(e.seq, e.step, e.kind): (None if e.y is None else e.y.tolist()) for e in entries(folder)}
    refused, pages = 0, len(whole) // 4096
    for page in range(pages - 8, pages):
        for offset in (0, 2048):
            damaged = bytearray(whole)
            place = page * 4096 + offset
            damaged[place : place + 64] = bytes(64 - i for i in range(64))
            (folder / "journal.db").write_bytes(damaged)
            for name in ("journal.db-wal", "journal.db-shm"):
                (folder / name).unlink(missing_ok=True)
            try:
                running = Running(tmp_path)
            except (NashcastError, sqlite3.DatabaseError):
                refused += 1
                continue
            try:
                running.observe([0.5], 130)
                now = forecasts(folder)
                assert {step: now[step] for step in expected} == expected
                found = {(e.seq, e.step, e.kind): (None if e.y is None else e.y.tolist()) for e in entries(folder)}
                assert {name: found[name] for name in kept} == kept
            except Failed:
                refused += 1
            finally:
                running.close()
            (folder / "journal.db").write_bytes(whole)
    assert refused > 4


def test_salvage_takes_what_is_sound_and_it_is_served_with_the_same_forecasts(tmp_path, capsys):
    folder = filled(tmp_path)
    expected = forecasts(folder)
    connection = sqlite3.connect(folder / "journal.db")
    connection.execute("UPDATE entries SET x = x'000000000000f03f' WHERE step = 100 AND kind = 0")
    connection.commit()
    connection.close()
    assert main(["journal", "check", str(folder), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["streams"][0]["last_step"] == 99
    (tmp_path / "new").mkdir()
    assert main(["journal", "salvage", str(folder), str(tmp_path / "new" / "journal")]) == 0
    assert "up to step 99\n  then: entry" in capsys.readouterr().out
    with Running(tmp_path / "new") as again:
        assert again.stream.journal.step == 99
        assert forecasts(again.folder) == {step: value for step, value in expected.items() if step <= 100}
    assert main(["journal", "salvage", str(folder), str(tmp_path / "new")]) == 1
    assert "which is there already" in capsys.readouterr().err


def test_another_federation_and_a_second_server_are_refused(tmp_path):
    with Running(tmp_path) as running:
        running.observe([1.0, 2.0], 0)
        with pytest.raises(InvalidInput, match="which another nashcast serve is using"):
            Running(tmp_path)
    with pytest.raises(Failed, match="has other settings than the journal's stream 'federation'"):
        Running(tmp_path, FILE.replace("features = 3", "features = 4"))
    with Running(tmp_path, FILE.replace("snapshot_every = 40", "window = 77")):
        pass  # how often it saves and over what it averages does not change the numbers


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody who may not write")
    folder = filled(tmp_path)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_uid == 0 and path.is_relative_to("/tmp"):
            path.chmod(path.stat().st_mode | 0o005)
    script = (
        "import os, sys\nfrom nashcast.service.journal.journal import Journal\nos.seteuid(65534)\n"
        "try:\n Journal(sys.argv[1])\nexcept Exception as error:\n print(type(error).__name__, error)"
    )
    command = [sys.executable, "-c", script, str(folder)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith("InvalidInput journal: got ")
    assert "Permission denied" in said
