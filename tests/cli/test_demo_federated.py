"""`nashcast demo --federated`: real processes, a real broker; what it prints is what happened."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from demos.federated import KILLED, MEMBERS, Shown, page, who_saw_what
from demos.organisations import sent_names

from nashcast.cli.main import main
from nashcast.datasets import concept_shift
from nashcast.federation.lookback.transport import Message

pytestmark = pytest.mark.slow

NAMES = [member.name for member in MEMBERS]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    place = tmp_path_factory.mktemp("temporary")
    command = [sys.executable, "-m", "nashcast", "demo", "--federated", "--json", "--steps", "60"]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env={**os.environ, "TMPDIR": str(place)}
    )
    assert run.returncode == 0, run.stderr
    assert list(place.iterdir()) == []
    return Shown(**json.loads(run.stdout))


def test_everybody_took_part_but_the_one_killed(shown):
    assert shown.steps == 60
    assert shown.killed["agent"] == KILLED
    assert shown.killed["killed_at_step"] == 20
    away = shown.sat_out[KILLED]
    assert away == list(range(20, shown.killed["back_at_step"]))
    assert 0 < len(away) <= 25
    assert shown.killed["seconds"] > 0
    assert not any(steps for name, steps in shown.sat_out.items() if name != KILLED)
    assert shown.difference <= 1e-12
    assert sum(shown.weights.values()) == pytest.approx(1.0)
    stream = concept_shift(60, target=1)
    last = np.concatenate([stream.start[None], stream.targets[:-1]])
    assert shown.errors["persistence"] == pytest.approx(np.mean((stream.targets - last) ** 2))


def test_who_saw_what_is_counted(shown):
    seen = {(row["party"], row["of"]): row for row in shown.seen}
    assert seen.keys() == {(a, b) for a in ("hub", *NAMES) for b in ("hub", *NAMES) if a != b}
    for name in NAMES:
        told, heard = seen["hub", name]["kinds"], seen[name, "hub"]["kinds"]
        assert told.keys() == {"begin", "forecast", "backward", "finish_game"}
        if name != KILLED:
            assert told["forecast"] == 60 * 8
            assert heard["forecast"] == 60 * (3 * 8 + 1)
        assert seen["hub", name]["bytes"] == sum(told.values())
        for other in NAMES:
            if other != name:
                assert seen[name, other] == {"party": name, "of": other, "bytes": 0, "kinds": {}}
    assert shown.stayed == ["features", "means", "covariance", "decoder", "ridge", "decay"]
    for name in NAMES:
        assert shown.left[name]["bytes"] > seen["hub", name]["bytes"] > 1000
        assert {"forecast", "coupling"} <= set(shown.left[name]["named"])


def test_what_is_printed_has_it_all(shown):
    text = page(shown)
    for words in (
        *NAMES,
        "persistence",
        f"{KILLED} was killed at step 20 and was back after",
        "nobody's: features, means",
    ):
        assert words in text
    assert text.count("nothing") == 6
    assert f"{KILLED} sat out: 20–" in text


def test_a_log_that_names_more_is_told():
    line = (
        "step 9: forecast (forecast (1,), features (1, 3)), view (features (3, 1, 3), ridge 0.5, decay 0.0); 214 bytes"
    )
    assert sent_names(line) == {"forecast", "features", "ridge", "decay"}
    message = Message(1, "b", "a", "view", {"features": (3,)}, 24)
    row = next(row for row in who_saw_what([message], ["a", "b"]) if row["party"] == "a" and row["of"] == "b")
    assert row["bytes"] == 24


def children(pid):
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_interrupted_it_leaves_nothing_behind(tmp_path):
    command = [sys.executable, "-m", "nashcast", "demo", "--federated", "--json"]
    run = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    deadline, seen = time.monotonic() + 120, set()
    while len(seen) < 4 and time.monotonic() < deadline:  # the broker's keeper, and three agents
        seen |= set(children(run.pid))
        time.sleep(0.05)
    assert len(seen) >= 4
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130, said
    assert not any(Path(f"/proc/{pid}").exists() for pid in seen)
    assert list(tmp_path.iterdir()) == []


def test_too_few_steps_are_refused(capsys):
    assert main(["demo", "--federated", "--steps", "5"]) == 1
    assert "--steps: got int 5. Pass a whole number ≥ 20." in capsys.readouterr().err
