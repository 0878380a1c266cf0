"""Many runs: nothing lost, nothing repeated, whatever happens to the process."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast.paper.parallel_runs import Options, Outcome, Task, mean, outcomes, spread
from nashcast.paper.runs import ANCHORED, OURS, run
from nashcast.paper.settings import row

SCRIPT = """
import sys
from pathlib import Path
from nashcast.paper.parallel_runs import Options, Task, outcomes
from nashcast.paper.settings import row
settings = list(row("rfn", "logistic", 2, False).settings())[:1200]
outcomes([Task(each, 2024) for each in settings], Options(Path(sys.argv[1]), jobs=2), "test")
"""


def lines_in(folder: Path) -> list[str]:
    return [line for file in (folder / "results").glob("results-*.jsonl") for line in file.read_text().splitlines()]


@pytest.mark.slow
def test_a_killed_search_goes_on_where_it_was(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)])
    try:
        while process.poll() is None and len(lines_in(tmp_path)) < 100:
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = len(lines_in(tmp_path))
    assert 100 <= before < 1200
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=True)
    keys = [json.loads(line)["key"] for line in lines_in(tmp_path)]
    assert len(keys) == len(set(keys)) == 1200
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=True)
    assert len(lines_in(tmp_path)) == 1200


def test_outcomes_are_those_of_the_runs(tmp_path):
    setting = row("rfn", "periodic", 2, True).setting()
    tasks = [Task(setting, seed, way) for seed in (1, 2) for way in (OURS, ANCHORED)]
    told = []
    options = Options(tmp_path, jobs=1, progress=lambda *news: told.append(news))
    found = outcomes(tasks, options, "label")
    errors = [run(setting, seed).mse for seed in (1, 2)]
    assert mean(found, setting, (1, 2)) == np.mean(errors)
    assert spread(found, setting, (1, 2)) == (min(errors), max(errors))
    assert told[0] == ("label", 0, 4)
    assert told[-1] == ("label", 4, 4)
    again = outcomes(tasks, options, "label")
    assert again == found
    assert len(lines_in(tmp_path)) == 4


def test_a_run_that_diverges_is_a_result(tmp_path):
    setting = row("esn", "concept", 2, False).setting(ridge=1e-9, window=30)
    found = outcomes([Task(setting, 2024)], Options(tmp_path), "label")
    assert found[Task(setting, 2024)].mse > 1e3
    kept = outcomes([Task(setting, 2024)], Options(tmp_path), "label")
    assert kept == found
    assert isinstance(kept[Task(setting, 2024)], Outcome)


def test_an_error_stops_the_rest_and_keeps_what_is_done(tmp_path):
    good, bad = (row("rfn", name, 2, False).setting() for name in ("periodic", "logistic"))
    unknown = Task(row("rfn", "periodic", 2, False).setting(ridge=-1.0), 1)
    with pytest.raises(nc.NashcastError, match="ridge: got -1"):
        outcomes([Task(good, 1), unknown, Task(bad, 1)], Options(tmp_path, jobs=1), "label")
    assert outcomes([Task(good, 1)], Options(tmp_path), "label")
