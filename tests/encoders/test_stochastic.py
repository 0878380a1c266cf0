"""Random black boxes: sampled moments against known ones, and in the paper's game."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.checks import check_encoder
from nashcast.encoders import Stochastic
from nashcast.encoders.base import Noise

MIX = np.array([[1.0, 0.0], [0.5, 2.0], [0.0, 1.0], [1.0, 1.0]])


def correlated(x, rng):
    """Four numbers round x with covariance MIX MIXᵀ."""
    return x[0] + MIX @ rng.standard_normal(2)


def test_sampled_moments_are_those_of_the_distribution():
    built = Stochastic(correlated, features=2, samples=4000).build(1, 2)
    inputs = np.array([[0.0], [3.0]])
    mean, covariance = built.moments(inputs, np.zeros((2, 2, 2)), Noise(5, -1))
    np.testing.assert_allclose(mean, np.broadcast_to(inputs[:, :, None], (2, 2, 2)), atol=0.15)
    known = (MIX @ MIX.T).reshape(2, 2, 2, 2).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(covariance, np.stack([known, known]), atol=0.35)


@pytest.mark.slow
@pytest.mark.parametrize("samples", [8, 64])
def test_it_keeps_every_contract(samples):
    check_encoder(Stochastic(correlated, features=2, samples=samples), x_dim=1, y_dim=2)


def test_it_plays_the_papers_game_and_runs_repeat():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 1)), rng.standard_normal((60, 1)).cumsum(axis=0)

    def replay():
        agents = [
            PaperAgent(Stochastic(lambda x, rng: x[0] + 0.3 * rng.standard_normal(2), 2, samples=16)) for _ in "ab"
        ]
        return nc.paper_federation(agents, game=nc.LookbackGame(lookback=3, every=2)).replay(X, Y).forecasts

    one = replay()
    assert np.isfinite(one).all()
    np.testing.assert_array_equal(one, replay())


def test_randomness_of_its_own_is_remembered_for_the_step():
    rng = np.random.default_rng(7)
    federation = nc.Federation([nc.Agent(Stochastic(lambda x: rng.standard_normal(2), features=2))])
    for t in range(12):
        first = federation.predict_one([1.0])
        assert federation.predict_one([2.0]) is not None
        assert federation.predict_one([1.0]) == first
        federation.learn_one([1.0], float(t))
    assert not federation.health["absences"]


def test_messages():
    number = 3
    with pytest.raises(nc.InvalidInput, match=r"function: got int 3"):
        Stochastic(number, features=1)
    with pytest.raises(nc.InvalidInput, match=r"samples: got int 1. Pass a whole number ≥ 2"):
        Stochastic(correlated, features=1, samples=1)
    with pytest.raises(nc.InvalidInput, match=r"function: got 4 numbers. Return y_dim·features = 3 numbers"):
        Stochastic(correlated, features=3).build(1, 1).moments(np.zeros((1, 1)), np.zeros((1, 1, 3)), Noise(1, 0))
