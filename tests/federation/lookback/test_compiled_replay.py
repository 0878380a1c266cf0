"""The compiled replay against the online federation, step by step."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.federation.compiled.replay import replay, replay_many
from support.federations import random_agents, random_settings, random_stream


def made(seed, start=True):
    rng = np.random.default_rng(seed)
    y_dim = int(rng.integers(1, 4))
    settings = random_settings(rng, y_dim)
    if start:
        settings["start"] = np.zeros(y_dim)
    agents = random_agents(rng, y_dim)
    if rng.random() < 0.3:
        agents.append(PaperAgent(nc.encoders.Forecaster(lambda x: np.full(y_dim, x.sum())), name="boss"))
    return nc.paper_federation(agents, **settings), random_stream(rng, y_dim)


@pytest.mark.parametrize("seed", range(60))
def test_online_and_compiled_agree_on_every_step(seed):
    online, (X, Y) = made(seed, start=seed % 4 > 0)
    expected = online.replay(X, Y)
    compiled = replay(made(seed, start=seed % 4 > 0)[0], X, Y)
    np.testing.assert_allclose(compiled.forecasts, expected.forecasts, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(compiled.weights, expected.weights, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(compiled.agents, expected.agents, rtol=1e-12, atol=1e-12)
    assert compiled.mse == pytest.approx(expected.mse, rel=1e-12)


def test_many_runs_at_once_equal_single_ones_in_order():
    seen = []
    runs = [((lambda s=s: made(s)[0]), *made(s)[1]) for s in range(12)]
    many = replay_many(runs, jobs=2, progress=seen.append)
    assert seen == list(range(1, 13))
    for (make, X, Y), result in zip(runs, many, strict=True):
        np.testing.assert_array_equal(result.forecasts, replay(make(), X, Y).forecasts)


def test_replaying_needs_a_federation_that_has_learnt_nothing():
    federation, (X, Y) = made(1)
    federation.replay(X, Y)
    with pytest.raises(nc.NashcastError, match="has already learnt"):
        replay(federation, X, Y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"inputs": np.ones(3)}, "inputs: got shape"),
        ({"inputs": np.full((25, 2), np.nan)}, "inputs: got nan"),
        ({"targets": np.ones((3, 1))}, "targets: got shape"),
    ],
)
def test_bad_series_are_refused(change, words):
    federation = nc.paper_federation([PaperAgent(nc.encoders.Linear())])
    series = {"inputs": np.ones((25, 2)), "targets": np.ones((25, 1)), **change}
    with pytest.raises(nc.InvalidInput) as caught:
        replay(federation, **series)
    assert str(caught.value).startswith(words)


def test_an_encoder_that_fails_is_a_clear_error():
    def broken(x):
        return np.full(1, np.nan)

    federation = nc.paper_federation([PaperAgent(nc.encoders.Callable(broken, features=1))])
    with pytest.raises(nc.InvalidInput, match="features: got nan"):
        replay(federation, np.ones((5, 1)), np.ones((5, 1)))
