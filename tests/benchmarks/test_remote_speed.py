"""The benchmark of agents in other processes: what it counts, what it compares, and that it leaves nothing running."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from speed.remote_command import PARTS, line, table_head
from speed.remote_steps import Case, bench, measure_equality, measure_speed, measure_traffic

import nashcast as nc
from nashcast.errors import NashcastError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place():
    with bench(3 + 2) as made:
        yield made


def test_steps_are_timed_beside_bare_rounds(place):
    row = measure_speed(place, Case(3, "spread", True, steps=10))
    assert (row["rounds"], row["aim"]) == (4, 7)
    for times in (row["step_ms"], row["bare_ms"]):
        assert 0 < times[0] <= times[1]
    np.testing.assert_allclose(row["ratio"], np.divide(row["step_ms"], row["bare_ms"]))
    assert (place.folder / "hub.state").exists()
    assert len(list(place.folder.glob("agent-*.state"))) == 3
    row = measure_speed(place, Case(3, "joint", False, steps=10, masked=True))
    assert row["rounds"] == 1
    row = measure_speed(place, Case(2, "central", False, steps=10))
    assert (row["rounds"], row["aim"]) == (1, 2)
    assert not list(place.folder.glob("*.state"))


def test_bytes_of_a_spread_game_do_not_depend_on_features_and_those_of_a_central_one_do(place):
    found = {
        (placement, features): measure_traffic(place, Case(2, placement, False, features, steps=4))
        for placement in ("central", "spread")
        for features in (2, 9)
    }
    assert found["spread", 2]["bytes"] == found["spread", 9]["bytes"]
    assert found["spread", 2]["messages"] == [4 * 2 + 1, 4 * 2 + 1]  # and the input to the stream
    assert found["central", 2]["messages"] == [3, 3]
    # Of each agent: features, means and covariance of three steps, and those of the present one.
    numbers = {d: 3 * (d + d + d * d) + d for d in (2, 9)}
    grown = found["central", 9]["bytes"][1] - found["central", 2]["bytes"][1]
    assert 0 <= grown - 2 * 8 * (numbers[9] - numbers[2]) < 40


def test_the_same_numbers_or_an_error(place, monkeypatch):
    for placement in ("central", "spread"):
        row = measure_equality(place, placement, steps=30)
        assert row["difference"] <= 1e-12
        assert row["games"] == 27
    replay = nc.Federation.replay

    def off(self, X, Y):
        found = replay(self, X, Y)
        return found._replace(forecasts=found.forecasts + 1e-11)

    monkeypatch.setattr(nc.Federation, "replay", off)
    with pytest.raises(NashcastError, match=r"central: differs by 1\.0e-11 from one process"):
        measure_equality(place, "central", steps=5)


def test_the_tables_have_a_cell_under_every_heading(tmp_path):
    command = [sys.executable, "-m", "nashcast", "bench", "remote", "--agents", "2", "--steps", "10", "--json"]
    run = subprocess.run(
        [*command, "--only", "speed"],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=True,
    )
    assert list(tmp_path.iterdir()) == []
    rows = json.loads(run.stdout)["speed"]
    assert [(row["game"], row["states"]) for row in rows] == [
        (game, states) for game in ("joint", "central", "spread") for states in (False, True)
    ]
    kept = json.loads((Path(__file__).parents[2] / "benchmarks" / "results" / "remote.json").read_text())
    for part in PARTS:
        for row in [*kept[part], *(rows if part == "speed" else [])]:
            assert line(part, row).count("|") == table_head(part)[0].count("|")
