"""Residuals that are far larger than usual, not finite, or near the limits of floating point."""

import numpy as np
import pytest

from nashcast.intervals import Intervals

COVERAGES = (0.8, 0.9, 0.95)


def half_widths(residuals, coverages=COVERAGES):
    return Intervals(residuals.shape[1], coverages).replay(np.zeros(residuals.shape), residuals)[:, :, 1]


# The first residual has nothing to be compared with: it counts in full, and fades with the shortest half-life.
OUTLIERS = [(at, size) for at in (300, 20, 4) for size in (1e12, 1e300, 1.7e308)] + [(0, 1e12)]
STEPS_TO_RECOVER = {300: 30, 20: 60, 4: 150, 0: 200}


@pytest.mark.parametrize(("at", "size"), OUTLIERS)
def test_half_widths_recover_from_one_outlier(at, size):
    r = np.stack([np.random.default_rng(seed).standard_normal(600) for seed in range(8)], axis=1)
    usual = half_widths(r)
    r[at] = size
    ratios = np.median(half_widths(r) / np.where(np.isinf(usual), 1.0, usual), axis=2)
    recovered = at + STEPS_TO_RECOVER[at]
    assert (ratios[recovered : recovered + 50] < 3.0).all()
    assert (ratios[-100:] < 1.5).all()
    assert (ratios[-100:] > 0.6).all()


def test_one_outlier_widens_the_next_interval_by_a_bounded_factor():
    r = np.random.default_rng(1).standard_normal((600, 1))
    usual = half_widths(r)[501]
    r[500] = 1e12
    assert (half_widths(r)[501] < 100.0 * usual).all()
    assert (half_widths(r)[501] > usual).all()


@pytest.mark.parametrize("factor", [30.0, 1e3, 1e6])
def test_a_lasting_change_of_scale_is_followed_and_the_misses_are_made_up_for(factor):
    r = np.random.default_rng(2).standard_normal((1500, 1))
    r[500:] *= factor
    widths = half_widths(r)[..., 0]
    assert (np.median(widths[550:], axis=0) > factor).all()
    assert (np.median(widths[550:], axis=0) < 4.0 * factor).all()
    missed = np.abs(r[500:]) > widths[500:]
    assert (np.abs(missed.mean(axis=0) - (0.2, 0.1, 0.05)) < 0.01).all()


def test_frequent_outliers_are_covered_as_often_as_asked():
    """More outliers than a coverage may miss: the interval must grow to hold them, whatever a single one counts as."""
    coverages = (0.9, 0.99, 0.999)
    columns = [(size, period) for size in (2.5, 150.0, 1e12) for period in (30, 150)]
    r = 0.1 * np.random.default_rng(3).standard_normal((15000, len(columns)))
    for i, (size, period) in enumerate(columns):
        r[::period, i] = size
    missed = np.abs(r)[:, None] > half_widths(r, coverages)
    expected = np.broadcast_to(1.0 - np.array(coverages)[:, None], (len(coverages), len(columns)))
    np.testing.assert_allclose(missed.mean(axis=0), expected, atol=0.002)


def test_outliers_just_beyond_the_widest_interval_cannot_repeat_more_often_than_asked():
    """An adversary that waits until the largest residual has faded, then chooses a target just outside."""
    coverage, bound = 0.99, 1e6
    intervals = Intervals(1, (coverage,))
    rng, misses, steps = np.random.default_rng(4), 0, 12000
    for t in range(steps):
        high = intervals.bounds([0.0])[0, 1, 0]
        outside = t % 40 == 39 and high < bound
        target = high * (1.0 + 1e-9) if outside else 1e-3 * rng.standard_normal()
        misses += abs(target) > high
        intervals.learn([0.0], [target])
    assert abs(misses / steps - (1.0 - coverage)) < 0.003


def test_the_largest_numbers_give_finite_half_widths_in_order():
    rng = np.random.default_rng(5)
    r = rng.standard_normal((500, 4)) * [1e-300, 1e-150, 1e150, 1e299]
    r[rng.random(r.shape) < 0.05] = 1.7e308
    r[rng.random(r.shape) < 0.05] = 0.0
    r[rng.random(r.shape) < 0.05] = 5e-324
    widths = half_widths(r)
    assert np.isfinite(widths[1:]).all()
    assert (widths >= 0.0).all()
    assert (np.diff(widths[1:], axis=1) >= 0.0).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_column_without_a_finite_residual_learns_nothing(bad):
    rng = np.random.default_rng(6)
    intervals = Intervals(3)
    for _ in range(30):
        intervals.learn(np.zeros(3), rng.standard_normal(3))
    before = intervals.save()
    intervals.learn([0.0, bad, 0.0], [bad, 0.0, 0.5])
    after = intervals.save()
    for name, values in after.items():
        np.testing.assert_array_equal(values[:2], before[name][:2])
        if name != "largest":
            assert not np.array_equal(values[2], before[name][2])


def test_forecast_and_target_whose_difference_overflows_teach_nothing():
    intervals = Intervals(1)
    intervals.learn([-1.7e308], [1.7e308])
    assert np.isinf(intervals.bounds([0.0])).all()


def test_bounds_of_forecasts_that_are_not_finite():
    intervals = Intervals(3)
    intervals.learn(np.zeros(3), np.ones(3))
    bounds = intervals.bounds([np.nan, np.inf, -np.inf])
    assert np.isnan(bounds[..., 0]).all()
    assert (bounds[..., 1] == np.inf).all()
    assert (bounds[..., 2] == -np.inf).all()


def test_bounds_change_nothing():
    rng = np.random.default_rng(7)
    asked, plain = Intervals(2), Intervals(2)
    for row in rng.standard_normal((60, 2)):
        first = asked.bounds([0.0, 0.0])
        first_again = asked.bounds([0.0, 0.0])
        np.testing.assert_array_equal(first, first_again)
        first[...] = 7.0  # the caller's array is not the cached one
        np.testing.assert_array_equal(asked.bounds([0.0, 0.0]), first_again)
        asked.learn([0.0, 0.0], row)
        plain.learn([0.0, 0.0], row)
    for name, values in plain.save().items():
        np.testing.assert_array_equal(asked.save()[name], values)
