"""`nashcast demo --federated`: real processes and a real broker; the printed table is that of the run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from demos.federated import ELSEWHERE, Federated, Seen, page
from demos.organisations import sent_names

from nashcast.cli.main import main
from nashcast.datasets import ecb_desks

pytestmark = pytest.mark.slow

NAMES = ["gbp", "jpy", "chf", "cad", "aud"]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    place = tmp_path_factory.mktemp("temporary")
    command = [sys.executable, "-m", "nashcast", "demo", "--federated", "--json", "--steps", "200"]
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=240, check=False, env={**os.environ, "TMPDIR": str(place)}
    )
    assert run.returncode == 0, run.stderr
    assert list(place.iterdir()) == []
    found = json.loads(run.stdout)
    return Federated(**{**found, "seen": {name: Seen(**seen) for name, seen in found["seen"].items()}})


def test_owners_gain_by_learning_together(shown):
    assert shown.owners == NAMES
    assert (shown.steps, shown.absences) == (200, {})
    together = shown.errors[ELSEWHERE]
    assert together < min(shown.errors[f"{name} alone"] for name in NAMES)
    assert together < shown.errors["mixture, no game"] < shown.errors["persistence"]
    assert shown.errors["persistence"] == pytest.approx(ecb_desks(steps=200).persistence_mse)


def test_only_masked_terms_left_the_owners(shown):
    assert shown.seen.keys() == set(NAMES)
    for seen in shown.seen.values():
        assert seen.numbers == ["masked terms"]
        assert (seen.by_hub, seen.by_owners) == ("sums over 5 agents", "nothing")
        assert 200 * 100 < seen.bytes < 200 * 1000
    assert 200 <= shown.traffic["turns"] <= 210
    assert 0.8 * shown.traffic["up"] < sum(seen.bytes for seen in shown.seen.values()) < 1.2 * shown.traffic["up"]


def test_the_table_has_every_owner_and_every_reference(shown):
    text = page(shown)
    for words in (*NAMES, "together, masked", "all inputs pooled", "persistence", "sums over 5 agents", "nothing"):
        assert words in text


def test_a_log_that_names_more_is_told():
    line = (
        "step 9: forecast (forecast (1,), features (1, 3)), view (features (3, 1, 3), ridge 0.5, decay 0.0); 214 bytes"
    )
    assert sent_names(line) == {"forecast", "features", "ridge", "decay"}


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
    while len(seen) < 6 and time.monotonic() < deadline:  # the broker's watchdog, and five agents
        seen |= set(children(run.pid))
        time.sleep(0.05)
    assert len(seen) >= 6
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130, said
    assert not any(Path(f"/proc/{pid}").exists() for pid in seen)
    assert list(tmp_path.iterdir()) == []


def test_too_few_steps_are_refused(capsys):
    assert main(["demo", "--federated", "--steps", "5"]) == 1
    assert "--steps: got int 5. Pass a whole number ≥ 100." in capsys.readouterr().err
