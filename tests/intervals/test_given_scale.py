"""Intervals that are told how far from a forecast its target is expected: by an agent's quantiles, for example."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.expected_distance import distance, expected_distance
from nashcast.encoders.base import Quantiles
from nashcast.intervals import Intervals
from nashcast.intervals.residuals import PRIOR
from support.reference.intervals import plain_widths

COVERAGES = (0.8, 0.9, 0.95)


def hours(steps, seed=0):
    """Residuals whose size depends on the hour, and that size."""
    size = 1.0 + 4.0 * (np.arange(steps) % 24 < 6)
    return size * np.random.default_rng(seed).standard_normal(steps), size


def widths(residuals, scale=None):
    intervals = Intervals(1, coverages=COVERAGES, given_scale=scale is not None)
    found = np.empty((len(residuals), len(COVERAGES)))
    for t, residual in enumerate(residuals):
        if scale is not None:
            intervals.set_scale([scale[t]])
        found[t] = intervals.bounds([0.0])[:, 1, 0]
        intervals.learn([0.0], [residual])
    return found


def score(residuals, found, coverage=0.9, first=300):
    """Mean interval score (Winkler)."""
    half, a = found[first:, COVERAGES.index(coverage)], np.abs(residuals[first:])
    return np.mean(2.0 * half + 2.0 / (1.0 - coverage) * np.maximum(a - half, 0.0))


def test_against_the_plain_loop():
    residuals, size = hours(70, seed=3)
    expected = plain_widths(residuals.tolist(), COVERAGES, 250, PRIOR, given=size.tolist())
    np.testing.assert_allclose(widths(residuals, size), expected, rtol=1e-9)


def test_intervals_follow_a_scale_that_is_right_and_stay_covered():
    residuals, size = hours(3000)
    plain, told = widths(residuals), widths(residuals, size)
    assert score(residuals, told) < 0.9 * score(residuals, plain)
    covered = np.mean(np.abs(residuals[300:, None]) <= told[300:], axis=0)
    np.testing.assert_allclose(covered, COVERAGES, atol=0.01)
    hard = size[300:] > 1.0
    assert np.mean(told[300:][hard, 0]) > 3.0 * np.mean(told[300:][~hard, 0])


def test_units_of_the_scale_do_not_matter_in_the_long_run():
    residuals, size = hours(1500)
    told, other = (widths(residuals, unit * size) for unit in (1.0, 0.2))
    assert abs(score(residuals, other) / score(residuals, told) - 1.0) < 0.01


@pytest.mark.parametrize("seed", range(3))
def test_a_scale_that_says_nothing_costs_little(seed):
    rng = np.random.default_rng(seed)
    residuals, noise = rng.standard_normal(3000), np.exp(rng.standard_normal(3000))
    plain, told = widths(residuals), widths(residuals, noise)
    assert score(residuals, told) < 1.03 * score(residuals, plain)
    np.testing.assert_allclose(np.mean(np.abs(residuals[300:, None]) <= told[300:], axis=0), COVERAGES, atol=0.015)


def test_where_it_is_not_known_the_scale_of_256_steps_stands_in():
    residuals, _ = hours(60)
    intervals, odd = Intervals(1, given_scale=True), [np.nan, 0.0, -1.0, np.inf, 1e305]
    for t, residual in enumerate(residuals):
        intervals.set_scale([odd[t % 5]])
        assert np.isfinite(intervals.bounds([0.0])).all() == (t > 0)
        intervals.learn([0.0], [residual])
        state = intervals.save()
        if t:
            assert state["scales"][0, 5] > 0.0
    with pytest.raises(nc.InvalidInput, match="Make the intervals with given_scale=True"):
        Intervals(1).set_scale([1.0])


def test_distance_of_normal_quantiles_and_their_geometric_mean():
    levels, z = (0.05, 0.5, 0.95), 1.6448536269514722
    normal = Quantiles(levels, np.array([[[-2.0 * z, 0.0, 2.0 * z]]]))
    draws = np.abs(2.0 * np.random.default_rng(0).standard_normal(200_000)).mean()
    np.testing.assert_allclose(distance(normal), draws, rtol=0.01)
    wide, sure = (normal._replace(values=factor * normal.values) for factor in (9.0, 0.0))
    np.testing.assert_allclose(expected_distance([normal, wide]), 3.0 * distance(normal))
    np.testing.assert_allclose(expected_distance([normal, sure]), distance(normal))
    assert np.isnan(expected_distance([sure])).all()
    assert expected_distance([]) is None


def federation(quantiles):
    """The agent knows which hours are hard; so do its quantiles, if it gives any."""

    def say(past, times):
        size = 1.0 + 4.0 * (times[-1] % 24 < 6)
        return [-size, 0.0, size] if quantiles else [0.0]

    levels = {"quantiles": (0.1, 0.5, 0.9)} if quantiles else {}
    box = nc.encoders.Forecaster(say, context=2, **levels)
    return nc.Federation([nc.Agent(box, name="box")], game=None, start=0.0, coverages=COVERAGES)


def ran(made, first, last, residuals):
    bounds = []
    for t in range(first, last):
        made.predict_one(None, time=float(t))
        bounds.append([made.interval(coverage) for coverage in COVERAGES])
        made.learn_one(None, residuals[t], time=float(t))
    return np.array(bounds)


def test_an_agent_s_quantiles_reach_the_federation_s_intervals(tmp_path):
    residuals, _ = hours(420)
    plain, told = (ran(federation(quantiles), 0, 420, residuals) for quantiles in (False, True))
    halves = [(each[:, :, 1] - each[:, :, 0]) / 2.0 for each in (plain, told)]
    assert score(residuals, halves[1], first=150) < 0.95 * score(residuals, halves[0], first=150)
    # Saved and loaded in between, they go on bit for bit.
    one, other = federation(True), federation(True)
    ran(one, 0, 100, residuals)
    one.save(tmp_path / "state")
    other.load(tmp_path / "state")
    np.testing.assert_array_equal(ran(other, 100, 120, residuals), told[100:120])
