"""Intervals of the default federation: as often right as they say, kept with the rest, and refused with a reason."""

import numpy as np
import pytest

import nashcast as nc
from outsiders import Outsider


def drifting(steps, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(steps + 1)
    loud = np.where(t > steps // 2, 3.0, 1.0)
    y = np.sin(t / 7.0) + 0.001 * t + 0.2 * loud * rng.standard_normal(steps + 1)
    return y[:-1, None], y[1:, None], y[:1]


def inside(federation, X, Y, coverages, agent=None):
    hits = np.zeros((len(Y), len(coverages)))
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        federation.predict_one(x)
        for c, coverage in enumerate(coverages):
            low, high = federation.interval(coverage, agent)
            hits[t, c] = low <= y[0] <= high
        federation.learn_one(x, y)
    return hits.mean(axis=0)


def test_coverage_is_what_it_says_though_the_noise_triples():
    X, Y, start = drifting(1500)
    coverages = (0.8, 0.9, 0.95)
    found = inside(nc.default_federation(1, start=start), X, Y, coverages)
    np.testing.assert_allclose(found, coverages, atol=0.02)


def test_each_agent_has_its_own_if_wished():
    X, Y, start = drifting(600)
    said = Y + 0.5
    make = lambda **own: nc.default_federation(1, start=start, agents=[Outsider(said, "mine")], **own)  # noqa: E731
    federation = make(agent_intervals=True, coverages=(0.5,))
    for agent in ("mine", "echo state"):
        assert inside(make(agent_intervals=True, coverages=(0.5,)), X, Y, (0.5,), agent) == pytest.approx(
            [0.5], abs=0.03
        )
    federation.predict_one(X[0])
    with pytest.raises(nc.InvalidInput, match=r"agent: got 'yours'. Pass one of persistence, trend"):
        federation.interval(0.5, "yours")
    with pytest.raises(nc.InvalidInput, match=r"coverage: got 0.9. Pass one of 0.5, or make the federation with"):
        federation.interval(0.9)
    plain = make()
    plain.predict_one(X[0])
    with pytest.raises(nc.InvalidInput, match="agent_intervals=True"):
        plain.interval(0.9, "mine")


def test_they_are_infinite_before_the_stream_begins():
    for federation in (nc.default_federation(1), nc.Federation([nc.Agent(nc.encoders.Linear())])):
        federation.predict_one(0.5)
        assert federation.interval(0.8) == (-np.inf, np.inf)
    with pytest.raises(nc.InvalidInput, match=r"agent: got 'linear'. Ask when the first target is known"):
        federation.interval(0.8, "linear")


def test_there_is_none_without_a_forecast_or_without_coverages():
    X, Y, start = drifting(10)
    federation = nc.default_federation(1, start=start)
    with pytest.raises(nc.NashcastError, match="call predict_one"):
        federation.interval()
    federation.learn_one(X[0], Y[0])
    with pytest.raises(nc.NashcastError, match="call predict_one"):
        federation.interval()
    without = nc.default_federation(1, start=start, coverages=())
    without.predict_one(X[0])
    with pytest.raises(nc.NashcastError, match="made without intervals"):
        without.interval()


def test_a_label_one_step_late_teaches_them_as_one_on_time():
    X, Y, start = drifting(80)
    late, timely = nc.default_federation(1, start=start), nc.default_federation(1, start=start)
    for x, y in zip(X, Y, strict=True):
        late.predict_one(x)
        late.learn_one(x, None)
        late.learn_late(late.step - 1, y)
        timely.predict_one(x)
        timely.learn_one(x, y)
    state = late._bounds.save()
    errors = [abs(record.forecast[0] - y[0]) for record, y in zip(late.history, Y, strict=True)]
    assert state["largest"] == pytest.approx(max(errors))
    assert int(state["seen"][0]) == int(timely._bounds.save()["seen"][0]) == 80


@pytest.mark.parametrize("own", [False, True])
def test_they_are_saved_and_go_on_bit_for_bit_and_learn_a_label_that_was_missing(tmp_path, own):
    X, Y, start = drifting(120)
    first, second = (nc.default_federation(1, start=start, agent_intervals=own) for _ in range(2))
    first.replay(X[:69], Y[:69])
    first.learn_one(X[69], None)
    first.save(tmp_path / "state.state")
    second.load(tmp_path / "state.state")
    for federation in (first, second):
        federation.learn_late(69, Y[69])
    assert second._bounds.save()["seen"].tolist() == [70] * (8 if own else 1)
    for x, y in zip(X[70:], Y[70:], strict=True):
        for federation in (first, second):
            federation.predict_one(x)
        assert first.interval(0.9) == second.interval(0.9)
        for federation in (first, second):
            federation.learn_one(x, y)


def test_they_scale_with_the_units():
    rng = np.random.default_rng(4)
    Y = np.cumsum(rng.standard_normal((150, 2)), axis=0)
    X = np.zeros((150, 0))
    plain, scaled = nc.default_federation(0, 2), nc.default_federation(0, 2)
    for x, y in zip(X, Y, strict=True):
        plain.learn_one(x, y)
        scaled.learn_one(x, 8.0 * y)
    plain.predict_one(None)
    scaled.predict_one(None)
    for a, b in zip(plain.interval(0.8), scaled.interval(0.8), strict=True):
        np.testing.assert_allclose(8.0 * a, b, rtol=1e-9)
