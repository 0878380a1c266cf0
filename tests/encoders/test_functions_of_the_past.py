"""Functions that forecast: what they are shown, what they may return, and what benches them."""

import re
import threading
import time
import warnings

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.expected_distance import distance
from nashcast.checks import check_encoder
from nashcast.encoders import Forecaster

RNG = np.random.default_rng(3)
SERIES = 10.0 + np.sin(np.arange(80) / 4.0) + 0.1 * RNG.standard_normal(80)


def ran(encoder, steps=40, horizon=1, y_dim=1):
    """A federation of one agent after some steps, with a forecast outstanding."""
    federation = nc.Federation([nc.Agent(encoder, name="box")], horizon=horizon, y_dim=y_dim)
    for y in SERIES[:steps]:
        federation.predict_one(None)
        federation.learn_one(None, y if y_dim == 1 else np.full(y_dim, y))
    federation.predict_one(None)
    return federation


def unit_of(federation):
    return federation._loop._agents._forecasters[0]


KEEPING = {
    "of x": Forecaster(lambda x: [x[0]]),
    "one step": Forecaster(lambda past: past[-1], context=5),
    "as many as asked for": Forecaster(lambda past, horizon: np.repeat(past[-1], horizon), context=5),
    "quantiles": Forecaster(lambda past: past[-1] + np.array([[-1.0, 0.0, 1.0]]), context=5, quantiles=(0.1, 0.5, 0.9)),
    "quantiles without median": Forecaster(
        lambda past: past[-1] + np.array([-1.0, 3.0]), context=5, quantiles=(0.3, 0.7)
    ),
    "samples": Forecaster(lambda past: past[-1] + np.arange(5.0), context=5, samples=True),
    "asked now and then": Forecaster(lambda past, horizon: np.repeat(past[-1], horizon), context=5, refit_every=3),
    "fitted now and then": Forecaster(
        lambda m, past, horizon: np.repeat(past[-1] + m, horizon), 5, fit=np.mean, refit_every=3
    ),
    "with inputs": Forecaster(lambda past, x, inputs, times: past[-1] + x[0] + inputs.sum(), context=5),
    "in a thread": Forecaster(lambda past: past[-1], context=5, timeout=60.0),
}


@pytest.mark.parametrize("encoder", KEEPING.values(), ids=KEEPING)
def test_functions_keep_every_contract(encoder):
    check_encoder(encoder, x_dim=2, y_dim=1, steps=12)


def test_a_function_of_several_targets_keeps_every_contract():
    check_encoder(Forecaster(lambda past: past.mean(axis=0), context=4), x_dim=1, y_dim=3, steps=12)


def test_the_function_is_shown_the_last_targets_oldest_first():
    seen = []
    ran(Forecaster(lambda past: seen.append(past.copy()) or past[-1], context=6), steps=20)
    assert [len(past) for past in seen] == [1, 2, 3, 4, 5, *[6] * 15]
    np.testing.assert_array_equal(seen[-1], SERIES[14:20])


def test_a_perfect_function_is_the_forecast_of_every_horizon():
    """It knows the series, and says it three steps ahead; the federation's expert is what it says."""
    step = {tuple(SERIES[t : t + 2]): t for t in range(70)}

    def oracle(past):
        t = step.get(tuple(past[-2:]), 0) + 2
        return SERIES[t : t + 3]

    unit = unit_of(ran(Forecaster(oracle, context=2, horizon=3), steps=30, horizon=3))
    np.testing.assert_array_equal(unit.said[0, :, 0], SERIES[30:33])


def test_quantiles_reach_the_federation_as_experts_and_as_quantiles():
    levels = (0.1, 0.4, 0.7)
    box = Forecaster(lambda past: np.tile([3.0, 1.0, 2.0], (4, 1)), context=1, quantiles=levels)
    federation = ran(box, horizon=4)
    unit = unit_of(federation)
    assert unit.quantiles.levels == levels
    # Sorted, because crossing quantiles contradict themselves.
    np.testing.assert_array_equal(unit.quantiles.values, np.tile([1.0, 2.0, 3.0], (4, 1, 1)))
    # The median lies a third of the way from the level 0.4 to 0.7; the outermost quantiles are experts beside it.
    np.testing.assert_allclose(unit.said[:, 0, 0], [2.0 + 1.0 / 3.0, 1.0, 3.0])
    np.testing.assert_allclose(federation.present.distance, distance(unit.quantiles))


def test_samples_give_their_mean_and_quantiles():
    draws = np.random.default_rng(1).standard_normal((500, 2))
    unit = unit_of(ran(Forecaster(lambda past: draws, context=1, samples=True), horizon=2))
    np.testing.assert_allclose(unit.said[0, :, 0], draws.mean(axis=0))
    for k, level in enumerate(unit.quantiles.levels):
        np.testing.assert_allclose(unit.quantiles.values[:, 0, k], np.quantile(draws, level, axis=0))


def test_a_function_called_now_and_then_is_carried_on_in_between():
    calls, said = [], []

    def vendor(past, horizon):
        calls.append(len(past))
        return past[-1] + np.arange(1.0, horizon + 1)

    federation = nc.Federation([nc.Agent(Forecaster(vendor, context=64, refit_every=4))], horizon=2)
    for t, y in enumerate(SERIES[:33]):
        federation.predict_one(None)
        if t:
            said.append(unit_of(federation).said[0, :, 0].copy())
        federation.learn_one(None, y)
    # While the past is short it is also called when that has doubled.
    assert calls == [1, 2, 4, 8, 12, 16, 20, 24, 28, 32]
    np.testing.assert_allclose(said[27], SERIES[27] + [1.0, 2.0])
    np.testing.assert_allclose(said[30], SERIES[27] + [4.0, 5.0])


BAD = {
    "not a number": (lambda past: np.nan, "its forecast is not finite"),
    "wrong length": (lambda past: [1.0, 2.0], r"an answer of shape \(2,\). Return 3 forecasts or 1 forecast"),
    "an exception": (lambda past: 1 / 0, "ZeroDivisionError: division by zero"),
    "words": (lambda past: "soon", "function: got str 'soon'"),
    "nothing": (lambda past: None, "its forecast is not finite|function: got"),
}  # fmt: skip


@pytest.mark.parametrize(("function", "words"), BAD.values(), ids=BAD)
def test_bad_answers_bench_the_agent_for_the_step(function, words):
    sound = nc.Agent(nc.encoders.Trend(), name="sound")

    def at_times_bad(past):
        return function(past) if len(past) % 5 == 0 else past[-1]

    federation = nc.Federation([nc.Agent(Forecaster(at_times_bad, context=1000), name="box"), sound], horizon=3)
    for y in SERIES[:41]:
        assert np.isfinite(federation.predict_one(None)).all()
        federation.learn_one(None, y)
    assert federation.health["absences"] == {"box": 8}
    assert re.search(words, federation.health["reasons"]["box"])
    # At a step it is benched in, nothing of it is weighed.
    federation = nc.Federation([nc.Agent(Forecaster(function, context=3), name="box"), sound])
    for y in SERIES[:20]:
        federation.predict_one(None)
        federation.learn_one(None, y)
    assert federation.weights["box"] == 0.0


def test_a_slow_function_is_benched_until_it_has_answered():
    release, calls = threading.Event(), []

    def slow(past):
        calls.append(len(past))
        if len(calls) == 3:
            release.wait(20.0)
        return past[-1]

    federation = nc.Federation([nc.Agent(Forecaster(slow, context=9, timeout=1.0), name="box")])
    for t, y in enumerate(SERIES[:8]):
        federation.predict_one(None)
        federation.learn_one(None, y)
        if t == 5:
            release.set()
            time.sleep(0.2)
    assert federation.health["absences"]["box"] == 3
    assert "still busy with an earlier step" in federation.health["reasons"]["box"]
    assert calls == [1, 2, 3, 6, 7]


def test_a_function_that_warns_warns_nobody(capsys):
    def warns(past):
        warnings.warn("deprecated", FutureWarning, stacklevel=1)
        return past[-1]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        federation = ran(Forecaster(warns, context=2))
        ran(Forecaster(lambda x: (warnings.warn("old", stacklevel=1), 1.0)[1]))
    assert not federation.health["absences"]
    assert capsys.readouterr() == ("", "")


def test_saved_between_fits_it_goes_on_bit_for_bit(tmp_path):
    def make():
        fitted = Forecaster(
            lambda model, past, horizon: np.repeat(model @ past[-3:], horizon), 30, fit=_fit, refit_every=7
        )
        return nc.Federation([nc.Agent(fitted), nc.Agent(Forecaster(_long, context=9, refit_every=5))], horizon=2)

    one = make()
    for y in SERIES[:38]:
        one.predict_one(None)
        one.learn_one(None, y)
    one.save(tmp_path / "state")
    other = make()
    other.load(tmp_path / "state")
    for y in SERIES[38:60]:
        np.testing.assert_array_equal(one.predict_one(None), other.predict_one(None))
        one.learn_one(None, y)
        other.learn_one(None, y)


def _fit(past):
    rows = np.lib.stride_tricks.sliding_window_view(past, 4) if len(past) > 3 else np.ones((1, 4))
    return np.linalg.lstsq(rows[:, :3], rows[:, 3], rcond=None)[0]


def _long(past, horizon):
    return past.mean() + np.arange(horizon)


def test_messages():
    not_callable, word = 3, "often"
    for arguments, words in (
        ({"function": not_callable}, "function: got int 3. Pass something that can be called"),
        ({"context": -1}, "context: got int -1"),
        ({"context": 3000}, "context: got 3000. Pass a whole number ≤ 2048"),
        ({"horizon": 0}, "horizon: got int 0"),
        ({"quantiles": (0.9, 0.1)}, "quantiles: got .* in ascending order"),
        ({"quantiles": (0.1, 0.2)}, "quantiles: got .* on both sides of it"),
        ({"quantiles": word}, "quantiles: got str 'often'. Pass a list of levels"),
        ({"quantiles": (0.5,), "samples": True}, "samples: got True beside quantiles"),
        ({"refit_every": 0}, "refit_every: got int 0"),
        ({"refit_every": 3}, "context: got 0. Say how many targets"),
        ({"fit": not_callable, "context": 3}, "fit: got int 3"),
        ({"timeout": 0.0}, "timeout: got 0. Pass a number > 0"),
    ):
        with pytest.raises(nc.InvalidInput, match=words):
            Forecaster(**({"function": np.mean} | arguments))
    with pytest.raises(
        nc.InvalidInput, match=r"one that asks for x. A function that is called every refit_every steps"
    ):
        Forecaster(lambda past, x: 1.0, context=3, refit_every=2).build(1, 1)
