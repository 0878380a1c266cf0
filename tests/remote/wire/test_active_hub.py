"""What a hub with chosen messages learns of one agent of the look-back game, level by level: see the threat model.

Attacks that are closed, and what remains for a hub that asks no more than an honest one could.
"""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.agents.protocol import BackwardSums, Invitation, Sync
from nashcast.remote.owner.owner import Owner
from nashcast.remote.wire import messages as m
from nashcast.remote.wire.format import pack, unpack

ONE, RIDGE, START = np.ones(1), 1.7, np.array([0.7])
X = np.random.default_rng(0).standard_normal((4, 2))


def label(step):
    """Of the stream before this step."""
    return START if step == 0 else np.array([0.5 + step])


def asked(owner, step, *calls):
    return unpack(owner.answer(pack(m.Turn(step, calls))), (m.Reply,))


def close(step, sync=None):
    return m.Close(step, sync, label(step + 1))


def begun(encoder, share, steps=2, lookback=1, forecast=True):
    """An owner in the middle of a stream, its agent, and the present step; the last forecast is answered if asked."""
    agent = PaperAgent(encoder, name="desk", share=share, ridge=RIDGE, window=3)
    owner = Owner(agent)
    assert asked(owner, 0, m.Begin(2, START, 5, lookback, 77)).reason == ""
    for t in range(steps):
        assert asked(owner, t, m.Forecast(X[t], False)).reason == ""
        assert asked(owner, t + 1, close(t)).reason == ""
    if forecast:
        assert asked(owner, steps, m.Forecast(X[steps], False)).reason == ""
    return owner, agent, steps


def answered(owner, step, *calls):
    reply = asked(owner, step, *calls)
    return reply.results[0] if reply.results else reply.reason


def refused(owner, step, *calls):
    """Why, in words."""
    found = answered(owner, step, *calls)
    return found if isinstance(found, str) else found.reason


def invitation(step, weights, noisy=False, **changes):
    targets = np.array([label(s) for s in range(step - len(weights) + 1, step + 1)])
    made = Invitation(targets, np.array(weights, dtype=float), label(step - len(weights)), noisy)
    return m.JoinGame(made._replace(**changes))


def coupling(owner, step, weight, noisy=False):
    """The agent's term of F in a game of look-back 1, plain."""
    (terms,) = asked(owner, step, invitation(step, [weight], noisy), m.Backward(0)).results
    return float(terms.coupling[0, 0])


def forecaster():
    return nc.encoders.Forecaster(lambda x: np.tanh(x[:1]))


SHARES_BELOW_MOMENTS = pytest.mark.parametrize("share", ["forecasts", "sums"])


@SHARES_BELOW_MOMENTS
def test_a_forecaster_answers_from_one_place_in_a_step(share):
    """From two places its output and its decoder could be solved for: place + (output - place) · decoder."""
    owner, agent, step = begun(forecaster(), share)
    assert agent._decoder[0] != 0.0
    for place in (label(step), agent.place, np.zeros(1)):
        assert refused(owner, step, m.Adopt(Sync(place, None)))
    assert "a second place" in refused(owner, step, m.Adopt(Sync(label(step), None)))


@SHARES_BELOW_MOMENTS
def test_an_anchored_forecaster_answers_from_the_label_alone(share):
    owner, agent, step = begun(forecaster(), share, forecast=False)
    ask, anchor = m.Forecast(X[step], False), m.Adopt(Sync(label(step), None))
    first = asked(owner, step, ask, anchor)
    assert first.results[0].forecast == first.results[1].forecast  # none from its own place
    expected = label(step) + (np.tanh(X[step, :1]) - label(step)) * agent._decoder
    np.testing.assert_allclose(first.results[0].forecast, expected, rtol=1e-14)
    assert "a second place" in refused(owner, step, ask)
    assert "another place than the last label" in refused(owner, step, ask, m.Adopt(Sync(label(step) + 1, None)))
    assert asked(owner, step, ask, anchor).results == first.results  # the same question has the same answer


@SHARES_BELOW_MOMENTS
def test_a_label_that_was_not_told_gives_one_place_too(share):
    owner, _, step = begun(forecaster(), share, forecast=False)
    ask = m.Forecast(X[step], False)
    assert asked(owner, step + 1, m.Missed(step, step)).reason == ""
    assert asked(owner, step + 1, ask, m.Adopt(Sync(np.array([9.0]), None))).reason == ""
    late = m.LearnLate(0, step, label(step + 1))
    assert "a second place" in refused(owner, step + 1, late, ask, m.Adopt(Sync(label(step + 1), None)))


@SHARES_BELOW_MOMENTS
def test_below_moments_decoders_a_past_and_places_from_outside_are_refused(share):
    owner, agent, step = begun(nc.encoders.RandomFeatures(features=3, seed=1), share, lookback=2)
    assert "expected nothing where features are private" in refused(owner, step, m.Adopt(Sync(ONE, np.ones(3))))
    assert "view" in refused(owner, step, m.View())
    past = np.ones((2, 1))
    assert "adopt.past" in refused(owner, step, m.Adopt(Sync(agent.place, None, past)))
    assert "close.sync.past" in refused(owner, step + 1, close(step, Sync(agent.place, None, past)))
    assert "close.sync: got something else" in refused(owner, step + 1, close(step, Sync(agent.place + 1, None)))
    assert agent.step == step
    assert asked(owner, step + 1, close(step, Sync(agent.place.copy(), None))).reason == ""  # of an abandoned game


def test_forecasts_only_plays_no_game():
    owner, _, step = begun(nc.encoders.Linear(), "forecasts")
    assert "join_game" in asked(owner, step, invitation(step, [1.0]), m.Backward(0)).reason


def test_plain_terms_of_features_that_are_certain_give_their_size_over_the_ridge():
    """What an honest hub sees as well; masks hide it."""
    owner, agent, step = begun(nc.encoders.Linear(), "sums")
    Z = agent._features[-1, 0]
    assert coupling(owner, step, 0.5) == pytest.approx(0.25 * (Z @ Z) / RIDGE, rel=1e-12)


def test_a_step_has_one_game():
    """Two with different weights would give mean²/γ and variance/γ of random features; one is one equation."""
    owner, agent, step = begun(nc.encoders.RandomFeatures(features=1, seed=1, noise=0.3), "sums")
    found = coupling(owner, step, 0.5, True)
    second = asked(owner, step, invitation(step, [2.0], True), m.Backward(0))
    assert second.reason == ""  # its forecast stands
    assert "a second game in step 2" in second.results[0].reason
    assert coupling(owner, step, 0.5, True) == found
    mean, covariance = (part.item() for part in agent._window_moments)
    assert found == pytest.approx(0.25 * mean**2 / (RIDGE + 0.25 * covariance), rel=1e-12)


def test_over_two_steps_with_one_input_mean_and_variance_over_the_ridge_remain():
    """A hub that chooses inputs and weights gets two equations about the same moments: plain terms hide no more."""
    owner, agent, step = begun(nc.encoders.RandomFeatures(features=1, seed=1, noise=0.3), "sums")
    weights, found = np.array([0.5, 2.0]), []
    for weight in weights:
        asked(owner, step + 1, close(step), m.Forecast(X[2], False))
        step += 1
        found.append(coupling(owner, step, weight, True))
    size, varies = np.linalg.solve(np.column_stack([weights**2, -np.array(found) * weights**2]), found)
    mean, covariance = agent._window_moments
    assert size == pytest.approx(mean.item() ** 2 / RIDGE, rel=1e-9)
    assert varies == pytest.approx(covariance.item() / RIDGE, rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"targets": np.array([[1.5], [9.0]])}, "another label of step 1 than the one told before"),
        ({"start": np.array([9.0])}, "another label of step -1 than the one told before"),
    ],
)
def test_games_with_other_labels_than_those_told_are_refused(changes, words):
    owner, _, step = begun(nc.encoders.Linear(), "sums", lookback=2)
    reply = asked(owner, step, invitation(step, [0.5, 0.4], **changes), m.Backward(0))
    assert words in reply.results[0].reason
    assert asked(owner, step, invitation(step, [0.5, 0.4]), m.Backward(0)).results[0].coupling.shape == (1, 1)


def test_weights_of_steps_that_are_over_cannot_change():
    owner, _, step = begun(nc.encoders.Linear(), "sums", lookback=2)
    assert asked(owner, step, invitation(step, [0.5, 0.4]), m.Backward(0)).reason == ""
    assert asked(owner, step + 1, close(step), m.Forecast(X[3], False)).reason == ""
    reply = asked(owner, step + 1, invitation(step + 1, [0.9, 0.3]), m.Backward(0))
    assert "got 0.9 of step 1, and 0.4 before" in reply.results[0].reason
    assert asked(owner, step + 1, invitation(step + 1, [0.4, 0.3]), m.Backward(0)).results[0].coupling.shape == (1, 1)


def test_a_game_is_not_played_again_with_other_sums():
    """Each choice of sums would give further equations about the features of the steps before."""
    owner, _, step = begun(nc.encoders.Linear(), "sums", lookback=2)
    sums = BackwardSums(np.array([[0.5]]), np.array([0.1]), np.empty(0), np.empty(0))
    moves = invitation(step, [0.5, 0.4]), m.Backward(0)

    def second_terms(sums):
        assert asked(owner, step, *moves).reason == ""
        return asked(owner, step, m.Receive(0, sums), m.Backward(1)).results[0]

    first = second_terms(sums)
    assert "other sums than before in step 2" in second_terms(sums._replace(shift=np.array([0.2]))).reason
    again = second_terms(sums)
    np.testing.assert_array_equal(again.coupling, first.coupling)


def test_with_moments_a_step_has_one_decoder_from_outside():
    """As many as features would give the features as drawn."""
    owner, agent, step = begun(nc.encoders.RandomFeatures(features=3, seed=1), "moments")
    first, *others = [m.Adopt(Sync(np.zeros(1), own)) for own in np.eye(3)]
    found = answered(owner, step, first).forecast[0]
    assert found == pytest.approx(agent.raw_features()[0, 0], rel=1e-12)  # one combination of them
    for other in others:
        assert "adopt: a second one for step 2" in refused(owner, step, other)
    assert answered(owner, step, first).forecast[0] == found
    assert "close.sync" in refused(owner, step + 1, close(step, others[0].sync))
    assert asked(owner, step + 1, close(step, first.sync)).reason == ""


def test_least_squares_over_1000_steps_does_not_find_the_features_as_drawn():
    """At moments: one combination of three features a step, chosen by the hub, and their means."""
    owner, agent, step = begun(nc.encoders.RandomFeatures(features=3, seed=1, noise=0.5), "moments")
    rng, true, guessed = np.random.default_rng(5), [], []
    for _ in range(1000):
        own = rng.standard_normal(3)
        mean = agent._built.moments(X[2:3], np.zeros((1, 1, 3)), None).mean[0, 0]
        said = answered(owner, step, m.Adopt(Sync(np.zeros(1), own))).forecast[0]
        true.append(agent.raw_features()[0] - mean)
        guessed.append(own * (said - own @ mean) / (own @ own))  # the smallest that fits
        asked(owner, step + 1, m.Close(step, None, label(step + 1)), m.Forecast(X[2], False))
        step += 1
    true, guessed = np.array(true), np.array(guessed)
    assert (guessed - true).var() > 0.55 * true.var()  # two thirds of it are not in the answers
