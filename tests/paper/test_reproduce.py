"""`nashcast reproduce`: rows, records, reports, and what it says to bad input."""

import json

import pytest

from nashcast.cli.main import main
from nashcast.paper.studies.table import ROW_KEYS
from nashcast.records import study as records
from support.recorded import recorded_data


def reproduced(capsys, *arguments):
    assert main(["reproduce", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["rows"]


@pytest.mark.slow
def test_table1_of_random_features(capsys, tmp_path):
    recorded_data("boc")
    words = ["table1", "--as-published", "--models", "rfn", "--seeds", "2024", "--no-report", "--output", str(tmp_path)]
    rows = reproduced(capsys, *words)
    assert len(rows) == 20
    for row in rows:
        assert set(ROW_KEYS) <= set(row)
        assert all(row[key] > 0 for key in ROW_KEYS[4:])
    none = [row for row in rows if not row["game"] and row["dataset"] != "concept"]
    assert all(row["ours"] == pytest.approx(row["as_published"], rel=1e-6) for row in none)
    study = records.read(tmp_path / "table1")
    assert study.command == "nashcast reproduce table1 --as-published --models rfn --seeds 2024"
    wide = study.tables[0].rows
    assert len(wide) == 10
    for line in wide:
        simplest = min(line["anchored"], line["best_baseline"])
        assert ("✓" in line["mark"]) == (line["ours_game"] < line["ours_none"])
        assert ("▲" in line["mark"]) == (simplest < min(line["ours_game"], line["ours_none"]))
    assert [figure.name for figure in study.figures] == ["rfn-forecasts", "rfn-error-ratios"]


def test_a_study_with_its_report(capsys, tmp_path):
    assert main(["reproduce", "relu-growth", "--output", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "hard sigmoid" in shown
    folder = tmp_path / "relu-growth"
    assert str(folder / "report.html") in shown
    assert (folder / "figures" / "relu-growth.png").stat().st_size > 10_000
    rows = records.read(folder).tables[0].rows
    for row in rows:
        assert row["largest"] > 100 if row["activation"] == "relu" else row["largest"] <= 1.0


def test_echo_states_fall_silent_on_raw_data(capsys, tmp_path):
    rows = reproduced(capsys, "normalisation", "--no-report", "--output", str(tmp_path))
    silent = {(row["data"], row["activation"]): row["silent"] for row in rows}
    assert silent["raw", "hard sigmoid"] > 0.2
    assert silent["divided by maxima", "hard sigmoid"] < 0.01
    assert silent["raw", "tanh"] == 0.0


def test_weights_are_steadier_with_the_game_for_echo_states(capsys, tmp_path):
    rows = reproduced(capsys, "weights", "--models", "esn", "--no-report", "--output", str(tmp_path))
    moves = {(row["dataset"], row["game"]): row["moves"] for row in rows}
    assert moves["concept", "yes"] < moves["concept", "no"]
    assert moves["periodic", "yes"] < moves["periodic", "no"]


def test_runtime_rows(capsys, tmp_path):
    recorded_data("boc")
    rows = reproduced(capsys, "runtime", "--models", "rfn", "--no-report", "--output", str(tmp_path))
    assert [(row["dataset"], row["game"]) for row in rows] == [
        ("periodic", "yes"), ("periodic", "no"), ("boc", "yes"), ("boc", "no")
    ]  # fmt: skip
    assert all(row["ratio"] == pytest.approx(row["printed"] / row["ours"]) for row in rows)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "WHAT"),
        (["table2"], "invalid choice: 'table2'"),
        (["table1", "--models", "lstm"], "got 'lstm'; pass some of transformer,rfn,esn"),
        (["table1", "--seeds", "one"], "got 'one'; pass whole numbers"),
        (["table1", "--seeds", "-1"], "got '-1'; pass whole numbers"),
        (["table1", "--jobs", "0"], "got '0'; pass a whole number ≥ 1"),
    ],
)
def test_misuse(capsys, arguments, words):
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", *arguments])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "relu-growth", "--output", str(tmp_path / "file" / "below")]) == 1
    assert "cannot write a record" in capsys.readouterr().err


def test_missing_data_say_how_to_get_them(capsys, tmp_path, monkeypatch):
    from nashcast.paper import runs

    runs._opened.cache_clear()
    monkeypatch.setenv("NASHCAST_DATA", str(tmp_path))
    assert main(["reproduce", "lookback", "--output", str(tmp_path / "out")]) == 1
    assert "nashcast data fetch" in capsys.readouterr().err
