"""A journal copied while it is written, carried to other settings, and begun from a file."""

import csv
import json
import threading

import pytest

from nashcast import Client
from nashcast.cli.main import main
from support.service.running import Running, filled, forecasts
from support.service.served import FILE, Served, entries, recorded, series, uninterrupted


def test_a_backup_taken_while_observations_come_in_is_served_as_it_is(tmp_path, capsys):
    values, stop = series(3000), threading.Event()
    with Served(tmp_path) as served:

        def post():
            with served.client() as client:
                for step, value in enumerate(values):
                    client.post([{"x": value, "y": value, "step": step}])
                    if stop.is_set():
                        return

        poster = threading.Thread(target=post)
        poster.start()
        while len(entries(served.journal)) < 60:
            pass
        (tmp_path / "copy").mkdir()
        assert main(["journal", "backup", str(served.journal), str(tmp_path / "copy" / "journal"), "--json"]) == 0
        count = json.loads(capsys.readouterr().out)["entries"]
        stop.set()
        poster.join()
    assert count >= 60
    with Running(tmp_path / "copy") as again:
        kept = entries(again.folder)
        assert [entry.step for entry in kept] == list(range(count))
        assert forecasts(again.folder) == uninterrupted(again.file, kept)
    assert main(["journal", "backup", str(served.journal), str(tmp_path / "copy")]) == 1
    assert "which is there already" in capsys.readouterr().err


def test_a_journal_is_carried_to_other_settings_which_are_named(tmp_path, capsys):
    folder = filled(tmp_path)
    (tmp_path / "new").mkdir()
    other = tmp_path / "new" / "federation.toml"
    other.write_text(FILE.replace("features = 3", "features = 5"))
    out = tmp_path / "new" / "journal"
    assert main(["journal", "replay", str(folder), str(other), "--output", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["differ"] == {"agents[2].features": [3, 5]}
    assert told["entries"] == len(entries(folder))
    assert forecasts(out) == uninterrupted(other, entries(folder))
    with Running(tmp_path / "new", other.read_text()) as served:
        assert served.computing.replayed == 0
        assert [entry[:7] == other[:7] for entry, other in zip(entries(folder), entries(out), strict=True)]
    other.write_text(FILE.replace("x_dim = 1", "x_dim = 2"))
    assert main(["journal", "replay", str(folder), str(other), "--output", str(tmp_path / "x")]) == 1
    assert "x_dim 2 and y_dim 1, but the journal has 1 and 1" in capsys.readouterr().err


def test_after_a_warm_start_forecasts_are_those_of_a_service_that_saw_it_live(tmp_path):
    values = series(150)
    history = tmp_path / "history.csv"
    with history.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "x", "y"])
        for t, value in enumerate(values[:120]):
            writer.writerow([1_700_000_000 + 60 * t, value, "" if t == 50 else value])
    rows = [(v, None if t == 50 else v) for t, v in enumerate(values)]
    with Served(tmp_path, "--history", str(history)) as served, served.client() as client:
        while client.status()["step"] != 119:
            pass
        warm = client.observe_many(rows[120:], first_step=120)
        assert recorded(client) == uninterrupted(tmp_path / "federation.toml", entries(served.journal))
        assert next(client.history(7, 7))["time"] == "2023-11-14T22:20:20Z"
    (tmp_path / "live").mkdir()
    with Served(tmp_path / "live") as served, served.client() as client:
        client.send(rows, first_step=0)
        while client.status()["step"] != 149:
            pass
        assert client.forecast().forecast == warm.forecast
    with Served(tmp_path, "--history", str(history)) as served, Client(served.url) as client:
        assert client.stream("federation").forecast().step == 150  # what has observations is left alone


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "got columns a, b. Add columns x_0."),
        ("x,y\n1,hello\n", "row 2.y: got 'hello'. Pass a number"),
        ("time,x,y\n2024-01-01T00:00,1,2\n", "Pass a time with its offset"),
    ],
)
def test_a_history_that_cannot_be_read_is_told_and_the_service_goes_on(text, words, tmp_path):
    (tmp_path / "history.csv").write_text(text)
    with Served(tmp_path, "--history", str(tmp_path / "history.csv")) as served, served.client() as client:
        assert client.observe(1.0, 1.0).step == 1
        while words not in served.log():
            pass
