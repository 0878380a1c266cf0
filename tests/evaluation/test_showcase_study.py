"""The demo's page: its running errors end at the errors of the table, and its files are written."""

import json

import numpy as np
import pytest

from nashcast.cli.main import main
from nashcast.datasets import four_owners
from nashcast.evaluation.showcase import PERSISTENCE, TOGETHER, ahead, show
from nashcast.evaluation.showcase_study import best_owner, study_of_showcase, summary
from nashcast.records.study import check_study

NAMES = [f"owner {k}" for k in range(1, 5)]


@pytest.fixture(scope="module")
def shown():
    stream = four_owners(120, seed=3)
    return stream, show(stream, NAMES), ahead(stream, NAMES, 3)


def test_running_errors_end_at_the_errors_of_the_table(shown):
    stream, result, following = shown
    study = study_of_showcase([result], following, "nashcast demo", 3)
    check_study(study)
    base = result.errors[PERSISTENCE]
    last = np.concatenate([stream.start[None], stream.targets[:-1]])
    assert base == pytest.approx(np.mean((last - stream.targets) ** 2))
    for name, error in result.errors.items():
        assert study.arrays[f"{result.stream}: {name}"][-1] == pytest.approx(error / base)
    rows = {row["method"]: row["ratio"] for row in study.tables[0].rows}
    assert rows[TOGETHER] == pytest.approx(result.errors[TOGETHER] / base)
    assert len(study.arrays["ahead: forecast"]) == 3


def test_the_sentence_names_the_best_owner(shown):
    _, result, _ = shown
    best = best_owner(result)
    assert all(result.errors[best] <= result.errors[f"{name} alone"] for name in NAMES)
    ratio = result.errors[TOGETHER] / result.errors[PERSISTENCE]
    assert f"together {ratio:.3f} of persistence's error, {best}" in summary(result)


@pytest.mark.slow
def test_the_demo_writes_its_page_and_figures(tmp_path, capsys):
    assert main(["demo", "--json", "--steps", "100", "--horizon", "3", "--output", str(tmp_path / "demo")]) == 0
    written = json.loads(capsys.readouterr().out)["files"]
    assert [path.removeprefix(f"{tmp_path}/demo/") for path in written] == [
        "report.html", "figures/together.png", "figures/ahead.png",
    ]  # fmt: skip
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "federation, together" in page
    assert "<script src=" not in page
