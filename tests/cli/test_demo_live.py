"""`nashcast demo --live`: the whole stack in real processes; what its page is told is what happened."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from demos.fleet import DRIFTING, SITES
from demos.live import KILLED, MEMBERS, STREAM, Shown, page_of, tide

from nashcast import Client
from nashcast.cli.main import main

NAMES = [member.name for member in MEMBERS]


@contextmanager
def playing(folder, seconds: float):
    """The demo, its page's address, and what it has said so far."""
    command = [sys.executable, "-m", "nashcast", "demo", "--live", "--no-browser", "--json", "--seconds", str(seconds)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(folder)}
    )
    said, page = [], None
    for line in process.stderr:
        said.append(line)
        if line.startswith("the page: "):
            page = line.removeprefix("the page: ").strip()
            break
    assert page, "".join(said)
    reader = threading.Thread(target=lambda: said.extend(process.stderr))
    reader.start()
    try:
        yield process, page, said
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        reader.join()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.slow
def test_an_agent_is_gone_and_back_in_what_the_page_is_told(tmp_path):
    with playing(tmp_path, 10) as (process, page, said):
        url, token = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/#token=(nashcast_\S{43})", page).groups()
        states, weights = [], []
        with Client(url, token, retries=0) as service:
            assert sorted(row["name"] for row in service.streams()) == [*SITES, STREAM]
        with Client(url, token, retries=0).stream(STREAM) as client:
            end = time.monotonic() + 150
            while states[-2:] != ["gone", "in"]:
                assert time.monotonic() < end, states
                told = {agent["name"]: agent for agent in client.agents()}
                assert list(told) == NAMES
                if not states or told[KILLED]["state"] != states[-1]:
                    states.append(told[KILLED]["state"])
                if told[KILLED]["state"] == "gone":
                    weights.append((told[KILLED]["weight"], sum(agent["weight"] for agent in told.values())))
                time.sleep(0.02)
            assert states[0] == "in"
            assert [mine for mine, _ in weights] == [0.0] * len(weights)
            assert [total for _, total in weights] == pytest.approx([1.0] * len(weights))
            assert KILLED not in client.forecast().absent
        assert process.wait(60) == 0
        shown = Shown(**json.loads(process.stdout.read()))
    assert shown.steps >= 100
    assert (shown.killed["agent"], shown.killed["killed_at_step"], shown.stopped) == (KILLED, 33, False)
    assert shown.killed["back_at_step"] > 50
    away = shown.sat_out[KILLED]
    assert set(range(35, 50)) <= set(away)
    assert shown.streams == 20
    assert shown.drift["stream"] == DRIFTING
    assert 0 < shown.drift["told_at_step"] - shown.drift["from_step"] < 30
    assert all(len(shown.sat_out[name]) < len(away) for name in NAMES if name != KILLED)
    assert 0.75 < shown.covered < 1.0
    assert any(f"{KILLED} is back" in line for line in said)
    assert list(tmp_path.iterdir()) == []
    printed = page_of(shown)
    for words in (
        *NAMES,
        f"{KILLED} was killed at step 33 and was back after",
        "inside their 90 % interval",
        "20 streams",
    ):
        assert words in printed


@pytest.mark.slow
def test_ctrl_c_ends_it_in_order(tmp_path):
    with playing(tmp_path, 600) as (process, page, said):
        url, _, token = page.partition("/#token=")
        with Client(url, token, retries=0).stream(STREAM) as client:
            end = time.monotonic() + 60
            while (client.status()["step"] or 0) < 10:
                assert time.monotonic() < end
                time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        shown = Shown(**json.loads(process.stdout.read()))
    assert shown.stopped
    assert shown.killed["killed_at_step"] is None
    assert "stopped early" in page_of(shown)
    assert list(tmp_path.iterdir()) == []
    assert not any("Traceback" in line for line in said)


def test_what_cannot_be_is_refused(capsys):
    for options, words in (
        (["--live", "--federated"], "--federated with --live. Pass one of them."),
        (["--live", "--seconds", "0"], "--seconds"),
        (["--live", "--port", "-1"], "--port"),
    ):
        assert main(["demo", *options]) == 1
        assert words in capsys.readouterr().err


def test_the_series_is_the_seeds():
    assert (tide(50, 1) == tide(50, 1)).all()
    assert (tide(50, 1) != tide(50, 2)).any()
