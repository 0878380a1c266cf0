"""Runs and sweeps become studies whose numbers are those of their arrays."""

import numpy as np
import pytest

from nashcast import InvalidInput
from nashcast.records.folder import Record, write_record
from nashcast.records.study import write
from nashcast.reports.figures import figure_on_paper
from nashcast.reports.record_study import study_of
from nashcast.reports.run_study import study_of_run
from nashcast.reports.terminal import text_table
from support.studies import example, run


def study_from(**options):
    about, arrays = run(**options)
    return study_of_run(Record(about, arrays)), arrays


def test_the_table_of_a_run_is_computed_from_its_arrays():
    study, arrays = study_from(steps=200, agents=3, y_dim=2)
    (table,) = study.tables
    targets = arrays["targets"]
    last = np.vstack([arrays["start"], targets[:-1]])
    base = np.mean((targets - last) ** 2)
    wanted = {"federation": np.mean((arrays["forecasts"] - targets) ** 2), "persistence": base}
    wanted |= {f"agent-{i}, alone": np.mean((arrays["agents"][:, i] - targets) ** 2) for i in range(3)}
    assert {row["forecast"]: row["mse"] for row in table.rows} == pytest.approx(wanted)
    for row in table.rows:
        assert row["ratio"] == pytest.approx(row["mse"] / base)
        assert row["skill"] == pytest.approx(1 - row["mse"] / base)
    assert table.rows[3]["mean_weight"] == pytest.approx(arrays["weights"][:, 1].mean())
    assert table.rows[3]["last_weight"] == pytest.approx(arrays["weights"][-1, 1])
    assert (study.seeds, study.command, study.seconds) == ([7], "nashcast run a.toml", 0.5)


def test_what_the_run_measured_beside_itself_stands_in_the_table():
    about, arrays = run()
    about["summary"]["baselines"] = {"no game": float("inf"), "anchored, no game": 0.25, "odd": None}
    rows = study_of_run(Record(about, arrays)).tables[0].rows
    assert [row["forecast"] for row in rows[:4]] == [
        "federation", "federation, no game", "federation, anchored, no game", "persistence",
    ]  # fmt: skip
    assert rows[2]["mse"] == 0.25
    assert rows[2]["skill"] == pytest.approx(1 - 0.25 / rows[3]["mse"])


def test_the_figures_of_a_run_show_its_arrays():
    study, arrays = study_from(steps=400, agents=2)
    assert [figure.name for figure in study.figures] == ["forecasts", "errors", "weights"]
    whole, close = study.figures[0].panels
    assert {line.label for line in close.lines} == {"federation", "persistence", "target"}
    line = next(line for line in close.lines if line.label == "persistence")
    np.testing.assert_array_equal(study.arrays[line.x], np.arange(250, 400))
    np.testing.assert_array_equal(study.arrays[line.y], arrays["targets"][249:399, 0])
    assert len(study.arrays[whole.lines[0].y]) == 400

    ratio, total = study.figures[1].panels
    assert (ratio.log_y, ratio.reference) == (True, 1.0)
    error = (arrays["forecasts"] - arrays["targets"])[:, 0] ** 2
    base = np.diff(np.concatenate([arrays["start"], arrays["targets"][:, 0]])) ** 2
    shown = study.arrays[ratio.lines[0].y]
    at = int(study.arrays[ratio.lines[0].x][123])
    assert shown[123] == pytest.approx(error[at - 9 : at + 1].mean() / base[at - 9 : at + 1].mean())
    sums = {line.label: study.arrays[line.y][-1] for line in total.lines}
    assert sums["federation"] == pytest.approx(error.sum())
    assert sums["persistence"] == pytest.approx(base.sum())
    weights = study.figures[2].panels[0].lines
    np.testing.assert_array_equal(study.arrays[weights[1].y], arrays["weights"][:, 1])


def test_a_run_that_diverges_says_so_everywhere():
    study, _ = study_from(wild=True)
    assert "diverges" in text_table(study.tables[0]).splitlines()[3]
    assert study.notes[0].startswith(
        "Over 60 steps the federation diverges; the mean squared error of persistence is 1."
    )
    for figure in study.figures[:2]:
        paper = figure_on_paper(figure, study.arrays)
        assert "federation (diverges)" in [text.get_text() for text in paper.legends[0].get_texts()]


def test_of_many_agents_and_targets_the_figures_show_some_and_say_so():
    about, arrays = run(agents=30, y_dim=9)
    arrays["weights"][:, 17] = -5.0
    study = study_of_run(Record(about, arrays))
    assert len(study.tables[0].rows) == 32
    shown = [line.label for line in study.figures[2].panels[0].lines]
    assert len(shown) == 8
    assert "agent-17" in shown
    assert "The figures show the 8 of 30 agents with the largest weights." in study.notes
    assert len(study.figures[0].panels) == 6
    assert "The first 6 of 9 targets." in study.figures[0].caption


def test_agents_may_be_called_anything():
    about, arrays = run(agents=4)
    about["agents"] = ["federation", "persistence", "target", "twin"]
    names = [row["forecast"] for row in study_of_run(Record(about, arrays)).tables[0].rows]
    assert names[2:] == ["federation, alone", "persistence, alone", "target, alone", "twin, alone"]
    about["agents"] = ["twin"] * 4
    names = [row["forecast"] for row in study_of_run(Record(about, arrays)).tables[0].rows]
    assert names[2:] == [f"twin {i}, alone" for i in (1, 2, 3, 4)]
    del about["agents"]
    names = [row["forecast"] for row in study_of_run(Record(about, arrays)).tables[0].rows]
    assert names[2] == "agent 1, alone"


def test_a_constant_target_leaves_no_ratio():
    about, arrays = run()
    arrays["targets"][:] = 0.0
    study = study_of_run(Record(about, arrays))
    assert study.tables[0].rows[0]["ratio"] is None
    assert "times that of persistence" not in study.notes[0]
    figure_on_paper(study.figures[1], study.arrays)


@pytest.mark.parametrize("name", ["start", "targets", "forecasts", "weights", "agents"])
def test_a_run_with_an_array_missing_or_misshapen_is_damaged(name):
    about, arrays = run()
    without = {key: value for key, value in arrays.items() if key != name}
    with pytest.raises(InvalidInput, match=f"record: got a run without {name}. It is damaged"):
        study_of_run(Record(about, without))
    with pytest.raises(InvalidInput, match=r"record: got a run with .* of shape .* It is damaged"):
        study_of_run(Record(about, {**arrays, name: arrays[name][:-1]}))


def test_a_sweep_shows_its_ranked_table_if_it_has_one(tmp_path):
    table = {"title": "Ranked", "columns": [{"key": "mse", "label": "MSE", "kind": "error"}], "rows": [{"mse": 0.1}]}
    about = {"name": "grid", "command": "nashcast sweep a.toml", "seed": 3, "settings": {"runs": 2}, "table": table}
    study = study_of(write_record(tmp_path / "a", "sweep", about, {}))
    assert (study.tables[0].title, study.seeds, study.notes) == ("Ranked", [3], [])
    del about["table"]
    study = study_of(write_record(tmp_path / "b", "sweep", about, {}))
    assert study.tables == []
    assert "no ranked table" in study.notes[0]


def test_a_study_is_itself_and_other_kinds_are_refused(tmp_path):
    assert study_of(write(tmp_path / "a", example())).figures == example().figures
    write_record(tmp_path / "b", "memo", {}, {})
    with pytest.raises(InvalidInput, match=r"of kind 'memo'\. Reports know the kinds run, sweep, study"):
        study_of(tmp_path / "b")
