"""What one agent, one input or one label may do to the rest: little, and never unseen."""

import numpy as np
import pytest

import nashcast as nc
from nashcast import streams
from outsiders import Outsider, bad_outsiders


def series(name):
    rng = np.random.default_rng(8)
    if name == "logistic":
        stream = streams.logistic_map(400)
        return stream.inputs, stream.targets, stream.start
    t = np.arange(2001)
    y = np.cumsum(0.3 * rng.standard_normal(2001)) + 2.0 * np.sin(2 * np.pi * t / 24)
    return y[:-1, None], y[1:, None], y[:1]


@pytest.mark.parametrize("name", ["logistic", "wandering season"])
def test_one_bad_agent_costs_at_most_a_tenth(name):
    X, Y, start = series(name)
    alone = nc.default_federation(1, start=start).replay(X, Y).mse
    for kind, said in bad_outsiders(Y).items():
        federation = nc.default_federation(1, start=start, agents=[Outsider(said, kind)])
        assert federation.replay(X, Y).mse <= 1.1 * alone, kind
        health = federation.health
        if kind in ("missing", "infinite"):
            assert health["absences"][kind] == int((~np.isfinite(said)).sum())
            assert health["reasons"][kind] == "its forecast is not finite"
        if kind in ("spikes", "noise"):
            assert health["forecasts held back"][kind] > 20


def test_a_good_agent_from_outside_is_heard_whatever_its_spikes():
    X, Y, start = series("wandering season")
    alone = nc.default_federation(1, start=start).replay(X, Y).mse
    rng = np.random.default_rng(2)
    good = Y + 0.05 * rng.standard_normal(Y.shape)
    federation = nc.default_federation(1, start=start, agents=[Outsider(good, "oracle")])
    assert federation.replay(X, Y).mse < 0.3 * alone
    assert federation.weights["oracle"] > 0.9
    good[rng.choice(1000, 100, replace=False)] += 1000.0
    federation = nc.default_federation(1, start=start, agents=[Outsider(good, "oracle")])
    assert federation.replay(X, Y).mse < 0.8 * alone
    assert federation.health["forecasts held back"]["oracle"] >= 100


def test_an_agent_of_nashcasts_own_may_be_one_of_them():
    X, Y, start = series("wandering season")
    agents = [nc.Agent(nc.encoders.Linear(2), forgetting=0.99, name="mine"), nc.Agent(nc.encoders.Persistence())]
    federation = nc.default_federation(1, start=start, agents=agents)
    federation.replay(X[:60], Y[:60])
    assert federation.agents[-2:] == ["mine", "Persistence"]
    assert sum(federation.weights.values()) == pytest.approx(1.0)


def test_no_forecast_goes_further_than_the_target_ever_did():
    rng = np.random.default_rng(3)
    Y = np.cumsum(rng.standard_normal((300, 1)), axis=0)
    X = rng.standard_normal((300, 3))
    X[150] = 1e9
    result = nc.default_federation(3).replay(X, Y)
    before = np.vstack([Y[:1], Y[:-1]])
    largest = np.maximum.accumulate(np.abs(before - np.vstack([Y[:1], before[:-1]])))
    assert np.all(np.abs(result.forecasts[1:] - before[1:]) <= largest[1:] * (1 + 1e-6) + 1e-12)
    # One wild input is not remembered for ever.
    error = (result.forecasts - Y) ** 2
    assert error[151:].mean() < 1.1 * ((before - Y) ** 2)[151:].mean()


def test_what_is_held_back_is_counted():
    X, Y, start = series("wandering season")
    federation = nc.default_federation(1, start=start)
    federation.replay(X[:300], Y[:300])
    health = federation.health
    assert health["games"] == 2 * (300 - 5)
    assert 0 <= health["corrections held back"] < 6 * health["games"]
    assert set(health["forecasts held back"]) == set(federation.agents)
    assert health["fallbacks"] == 0
    assert nc.default_federation(1).health["games"] == 0
    without = nc.default_federation(1, start=start, game=False)
    without.replay(X[:30], Y[:30])
    assert without.health["games"] == 0
