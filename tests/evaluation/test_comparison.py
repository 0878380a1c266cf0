"""What an evaluation comes to, from rows made by hand."""

import numpy as np
import pytest

from nashcast.evaluation.statistics.comparison import comparison, comparison_notes, comparison_table
from nashcast.reports.markdown import markdown_table


def rows_of(errors):
    """errors: by stream and method."""
    family = {"federation": "ours", "persistence": "baselines", "part": "ours"}
    return [
        {"stream": stream, "method": method, "family": family.get(method, "river"), "mse_after_warmup": error}
        | {"dm_p": None, "us_per_step": 10.0}
        for stream, here in errors.items()
        for method, error in here.items()
    ]


ERRORS = {
    "a": {"federation": 1.0, "persistence": 2.0, "K": 0.8, "L": 4.0, "part": 0.1},
    "b": {"federation": 1.0, "persistence": 1.0, "K": 1.25, "L": None, "part": 0.1},
    "c": {"federation": 3.0, "persistence": 2.0, "K": 3.0, "L": np.inf, "part": 0.1},
}
STEPS = {"a": 800, "b": 600, "c": 200}


def test_lines_and_worst_cases():
    found = comparison(rows_of(ERRORS), STEPS)
    lines = {line["method"]: line for line in found["peers"]}
    assert list(lines) == ["K", "persistence", "L"]  # parts of the federation are no peers; the hardest first
    assert lines["K"]["ratio"] == pytest.approx(1.0)
    assert lines["persistence"]["ratio"] == pytest.approx((0.5 * 1.0 * 1.5) ** (1 / 3))
    assert (lines["L"]["streams"], lines["L"]["ratio"]) == (1, 0.25)
    assert lines["K"]["low"] <= 1.0 <= lines["K"]["high"]
    assert [lines[name]["rank"] for name in ("K", "persistence", "L")] == pytest.approx([2.167, 1.833, 4.0], abs=1e-3)
    assert found["rank"] == pytest.approx((2 + 1.5 + 2.5) / 3)
    assert (found["streams"], found["near"], found["within_10_percent"]) == (3, 1, 1)
    assert found["worst_to_best_peer"] == {"stream": "c", "peer": "persistence", "ratio": 1.5}
    assert found["worst_to_persistence"] == {"stream": "c", "ratio": 1.5}
    assert found["worst_to_persistence_long"] == {"stream": "b", "ratio": 1.0}


def test_units_and_order_change_nothing():
    rng = np.random.default_rng(0)
    errors = {f"s{i}": dict(zip(("federation", "persistence", "K", "L"), rng.random(4), strict=True)) for i in range(9)}
    steps = dict.fromkeys(errors, 1000)
    found = comparison(rows_of(errors), steps)
    scaled = {name: {key: 7.0 * value for key, value in here.items()} for name, here in errors.items()}
    again = comparison(rows_of(scaled)[::-1], steps)
    for line, other in zip(found["peers"], again["peers"], strict=True):
        for key in ("ratio", "p", "p_holm", "rank"):
            assert line[key] == pytest.approx(other[key])
        assert line["p"] <= line["p_holm"] <= min(1.0, 3 * line["p"]) + 1e-12


def test_an_exact_stream_does_not_decide():
    errors = {
        "a": {"federation": 1e-12, "persistence": 1.0, "K": 1e-3},
        "b": {"federation": 2.0, "persistence": 4.0, "K": 1.0},
    }
    found = comparison(rows_of(errors), {"a": 900, "b": 900})
    assert found["peers"][0]["ratio"] == pytest.approx(2**0.5)  # both count as a thousandth of persistence's on a


def test_words():
    found = comparison(rows_of(ERRORS), STEPS)
    notes = " ".join(comparison_notes(found))
    assert "Of 3 peers 0 have a smaller geometric mean" in notes
    assert "Worst ratio to the best peer of a stream 1.500 (c, persistence); at most 1.10 on 1 of 3 streams" in notes
    assert "over streams of at least 500 steps 1.000 (b)" in notes
    assert "First or within 1 % of the best peer of each stream: 1 of 3 streams." in notes
    assert "| K | river | 3 | 1.00 |" in markdown_table(comparison_table(found))
    alone = comparison(rows_of({"a": {"federation": 1.0, "persistence": 2.0}}), {"a": 100})
    assert "rank" not in alone
    assert len(comparison_notes(alone)) == 4
    assert comparison_notes(comparison([], {})) == []
