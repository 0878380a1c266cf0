"""`nashcast run` and `nashcast evaluate` on a user's file."""

import csv
import json

import pytest

from nashcast.cli.main import main
from nashcast.streams.hourly_load import load_table


@pytest.fixture
def file(tmp_path):
    table, path = load_table(120), tmp_path / "load.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    (tmp_path / "mine.toml").write_text('[[agents]]\nname = "mine"\nencoder = "lags"\ninputs = ["temperature"]\n')
    return path


def test_run_prints_the_next_steps(file, capsys):
    options = ["--target", "load", "--inputs", "temperature", "--date", "time", "--horizon", "3", "--agents"]
    assert main(["run", str(file), *options, str(file.parent / "mine.toml"), "--timezone", "Australia/Melbourne"]) == 0
    out = capsys.readouterr().out
    assert "mine" in out
    assert "2024-01-06 00:00:00" in out.split("the next 3 steps")[1]


def test_run_as_json(file, capsys):
    assert main(["run", str(file), "--target", "load", "--date", "time", "--horizon", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["metrics"]["MAE"]) == 2
    assert len(said["forecast"]["load high 80"]) == 2


def test_evaluate_compares_with_the_members(file, capsys):
    assert (
        main(["evaluate", "--stream", str(file), "--target", "load", "--date", "time", "--horizon", "2", "--json"]) == 0
    )
    said = json.loads(capsys.readouterr().out)
    assert {"federation", "persistence", "trend", "joint game"} <= set(said["mae"])


@pytest.mark.parametrize(("options", "message"), [
    (["--target", "laod"], "Did you mean 'load'"),
    ([], "Name the column to forecast"),
    (["--target", "load", "--date", "temperature"], "Pass datetimes"),
    (["--target", "load", "--horizon", "0"], "horizon"),
    (["--target", "load", "--agents", "nowhere.toml"], "nowhere.toml"),
])  # fmt: skip
def test_mistakes_are_one_line(file, capsys, options, message):
    assert main(["run", str(file), *options]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
