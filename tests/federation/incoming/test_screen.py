"""Wild labels: spikes are forgotten wherever they come, level shifts are followed, and states keep a doubt."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.federation.incoming.screen import Screen, Verdict
from nashcast.federation.incoming.stream_start import spikes


def stream(steps=400, y_dim=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((steps, 2))
    Y = np.cumsum(X @ rng.standard_normal((2, y_dim)) + 0.3 * rng.standard_normal((steps, y_dim)), axis=0)
    return X, Y


def federation(y_dim=1, **settings):
    encoders = [nc.encoders.Trend(), nc.encoders.Lags(changes=True)]
    return nc.Federation([nc.Agent(encoder) for encoder in encoders], y_dim=y_dim, **settings)


def forecasts(fed, X, labels):
    said = []
    for x, y in zip(X, labels, strict=True):
        said.append(fed.predict_one(x))
        fed.learn_one(x, y)
    return np.array(said)


@pytest.mark.parametrize("at", [0, 1, 2, 3, 7, 12, 200])
@pytest.mark.parametrize("size", [1e3, 1e12])
def test_a_spike_is_forgotten_wherever_it_comes(at, size):
    X, Y = stream()
    usual = np.sqrt((np.diff(Y[:, 0]) ** 2).mean())
    labels = Y[:, 0].tolist()
    wild, missing = labels.copy(), labels.copy()
    wild[at], missing[at] = labels[at] + size * usual, None
    spoilt = federation()
    errors = [
        np.square(forecasts(fed, X, given) - Y[:, 0])[at + 60 :].mean()
        for fed, given in ((spoilt, wild), (federation(), missing))
    ]
    assert errors[0] < 1.05 * errors[1]
    assert spoilt.health["suspect labels"] >= 1


@pytest.mark.parametrize("size", [40.0, 150.0])
def test_a_spike_within_reach_costs_one_forecast(size):
    X, Y = stream()
    usual = np.sqrt((np.diff(Y[:, 0]) ** 2).mean())
    wild, missing = Y[:, 0].tolist(), Y[:, 0].tolist()
    wild[200], missing[200] = Y[200, 0] - size * usual, None
    spoilt = federation()
    said, plain = forecasts(spoilt, X, wild), forecasts(federation(), X, missing)
    assert abs(said[201] - wild[200]) < 20 * usual  # believed
    np.testing.assert_allclose(said[202:], plain[202:], atol=1.0 * usual)
    assert spoilt.health["suspect labels"] == 1


@pytest.mark.parametrize("size", [60.0, 1e4])
def test_a_level_shift_is_followed(size):
    X, Y = stream()
    usual = np.sqrt((np.diff(Y[:, 0]) ** 2).mean())
    shifted = Y[:, 0] + size * usual * (np.arange(len(Y)) >= 200)
    fed = federation()
    said, plain = forecasts(fed, X, shifted.tolist()), forecasts(federation(), X, Y[:, 0].tolist())
    errors, unshifted = np.abs(said - shifted) / usual, np.abs(plain - Y[:, 0]) / usual
    after = 201 if size == 60.0 else 203  # beyond belief, it takes three labels
    assert errors[200] > 0.9 * size
    assert errors[after:].max() < 0.25 * size
    assert np.square(errors[after + 20 :]).mean() < 1.3 * np.square(unshifted[after + 20 :]).mean()
    assert fed.health["suspect labels"] == (0 if size == 60.0 else 2)


def test_a_target_that_stands_still_does_not_switch_the_screen_off():
    X, Y = stream(y_dim=2)
    Y[:, 1] = 3.0
    labels = Y.copy()
    labels[200, 0] += 1e8
    fed = federation(y_dim=2)
    said = forecasts(fed, X, labels)
    assert fed.health["suspect labels"] == 1
    assert np.abs(said[201:] - Y[201:]).max() < 50.0


def test_horizons_forget_spikes_too():
    X, Y = stream()
    labels = Y[:, 0].copy()
    labels[200] += 50.0 * np.sqrt((np.diff(Y[:, 0]) ** 2).mean())
    fed = federation(horizon=3)
    said = forecasts(fed, X, labels.tolist())
    for h in range(3):
        errors = np.abs(said[: -3 + h or None, h][205:395] - Y[205 + h : 395 + h, 0])
        assert errors.max() < 12.0


def test_a_doubt_survives_save_and_load(tmp_path):
    X, Y = stream()
    labels = Y[:, 0].tolist()
    labels[200] += 80.0
    for follow in (labels[201], labels[201] + 80.0):  # a spike, or a level shift
        one, other = federation(), federation()
        forecasts(one, X[:201], labels[:201])
        one.save(tmp_path / "state")
        other.load(tmp_path / "state")
        for fed in (one, other):
            fed.learn_one(X[201], follow)
        assert one.predict_one(X[202]) == other.predict_one(X[202])
        assert one.health == other.health


def test_verdicts_do_not_depend_on_units():
    rng = np.random.default_rng(1)
    changes = rng.standard_t(1.2, size=(3000, 1))
    found = []
    for unit in (1.0, 1e-9, 1e9):
        screen, anchor = Screen(1), np.zeros(1)
        found.append([])
        for change in changes * unit:
            found[-1].append(screen.judge(anchor + change, anchor))
    assert found[0] == found[1] == found[2]
    assert set(found[0]) == set(Verdict)


def test_spikes_at_the_beginning():
    Y = np.random.default_rng(2).standard_normal((17, 2))
    assert not spikes(Y).any()
    for place in (0, 1, 8):
        wild = Y.copy()
        wild[place, 1] = -1e5
        np.testing.assert_array_equal(spikes(wild), np.arange(17) == place)
        np.testing.assert_array_equal(spikes(1e-6 * wild + 5.0), np.arange(17) == place)
    shifted = Y + 1e5 * (np.arange(17) > 8)[:, None]
    assert not spikes(shifted).any()
    assert not spikes(np.zeros((17, 1))).any()
