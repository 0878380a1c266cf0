"""Many streams in one real service: files and HTTP make them, workers own them, and none depends on another."""

import json
import os
import signal
import time
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest

from nashcast import Client, default_federation
from nashcast.client import ServiceRefused
from support.service.served import DEFAULT, FILE, Served, series, uninterrupted
from support.service.served import entries as read_entries

SETTINGS = {"seed": 7, "serve": {"x_dim": 1, "y_dim": 1}, "agents": [{"encoder": "trend"}, {"encoder": "linear"}]}


def folder_of(folder, texts):
    streams = folder / "streams"
    streams.mkdir()
    for name, text in texts.items():
        (streams / f"{name}.toml").write_text(text)
    return streams


def children(pid):
    path = f"/proc/{pid}/task/{pid}/children"
    return [int(each) for each in Path(path).read_text().split()]


def pairs(values):
    return [(v, v) for v in values]


def recorded(stream):
    return {row["step"]: row["forecast"] for row in stream.history(0) if row["forecast"] is not None}


def of_stream(served, name):
    import sqlite3

    connection = sqlite3.connect(served.journal / "journal.db")
    number = connection.execute("SELECT id FROM streams WHERE name = ?", (name,)).fetchone()[0]
    connection.close()
    return read_entries(served.journal, number)


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.01)
    return found


def test_streams_of_a_folder_each_forecast_as_if_alone(tmp_path):
    texts = {
        "north": FILE,
        "south": FILE.replace("seed = 7", "seed = 8"),
        "wide": FILE.replace("y_dim = 1", "y_dim = 2"),
    }
    streams = folder_of(tmp_path, texts)
    with Served(tmp_path, path=streams) as served, Client(served.url) as client:
        assert served.about["streams"] == ["north", "south", "wide"]
        values = {name: series(60, seed=i) for i, name in enumerate(texts)}
        for start in range(0, 60, 20):
            for name in ("north", "south"):
                client.stream(name).observe_many(pairs(values[name][start : start + 20]), first_step=start)
        for name in ("north", "south"):
            expected = uninterrupted(streams / f"{name}.toml", of_stream(served, name))
            assert recorded(client.stream(name)) == expected
        rows = {row["name"]: row for row in client.streams()}
        assert [rows[name]["step"] for name in texts] == [59, 59, None]
        assert rows["north"]["spark"] == [float(v) for v in values["north"][-48:]]
        with pytest.raises(ServiceRefused, match=r"y: got 1.* Pass a list of 2 numbers"):
            client.stream("wide").observe(1.0, 1.0)
        with pytest.raises(ServiceRefused, match="'east', which is no stream") as refused:
            client.stream("east").forecast()
        assert refused.value.status == 404


def test_streams_are_made_changed_and_removed_over_http_and_outlive_the_process(tmp_path):
    streams, values = folder_of(tmp_path, {"north": FILE}), series(40)
    with Served(tmp_path, path=streams) as served, Client(served.url) as client:
        assert client.make_stream("made", SETTINGS) == {"name": "made", "made": True, "changed": []}
        assert client.make_stream("made", SETTINGS) == {"name": "made", "made": False, "changed": []}
        made = client.stream("made")
        made.observe_many(pairs(values), first_step=0)
        before = made.forecast()
        told = {**SETTINGS, "serve": {**SETTINGS["serve"], "units": "MW"}}
        assert client.make_stream("made", told)["changed"] == ["serve.units"]
        until(lambda: made.status()["state"] == "live")
        after = made.forecast()
        assert (after.units, after.forecast) == ("MW", before.forecast)
        other = {**told, "seed": 3, "agents": [{"encoder": "trend"}]}
        with pytest.raises(ServiceRefused, match=r"change its forecasts .* Pass replay=true") as refused:
            client.make_stream("made", other)
        assert refused.value.code == "settings_differ"
        assert "agents" in client.make_stream("made", other, replay=True)["changed"]
        until(lambda: made.status()["state"] == "live" and made.status()["step"] == 39)
        assert made.agents()[1]["name"] == "trend"
        assert len(made.agents()) == 3
        for name, settings, words in (
            ("made", {**other, "serve": {"x_dim": 2, "y_dim": 1}}, "sizes other"),
            ("north", SETTINGS, "federation|north.toml describes"),
            ("evil", {**SETTINGS, "agents": [{"encoder": "forecaster", "function": "os:getcwd"}]}, "over HTTP"),
            ("../x", SETTINGS, "no such path|no_such"),
            ("x", {"serve": {}}, "x_dim"),
        ):
            with pytest.raises(ServiceRefused, match=words):
                client.make_stream(name, settings)
        client.make_stream("gone", SETTINGS)
        client.stream("gone").observe(1.0, 1.0)
        assert client.remove_stream("gone") == {"name": "gone", "removed": True}
        standing = made.forecast()
    with Served(tmp_path, path=streams) as served, Client(served.url) as client:
        assert served.about["streams"] == ["made", "north"]
        assert client.stream("made").forecast() == standing


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced_and_forecasts_go_on_bit_for_bit(tmp_path):
    streams = folder_of(tmp_path, dict.fromkeys(("a", "b", "c", "d"), FILE))
    values = {name: series(60, seed=i) for i, name in enumerate("abcd")}
    with Served(tmp_path, "--workers", "2", path=streams) as served, Client(served.url) as client:
        for start in range(0, 60, 10):
            for name in "abcd":
                client.stream(name).observe_many(pairs(values[name][start : start + 10]), first_step=start)
            (spawner,) = children(served.process.pid)
            workers = children(spawner)
            assert len(workers) == 2
            os.kill(workers[(start // 10) % 2], signal.SIGKILL)
            replaced = lambda old=workers, of=spawner: old != children(of) and len(children(of)) == 2  # noqa: E731
            until(replaced)
        for name in "abcd":
            stream = client.stream(name)
            until(lambda stream=stream: stream.status()["behind"] == 0 and stream.status()["state"] == "live")
            assert recorded(stream) == uninterrupted(streams / f"{name}.toml", of_stream(served, name))
        with urlopen(f"{served.url}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        assert sum(int(line.split()[-1]) for line in lines if "worker_deaths_total{" in line) == 6


def test_forecasts_have_timestamps_horizons_quantiles_and_units(tmp_path):
    text = "horizon = 3\n" + DEFAULT.replace("y_dim = 1", 'y_dim = 1\nunits = "MW"')
    values = series(80)
    with Served(tmp_path, text=text) as served, served.client() as client:
        for step in range(0, 80, 20):
            times = [1_700_000_000 + 3600 * t for t in range(step, step + 20)]
            found = client.observe_many(pairs(values[step : step + 20]), first_step=step, times=times)
        assert found.time == "2023-11-18T06:13:20Z"
        assert [each.time for each in found.path] == [found.time, "2023-11-18T07:13:20Z", "2023-11-18T08:13:20Z"]
        assert [each.step for each in found.path] == [80, 81, 82]
        assert found.units == "MW"
        for each in found.path:
            low, high = each.bounds[1].lower[0], each.bounds[1].upper[0]
            assert low < each.forecast[0] < high
            assert each.quantiles[0.05] == [low]
            assert each.quantiles[0.95] == [high]
        federation = default_federation(1, 1, 3, seed=7)
        x = np.array([values[0]])
        for value in values:
            federation.learn_one(x, value)
            x = np.array([value])
            said = federation.predict_one(x)
        assert [each.forecast[0] for each in found.path] == said.tolist()
        row = next(client.history(79, 79))
        assert row["time"] == "2023-11-18T05:13:20Z"
    with Served(tmp_path, text=text) as again, again.client() as client:
        assert client.forecast() == found  # from the journal
        until(lambda: client.status()["state"] == "live")
        assert client.forecast() == found  # from the worker


def test_many_late_labels_in_one_post_are_learnt_together(tmp_path):
    values = series(120)
    with Served(tmp_path, text=DEFAULT) as served, served.client() as client:
        rows = [(v, v if t < 20 else None) for t, v in enumerate(values)]
        client.observe_many(rows, first_step=0)
        client.label_many([(t, values[t]) for t in range(20, 120)])
        assert client.status()["game"]["late_labels"] == 100
        once = client.forecast().forecast
    import sqlite3

    connection = sqlite3.connect(served.journal / "journal.db")
    (count,) = connection.execute("SELECT count(DISTINCT at) FROM entries WHERE kind = 1").fetchone()
    connection.close()
    assert count == 1
    again = uninterrupted(tmp_path / "federation.toml", read_entries(served.journal))
    assert once == again[120]


def test_readiness_says_how_many_streams_there_are(tmp_path):
    streams = folder_of(tmp_path, {"a": FILE, "b": FILE})
    with Served(tmp_path, path=streams) as served, Client(served.url) as client:
        until(lambda: client.ask("GET", "/readyz")["loading"] == 0)
        assert json.dumps(client.ask("GET", "/readyz")) == (
            '{"status": "ready", "streams": 2, "loading": 0, "failed": 0, "stuck_workers": 0}'
        )
        client.stream("a").observe(1.0, 1.0)
    (streams / "a.toml").write_text(FILE.replace("seed = 7", "seed = 9"))
    with Served(tmp_path, path=streams) as served, Client(served.url) as client:
        assert client.ask("GET", "/readyz")["failed"] == 1
        with pytest.raises(ServiceRefused, match="has other settings than the journal's stream 'a'"):
            client.stream("a").observe(1.0, 1.0)
        assert client.stream("b").observe(1.0, 1.0).step == 1
