"""Events of a stream: recorded once whatever is killed, listed, counted, and logged with fields of their own."""

import itertools
import json
import sqlite3

from nashcast import Client
from nashcast.service.events.kinds import EVENTS
from nashcast.service.workers.computing import changes
from support.service.running import Running
from support.service.served import FILE, Served, drifting


def logged(folder, kinds=tuple(EVENTS)):
    connection = sqlite3.connect(folder / "journal.db")
    rows = connection.execute("SELECT step, kind, text FROM log ORDER BY id").fetchall()
    connection.close()
    return [row for row in rows if row[1] in kinds]


def test_a_drift_is_an_event_once_whatever_is_replayed(tmp_path):
    values = drifting()
    straight = tmp_path / "straight"
    straight.mkdir()
    with Running(straight) as running:
        running.observe(values, 0)
        assert "errors" in running.live.watch.alarms()
    once = logged(straight / "journal")
    assert next(kind for _, kind, _ in once) == "drift"
    assert 300 <= once[0][0] <= 330
    assert once[0][2].startswith("error jump: recent errors are ")
    killed = tmp_path / "killed"
    killed.mkdir()
    for start in range(0, 420, 35):
        running = Running(killed)  # what comes after the last snapshot is replayed
        running.observe(values[start : start + 35], start)
        running.close(in_order=False)
    assert logged(killed / "journal") == once


def test_changes_of_agents_are_told_once_each():
    away = "ValueError: no"
    states = [
        {"a": ("in", None)},
        {"a": ("benched", away)},
        {"a": ("in", None)},
        {"a": ("late", away)},
        {"a": ("gone", away)},
        {"a": ("gone", away)},
        {"a": ("in", None)},
        {"a": ("gone", "not connected")},
    ]
    told = [changes(before, now) for before, now in itertools.pairwise(states)]
    kinds = [[kind for kind, _ in each] for each in told]
    assert kinds == [["agent out"], ["agent in"], ["agent out"], ["agent gone"], [], ["agent back"], ["agent gone"]]
    assert changes({}, states[0]) == []


def test_history_is_of_its_own_time(tmp_path):
    """Drift found in rows of last year is dated then: it is no news."""
    rows = [{"x": v, "y": v, "time": 1.7e9 + 3600 * t} for t, v in enumerate(drifting().tolist())]
    with Served(tmp_path, text=FILE) as served, served.client() as client:
        client.post(rows, wait=30)
        with Client(served.url) as service:
            event = service.recent_events()[0]
        assert event["at"] == 1.7e9 + 3600 * event["step"]


def test_events_are_listed_counted_and_logged_as_json(tmp_path):
    values = drifting().tolist()
    with Served(tmp_path, "--log-format", "json") as served, served.client() as client, Client(served.url) as service:
        client.observe_many([(v, v) for v in values], first_step=0)
        found = service.recent_events()
        assert {each["stream"] for each in found} == {"federation"}
        assert found[0]["kind"] == "drift"
        assert service.recent_events(after=found[-1]["id"]) == []
        assert service.recent_events(after=found[0]["id"] - 1, limit=1) == found[:1]
        assert client.status()["alarms"] == service.streams()[0]["alarms"] != []
        assert found[0]["kind"] in [each["kind"] for each in client.log()]
    lines = [json.loads(line) for line in served.log().splitlines()]
    assert all(line["level"] in ("info", "warning") and line["time"].endswith("Z") for line in lines)
    events = [line for line in lines if "kind" in line]
    assert [(line["stream"], line["kind"], line["step"]) for line in events] == [
        (each["stream"], each["kind"], each["step"]) for each in found
    ]
    assert events[0]["level"] == "warning"
