"""`nashcast run` and `nashcast evaluate` on a user's file."""

import csv
import json

import pytest

from nashcast.cli.main import main
from nashcast.datasets.simulated.hourly_load import load_table


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


READER = """
import numpy as np
from nashcast.encoders import BuiltEncoder

class Built(BuiltEncoder):
    features, objects, accepts_missing = 1, ("headline",), True

    def encode(self, context):
        return np.array([[float(len(context.objects["headline"]))]])

class Reader:
    objects = ("headline",)

    def build(self, x_dim, y_dim):
        return Built()
"""
READER_TOML = '[[agents]]\nname = "reader"\nencoder = "python"\nmake = "reader:Reader"\n'


@pytest.fixture
def texts(tmp_path):
    """A table whose target is the length of the headline before it, and agents that read it."""
    (tmp_path / "reader.py").write_text(READER)
    (tmp_path / "readers.toml").write_text(READER_TOML)
    lengths = [1 + (7 * t * t) % 11 for t in range(60)]
    lines = ["headline,rate,target", "start,0,1"]
    lines += [
        f"{'a' * length},{t},{before}" for t, (length, before) in enumerate(zip(lengths, [5, *lengths], strict=False))
    ]
    (tmp_path / "texts.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_agents_that_read_texts(texts, capsys):
    options = ["--target", "target", "--inputs", "headline,rate", "--agents", str(texts / "readers.toml")]
    assert main(["run", str(texts / "texts.csv"), *options, "--burn-in", "40", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["summary"]["MAE"] < 0.1 < said["summary"]["MAE of persistence"]


def test_where_inputs_are_numbers_a_reader_is_refused(texts, capsys):
    settings = texts / "readers.toml"
    settings.write_text('seed = 1\n[stream]\nname = "periodic"\n' + settings.read_text())
    assert main(["run", str(settings)]) == 1
    wanted = "readers.toml: agents[0].encoder: got 'python', which reads a text or a picture. Inputs are numbers here"
    assert wanted in capsys.readouterr().err
    settings.write_text("[serve]\nx_dim = 1\ny_dim = 1\n" + READER_TOML)
    assert main(["serve", str(settings)]) == 1
    assert wanted in capsys.readouterr().err


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
