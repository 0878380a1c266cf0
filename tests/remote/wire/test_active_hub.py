"""What a hub with chosen messages learns of one agent of the look-back game, level by level: see the threat model."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.agents.protocol import Invitation, Sync
from nashcast.remote.owner.owner import Owner
from nashcast.remote.wire import messages as m
from nashcast.remote.wire.format import pack, unpack

ONE, RIDGE = np.ones(1), 1.7
X = np.random.default_rng(0).standard_normal((4, 2))


def asked(owner, step, *calls):
    return unpack(owner.answer(pack(m.Turn(step, calls))), (m.Reply,))


def begun(encoder, share, steps=2):
    """An owner in the middle of a stream, its agent, and the present step."""
    agent = PaperAgent(encoder, name="desk", share=share, ridge=RIDGE, window=3)
    owner = Owner(agent)
    assert asked(owner, 0, m.Begin(2, ONE, 5, 1, 77)).reason == ""
    for t in range(steps):
        assert asked(owner, t, m.Forecast(X[t], False)).reason == ""
        asked(owner, t + 1, m.Close(t, None, np.array([1.5 + t])))
    assert asked(owner, steps, m.Forecast(X[steps], False)).reason == ""
    return owner, agent, steps


def answered(owner, step, call):
    reply = asked(owner, step, call)
    return reply.results[0] if reply.results else reply.reason


def coupling(owner, step, weight, noisy=False):
    """The agent's term of F in a game of look-back 1, plain."""
    join = m.JoinGame(Invitation(np.array([[2.0]]), np.array([weight]), ONE, noisy))
    (terms,) = asked(owner, step, join, m.Backward(0)).results
    return float(terms.coupling[0, 0])


@pytest.mark.parametrize("share", ["forecasts", "sums"])
def test_a_forecaster_that_is_anchored_twice_gives_its_output_and_its_decoder(share):
    owner, agent, step = begun(nc.encoders.Forecaster(lambda x: np.tanh(x[:1])), share)
    places = np.array([0.0, 1.0])
    found = [answered(owner, step, m.Adopt(Sync(np.array([place]), None))).forecast[0] for place in places]
    slope = found[1] - found[0]  # place + (output - place) · decoder
    assert agent._decoder[0] != 0.0
    assert 1 - slope == pytest.approx(agent._decoder[0], rel=1e-12)
    assert found[0] / (1 - slope) == pytest.approx(np.tanh(X[step, 0]), rel=1e-12)


@pytest.mark.parametrize("share", ["forecasts", "sums"])
def test_below_moments_a_decoder_from_outside_and_a_view_are_refused(share):
    owner, _, step = begun(nc.encoders.RandomFeatures(features=3, seed=1), share)
    assert "expected nothing where features are private" in answered(owner, step, m.Adopt(Sync(ONE, np.ones(3))))
    assert "view" in answered(owner, step, m.View())


def test_forecasts_only_plays_no_game():
    owner, _, step = begun(nc.encoders.Linear(), "forecasts")
    join = m.JoinGame(Invitation(np.array([[2.0]]), ONE, ONE, False))
    assert "join_game" in asked(owner, step, join, m.Backward(0)).reason


def test_plain_terms_of_features_that_are_certain_give_their_size_over_the_ridge():
    owner, agent, step = begun(nc.encoders.Linear(), "sums")
    Z = agent._features[-1, 0]
    assert coupling(owner, step, 0.5) == pytest.approx(0.25 * (Z @ Z) / RIDGE, rel=1e-12)


def test_two_plain_games_in_a_step_give_mean_and_variance_over_the_ridge():
    owner, agent, step = begun(nc.encoders.RandomFeatures(features=1, seed=1, noise=0.3), "sums")
    # w² m² / (γ + w² v) for two weights w: two equations about m²/γ and v/γ.
    weights = np.array([0.5, 2.0])
    found = np.array([coupling(owner, step, weight, True) for weight in weights])
    size, varies = np.linalg.solve(np.column_stack([weights**2, -found * weights**2]), found)
    mean, covariance = agent._window_moments
    assert size == pytest.approx(mean.item() ** 2 / RIDGE, rel=1e-9)
    assert varies == pytest.approx(covariance.item() / RIDGE, rel=1e-9)


def test_with_moments_as_many_adoptions_as_features_give_the_features():
    owner, agent, step = begun(nc.encoders.RandomFeatures(features=3, seed=1), "moments")
    found = [answered(owner, step, m.Adopt(Sync(np.zeros(1), own))).forecast[0] for own in np.eye(3)]
    np.testing.assert_allclose(found, agent.raw_features()[0], rtol=1e-12)
