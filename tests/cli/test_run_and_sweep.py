"""`nashcast run` and `nashcast sweep` as a stranger meets them."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from nashcast.cli.main import main
from nashcast.cli.run import change, slug, toml
from nashcast.records.folder import read_record
from nashcast.records.results import Results
from nashcast.records.runs import read_run

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))

FILE = """
name = "A small one, really"
seed = 5
[stream]
name = "concept-y2"
[paper]
lookback = 2
[[agents]]
count = 2
encoder = "random_features"
features = 3
"""
SWEEP = FILE + '[sweep]\nseeds = [1, 2]\ntune_until = 40\n[grid]\n"agents.ridge" = [0.5, 5, 50]\n'


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f.toml").write_text(FILE)
    (tmp_path / "g.toml").write_text(SWEEP)
    return tmp_path


def test_a_run_prints_its_errors_beside_the_baselines_and_says_where_the_record_is(here, capsys):
    assert main(["run", "f.toml", "--steps", "60"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("A small one, really: concept shift, 60 steps, seed 5\n")
    for words in ("federation, game, look-back 2, every 1", "federation, no game", "federation, anchored, no game"):
        assert words in page
    assert re.search(r"\n  persistence +\d\.\d{3}e-\d\d +0\.000\n", page)
    assert "    random features 2 " in page
    assert re.search(r"last weights: random features 1: -?0\.\d{3}, random features 2: -?0\.\d{3}", page)
    assert page.endswith("record: runs/a-small-one-really-5\nreport: nashcast report runs/a-small-one-really-5\n")
    record = read_run(here / "runs" / "a-small-one-really-5")
    assert record.about["command"] == "nashcast run f.toml --steps 60"
    assert record.about["settings"]["steps"] == 60
    assert f"{record.about['summary']['mse']:.3e}" in page


JOINT = """
name = "joint"
horizon = 3
[stream]
name = "four-owners"
[[agents]]
name = "north"
encoder = "lags"
inputs = [0, 1]
[[agents]]
name = "south"
encoder = "lags"
inputs = [2, 3]
"""


def test_a_joint_run_prints_its_members_and_the_steps_ahead(here, capsys):
    (here / "j.toml").write_text(JOINT)
    assert main(["run", "j.toml", "--steps", "120"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("joint: four owners (simulated), 120 steps, seed 0\n")
    for words in ("federation, game  ", "federation, no game", "    north ", "    joint game ", "    3 ahead "):
        assert words in page
    summary = read_run(here / "runs" / "joint-0").about["summary"]
    assert summary["mse"] < summary["baselines"]["no game"] < summary["persistence_mse"]
    assert main(["run", "j.toml", "--steps", "30", "--set", "game=false", "--no-record"]) == 0
    page = capsys.readouterr().out
    assert "federation, no game" in page
    assert "federation, game" not in page


def test_json_is_one_strict_object_with_the_same_numbers(here, capsys):
    assert main(["run", "f.toml", "--json", "--output", "out", "--seed", "6", "--set", "agents.ridge=2"]) == 0
    shown = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    record = read_run(here / "out")
    assert shown["record"] == "out"
    assert shown["seed"] == record.about["seed"] == 6
    assert shown["settings"]["agents"][0]["ridge"] == 2.0
    assert shown["summary"]["mse"] == record.about["summary"]["mse"]
    assert main([*shlex.split(record.about["command"])[1:], "--output", "again"]) == 0
    np.testing.assert_array_equal(read_run(here / "again").arrays["forecasts"], record.arrays["forecasts"])


def test_a_diverged_run_says_so_and_is_null_in_json(here, capsys):
    options = ["--no-record", "--set", "game=false", "--set", "stream.steps=4000", "--set", "agents.count=5"]
    options += ["--set", "agents.noise=1", "--set", "agents.features=6", "--set", "agents.ridge=0.1"]
    assert main(["run", "f.toml", *options]) == 0
    page = capsys.readouterr().out
    assert re.search(r"federation, no game +diverges +–", page)
    assert "record:" not in page
    assert main(["run", "f.toml", "--json", *options]) == 0
    shown = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert shown["summary"]["mse"] is None
    assert shown["record"] is None
    assert not (here / "runs").exists()


def test_a_record_of_other_settings_is_not_overwritten_unless_told(here, capsys):
    assert main(["run", "f.toml", "--output", "out"]) == 0
    assert main(["run", "f.toml", "--output", "out"]) == 0
    assert main(["run", "f.toml", "--output", "out", "--set", "paper.every=2"]) == 1
    assert "--output: got out, which holds a record of other settings or a damaged one." in capsys.readouterr().err
    assert read_run(here / "out").about["settings"]["paper"]["every"] == 1
    assert main(["run", "f.toml", "--output", "out", "--set", "paper.every=2", "--overwrite"]) == 0
    assert read_run(here / "out").about["settings"]["paper"]["every"] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "the following arguments are required: FILE"),
        (["sweep"], "the following arguments are required: FILE"),
        (["run", "f.toml", "--set", "ridge"], "got 'ridge'; write KEY=VALUE, for example agents.features=8"),
        (["run", "f.toml", "--steps", "soon"], "invalid int value"),
        (["sweep", "g.toml", "--top", "0"], "got '0'; pass a whole number ≥ 1"),
        (["sweep", "g.toml", "--jobs", "all"], "got 'all'; pass a whole number ≥ 1"),
    ],
)
def test_misuse_exits_with_2(here, capsys, arguments, words):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "no.toml"], "nashcast: file: got no.toml (No such file or directory). Pass a TOML file"),
        (["run", "broken.toml"], "broken.toml: got text that is not TOML. Invalid value (at line 2, column 5)."),
        (
            ["run", "f.toml", "--set", "agents.rigde=1"],
            "f.toml: agents[0].rigde: got a key that is not known. Did you mean",
        ),
        (["run", "f.toml", "--steps", "0"], "f.toml: steps: got 0. Pass a whole number ≥ 1."),
        (["run", "f.toml", "--seed", "-1"], "f.toml: seed: got -1. Pass a whole number ≥ 0."),
        (
            ["run", "f.toml", "--output", "f.toml/below"],
            "--output: got f.toml/below, which cannot be written (Not a directory).",
        ),
        (["run", "f.toml", "--output", "/proc/nothing"], "--output: got /proc/nothing, which cannot be written ("),
        (["sweep", "f.toml"], "f.toml: grid: got nothing. Add a table [grid]"),
        (["sweep", "g.toml", "--output", "f.toml/below"], "cannot write results to f.toml/below: Not a directory."),
        (["sweep", "g.toml", "--post-hoc"], "--post-hoc: got sweep.tune_until with it."),
        (["sweep", "g.toml", "--set", "sweep.tune_until=false"], "sweep.tune_until: got nothing."),
    ],
)
def test_failure_exits_with_1_says_why_and_leaves_nothing(here, capsys, arguments, words):
    (here / "broken.toml").write_text("a = 1\nb = \n")
    before = sorted(here.rglob("*"))
    assert main(arguments) == 1
    assert words in capsys.readouterr().err
    assert sorted(here.rglob("*")) == before


def test_a_sweep_prints_a_ranked_table_and_how_to_run_its_winner(here, capsys):
    assert main(["sweep", "g.toml", "--top", "2", "--jobs", "2"]) == 0
    page = capsys.readouterr().out
    lines = page.splitlines()
    assert lines[0] == (
        "A small one, really: 3 settings, 2 seeds each, ranked on steps 1 to 40, scored on steps 41 to 200"
    )
    assert [line.split("  ")[0] for line in [lines[1], *lines[3:7]]] == [
        "rank",
        "1",
        "2",
        "1, anchored, no game",
        "persistence",
    ]
    assert "… and 1 more settings: --top 3" in page
    assert "6 runs, " in page
    again = next(line for line in lines if line.startswith("run the best: ")).removeprefix("run the best: ")
    assert main([*shlex.split(again)[1:], "--output", "best"]) == 0
    best = read_run(here / "best")
    folder = here / "runs" / "a-small-one-really-sweep"
    errors = [result["rest"] for result in Results(folder).done().values()]
    assert np.mean((best.arrays["forecasts"][40:] - best.arrays["targets"][40:]) ** 2) in errors
    record = read_record(folder)
    assert record.about["kind"] == "sweep"
    assert len(record.about["tables"][0]["rows"]) == 3 + 2
    assert (np.diff(record.arrays["tuning"]) >= 0).all()
    assert record.about["command"] == "nashcast sweep g.toml"


def test_the_same_sweep_continues_and_another_is_refused(here, capsys):
    assert main(["sweep", "g.toml", "--output", "out", "--json"]) == 0
    first = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    files = {path: path.read_bytes() for path in (here / "out").glob("results-*")}
    assert main(["sweep", "g.toml", "--output", "out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == first["rows"]
    assert {path: path.read_bytes() for path in (here / "out").glob("results-*")} == files
    assert (first["runs"], first["settings"], first["after_the_fact"]) == (6, 3, False)
    assert main(["sweep", "g.toml", "--output", "out", "--set", "agents.decay=0.5"]) == 1
    refused = "folder: got out, which holds results of other settings (federation.agents[0].decay was 0, is 0.5)."
    assert refused in capsys.readouterr().err


def test_a_sweep_after_the_fact_says_so(here, capsys):
    assert main(["sweep", "g.toml", "--set", "sweep.tune_until=false", "--post-hoc"]) == 0
    page = capsys.readouterr().out
    assert "tuned after the fact: ranked and reported on the same 200 steps" in page
    assert "all steps, mean" in page
    assert "--set agents.ridge=" in page
    assert "tune_until" not in page


def test_a_cluster_that_does_not_answer_is_told(here, capsys, monkeypatch):
    from nashcast.runs import sweep_cluster

    monkeypatch.setattr(sweep_cluster, "_CONNECT", 0.2)
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        assert main(["sweep", "g.toml", "--cluster", address]) == 1
        assert f"--cluster: got '{address}', which does not answer" in capsys.readouterr().err


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_run(path, tmp_path, capsys):
    swept = "[sweep]" in path.read_text()
    assert main(["sweep" if swept else "run", str(path), "--output", str(tmp_path / "out"), "--steps", "60"]) == 0
    assert "persistence" in capsys.readouterr().out
    assert f"nashcast {'sweep' if swept else 'run'} examples/{path.name}" in path.read_text()


def test_the_federations_of_the_examples_are_better_than_persistence_and_their_best_agent(capsys):
    for name in ("federation", "anchored"):
        assert main(["run", str(ROOT / "examples" / f"{name}.toml"), "--no-record", "--json"]) == 0
        summary = json.loads(capsys.readouterr().out)["summary"]
        agents = [error for agent, error in summary["agents_mse"].items() if agent != "joint game"]
        assert summary["mse"] < min([summary["persistence_mse"], *agents]), name


def test_there_are_examples_of_both():
    assert len(EXAMPLES) == 3
    assert sum("[sweep]" in path.read_text() for path in EXAMPLES) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("agents.ridge=3", 3), ("game=false", False), ("stream.name=ecb", "ecb"), ('name="a b"', "a b"),
        ("a=[1, 2]", [1, 2]), ("a=2026-01-01x", "2026-01-01x"), ("a={b = 1.5}", {"b": 1.5}), ("a=", ""),
    ],
)  # fmt: skip
def test_values_on_the_command_line_are_toml_or_text(text, expected):
    key, value = change(text)
    assert key == text.partition("=")[0]
    assert value == expected
    assert type(value) is type(expected)
    assert change(f"{key}={toml(value)}") == (key, value)


def test_names_become_folders():
    assert slug("Five agents, on Ä/rates!") == "five-agents-on-rates"
    assert slug("…") == "run"
