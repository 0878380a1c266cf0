"""The figures the default federation was built for: one setting, warm-up counted. Seeds are of its random features."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.streams import open_stream

from recorded import recorded_data


def errors(name, seed):
    recorded_data(name)
    stream = open_stream(name)
    x_dim, y_dim = stream.inputs.shape[1], stream.targets.shape[1]
    federation = nc.default_federation(x_dim, y_dim, start=stream.start, seed=seed)
    forecasts = federation.replay(stream.inputs, stream.targets).forecasts
    error = ((forecasts - stream.targets) ** 2).mean(axis=1)
    return error.mean(), error[20:].mean(), stream.persistence_mse


@pytest.mark.parametrize(
    ("name", "whole", "after_20"),
    [
        ("periodic", 2.6e-2, 1e-6),
        ("logistic", 8e-3, 7e-4),
        ("concept-y2", 1.2e-3, None),
        ("concept", 2.049e-3, None),  # linear extrapolation's
    ],
)
def test_on_the_papers_made_series(name, whole, after_20):
    found = np.mean([errors(name, seed) for seed in (2024, 2025, 2026)], axis=0)
    assert found[0] <= whole
    assert after_20 is None or found[1] <= after_20


@pytest.mark.parametrize(
    ("name", "most", "against_persistence"),
    [
        ("boc", 4.495e-5, 1.002),
        ("boc-validation", 2.375e-5, 1.002),
        ("ett", 6.5e-4, 0.95),
        ("ett-validation", 2.6e-3, 0.99),
    ],
)
def test_on_the_papers_recorded_series(name, most, against_persistence):
    whole, _, persistence = errors(name, 2024)
    assert whole <= most
    assert whole <= against_persistence * persistence


def test_a_random_walk_is_left_alone():
    rng = np.random.default_rng(11)
    ratios = []
    for _ in range(4):
        y = np.cumsum(rng.standard_normal((801, 1)), axis=0)
        found = nc.default_federation(1, start=y[0]).replay(y[:-1], y[1:])
        ratios.append(found.mse / np.mean(np.diff(y, axis=0) ** 2))
    assert np.mean(ratios) < 1.01
