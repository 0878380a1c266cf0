"""benchmarks/federation.py: its losses are those of the methods it names, and its ratios those of the losses."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from nashcast.evaluation.declared import Declared
from nashcast.evaluation.method import problem_of
from nashcast.evaluation.methods import all_methods
from nashcast.evaluation.prequential import forecast_all

STREAM = Declared("logistic", options=(("steps", 60),))


@pytest.fixture(scope="module")
def script():
    path = Path(__file__).parents[2] / "benchmarks" / "federation.py"
    spec = importlib.util.spec_from_file_location("benchmarks_federation", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_losses_are_those_of_the_methods(script):
    stream, found = STREAM.open(), script.work((STREAM, 3))["losses"]
    for key, name in {
        "federation": "federation",
        "no_game": "federation without its game",
        "ml_poly": "ML-Poly over the federation's experts",
    }.items():
        method = all_methods()[name]
        forecasts, _ = forecast_all(method.choices[""](problem_of(stream), 3), stream)
        np.testing.assert_allclose(found[key], ((forecasts - stream.targets) ** 2)[:, 0], rtol=1e-12)
    assert np.mean(found["persistence"]) == pytest.approx(stream.persistence_mse)


def test_a_row_is_the_mean_over_seeds_after_the_warm_up(script):
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(2):
        names = ("federation", "no_game", "ml_poly", "persistence")
        losses = {name: scale * rng.random(60) for name, scale in zip(names, (1.0, 2.0, 0.0, 4.0), strict=True)}
        parts.append({"losses": losses})
    row = script.row_of(STREAM, parts, {STREAM.label: 0.25})
    mean = {name: np.mean([part["losses"][name][12:] for part in parts]) for name in parts[0]["losses"]}
    assert row["mse"] == pytest.approx(mean["federation"])
    assert row["to_no_game"] == pytest.approx(mean["federation"] / mean["no_game"])
    assert row["to_persistence"] == row["mean_persistence"] == pytest.approx(mean["federation"] / mean["persistence"])
    assert row["to_before"] == pytest.approx(mean["federation"] / 0.25)
    assert row["to_ml_poly"] is None  # no error at all: no ratio, but a mean that counts a thousandth of persistence's
    assert row["mean_ml_poly"] == pytest.approx(1000.0 * mean["federation"] / mean["persistence"])
    assert 0.0 <= row["p"] < 0.05
    notes = script.notes([row])
    assert "Beside itself without the game" in notes[3]
    assert notes[-1] == "The game lowers the error with p < 0.05 on 1 streams and raises it on 0."


def test_errors_of_0_1_are_found_for_all_streams(script):
    assert len(script.errors_before()) == 35
