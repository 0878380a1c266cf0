"""Intervals: coverage under every kind of series, the guarantee that needs no assumption, and what must not change."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.intervals import Intervals
from nashcast.intervals.intervals import COVERAGES
from nashcast.intervals.residuals import PRIOR
from support.reference.intervals import plain_widths

NOMINAL = np.array(COVERAGES)
STEPS = 2000


def independent(rng):
    return rng.standard_normal(STEPS)


def heavy(rng):
    return rng.standard_t(2.0, STEPS)


def skewed(rng):
    return rng.exponential(1.0, STEPS) - 0.3


def drifting(rng):
    """The scale grows a hundredfold."""
    return np.logspace(0, 2, STEPS) * rng.standard_normal(STEPS)


def jumping(rng):
    """The scale jumps up and down by 20 every 250 steps."""
    return np.where(np.arange(STEPS) // 250 % 2, 20.0, 1.0) * rng.standard_normal(STEPS)


def clustered(rng):
    """Volatility that feeds on itself (GARCH)."""
    r, variance = np.empty(STEPS), 1.0
    for t in range(STEPS):
        r[t] = np.sqrt(variance) * rng.standard_normal()
        variance = 0.05 + 0.1 * r[t] ** 2 + 0.85 * variance
    return r


def biased(rng):
    """A forecaster whose error wanders."""
    return np.cumsum(0.1 * rng.standard_normal(STEPS)) + rng.standard_normal(STEPS)


def spiked(rng):
    return np.where(rng.random(STEPS) < 0.02, 100.0, 1.0) * rng.standard_normal(STEPS)


def still(rng):
    """Exactly right three times in four."""
    return np.where(rng.random(STEPS) < 0.75, 0.0, rng.standard_normal(STEPS))


SERIES = [independent, heavy, skewed, drifting, jumping, clustered, biased, spiked, still]


def covered(residuals, intervals=None):
    """(steps, coverages): whether each target was within its interval; and the half-widths."""
    intervals = intervals or Intervals(1)
    bounds = intervals.replay(np.zeros((len(residuals), 1)), residuals[:, None])[..., 0]
    inside = (bounds[:, :, 0] <= residuals[:, None]) & (residuals[:, None] <= bounds[:, :, 1])
    return inside, bounds[:, :, 1]


@pytest.mark.parametrize("series", SERIES)
def test_coverage_is_within_two_points_over_the_whole_and_five_in_any_hundred(series):
    for seed in range(3):
        inside, _ = covered(series(np.random.default_rng(seed)))
        assert np.abs(inside.mean(axis=0) - NOMINAL).max() <= 0.02
        windows = np.lib.stride_tricks.sliding_window_view(inside, 100, axis=0).mean(axis=2)
        # Any hundred in a row, also those right after a jump, where a tenth may go by before it is noticed.
        assert np.abs(windows[::10] - NOMINAL).max() <= (0.11 if series in (jumping, spiked, still) else 0.09)
        assert np.mean(np.abs(windows[::10] - NOMINAL) <= 0.05) > 0.95


def test_fixed_quantiles_would_fail_where_the_scale_moves():
    """The tests above can fail: quantiles of everything so far do not meet them."""
    r = np.abs(drifting(np.random.default_rng(0)))
    inside = np.array([[r[t] <= np.quantile(r[:t], level) for level in NOMINAL] for t in range(50, STEPS)])
    assert np.abs(inside.mean(axis=0) - NOMINAL).max() > 0.05


def outlying(rng):
    """Residuals a million million times as large as usual: the third, two in a row, one among zeros, and one alone."""
    r = rng.standard_normal(STEPS)
    r[[402, 450, 451, 600]] *= 1e12
    r[500:520] = 0.0
    r[510] = 1e12
    return r


@pytest.mark.parametrize("series", [independent, heavy, jumping, spiked, still, outlying])
def test_equals_the_plain_loop(series):
    r = series(np.random.default_rng(4))[400:720]
    intervals = Intervals(1, coverages=(0.8, 0.95), memory=60)
    _, widths = covered(r, intervals)
    np.testing.assert_allclose(widths, plain_widths(r.tolist(), (0.8, 0.95), 60, PRIOR), rtol=1e-9)


def test_columns_with_gaps_equal_the_plain_loop_over_what_each_learnt():
    rng = np.random.default_rng(11)
    r = rng.standard_normal((200, 3)) * [1e-6, 1.0, 1e6]
    r[rng.random(r.shape) < 0.4] = np.nan
    r[rng.random(r.shape) < 0.1] = -np.inf
    r[:40, 2] = np.nan
    bounds = Intervals(3, coverages=(0.9, 0.7), memory=30).replay(np.zeros(r.shape), r)
    for i in range(3):
        known = np.isfinite(r[:, i])
        expected = plain_widths(r[known, i].tolist(), (0.7, 0.9), 30, PRIOR)
        np.testing.assert_allclose(bounds[known, ::-1, 1, i], expected, rtol=1e-9)


def adversary(intervals, steps, largest, rng):
    """Chooses each target after seeing the interval: just outside if that is within reach, else a point inside."""
    misses = np.zeros(len(intervals.coverages))
    for t in range(steps):
        high = intervals.bounds([0.0])[len(misses) // 2, 1, 0]
        want_miss = t % 3 != 0
        target = high * (1 + 1e-9) + 1e-12 if want_miss and high < largest else rng.uniform(-1, 1) * min(high, largest)
        bounds = intervals.bounds([0.0])[:, :, 0]
        misses += (target < bounds[:, 0]) | (target > bounds[:, 1])
        intervals.learn([0.0], [target])
    return misses


def test_the_long_run_guarantee_needs_no_assumption_but_bounded_targets():
    """The misses owed are exactly α·steps less the misses, and they stay bounded: so the rate of misses goes to α."""
    worst = []
    for steps in (500, 2000):
        intervals = Intervals(1, coverages=(0.8, 0.9, 0.95))
        misses = adversary(intervals, steps, largest=1000.0, rng=np.random.default_rng(1))
        # The first interval is infinite: it is right whatever comes, and nothing is owed for it.
        owed = (1 - NOMINAL) * (steps - 1) - misses
        np.testing.assert_allclose(intervals.debts[:, 0], owed, atol=1e-6)
        worst.append(np.abs(owed).max())
    # An adversary can make it miss while the interval grows to the largest target, not for longer.
    assert max(worst) < 30
    assert worst[1] < worst[0] + 10


def test_intervals_are_nested_and_in_the_order_asked_for():
    levels = (0.95, 0.5, 0.8, 0.99)
    rng = np.random.default_rng(2)
    for series in SERIES:
        r = series(rng)[:600]
        bounds = Intervals(1, coverages=levels).replay(np.zeros((600, 1)), r[:, None])[1:, :, :, 0]
        ascending = bounds[:, np.argsort(levels)]
        assert (np.diff(ascending[:, :, 1], axis=1) >= 0).all()
        assert (np.diff(ascending[:, :, 0], axis=1) <= 0).all()


@pytest.mark.parametrize("unit", [1e-9, 7.0, 1e9])
def test_units_and_origin_change_nothing(unit):
    rng = np.random.default_rng(3)
    y, f = np.cumsum(rng.standard_normal((500, 2)), axis=0), np.zeros((500, 2))
    f[1:] = y[:-1]
    plain = Intervals(2).replay(f, y)
    np.testing.assert_allclose(Intervals(2).replay(unit * f, unit * y), unit * plain, rtol=1e-9)
    moved = Intervals(2).replay(f + 3.0, y + 3.0)
    np.testing.assert_allclose(moved[1:], plain[1:] + 3.0, rtol=1e-7, atol=1e-7)


def test_the_sign_of_residuals_is_a_mirror_and_targets_do_not_see_each_other():
    rng = np.random.default_rng(5)
    r = rng.standard_normal((300, 2))
    both = Intervals(2).replay(np.zeros((300, 2)), r)
    np.testing.assert_array_equal(both[1:, :, ::-1], -Intervals(2).replay(np.zeros((300, 2)), -r)[1:])
    alone = Intervals(1).replay(np.zeros((300, 1)), r[:, 1:])
    np.testing.assert_array_equal(both[..., 1:], alone)


def test_finite_after_one_step_and_sensible_after_few():
    intervals = Intervals(1)
    assert np.isinf(intervals.bounds([2.0])).all()
    rng = np.random.default_rng(6)
    early = []
    for _ in range(200):
        inside, widths = covered(rng.standard_normal(20))
        assert np.isfinite(widths[1:]).all()
        early.append(inside[3:])
    assert np.abs(np.mean(early, axis=(0, 1)) - NOMINAL).max() <= 0.06


def test_missing_targets_teach_nothing_and_late_ones_are_learnt_when_they_come():
    rng = np.random.default_rng(7)
    r = rng.standard_normal((50, 2))
    whole, holes = Intervals(2), Intervals(2)
    for row in r:
        whole.learn([0.0, 0.0], row)
        holes.learn([0.0, 0.0], [np.nan, row[1]])
        holes.learn([0.0, 0.0], [row[0], np.nan])  # the first target comes late
        holes.learn([0.0, 0.0], [np.nan, np.nan])
    np.testing.assert_array_equal(holes.bounds([1.0, 2.0]), whole.bounds([1.0, 2.0]))


def test_a_perfect_forecaster_has_intervals_of_no_width_and_recovers_from_that():
    intervals = Intervals(1)
    for _ in range(300):
        intervals.learn([1.0], [1.0])
    np.testing.assert_array_equal(intervals.bounds([1.0])[..., 0], 1.0)
    inside, _ = covered(np.random.default_rng(8).standard_normal(300), intervals)
    assert np.abs(inside.mean(axis=0) - NOMINAL).max() <= 0.05


def test_saved_and_restored_it_continues_bit_for_bit():
    rng = np.random.default_rng(9)
    r, f = rng.standard_normal((700, 2)), rng.standard_normal((700, 2))
    whole = Intervals(2).replay(f, f + r)
    first, second = Intervals(2), Intervals(2)
    first.replay(f[:400], f[:400] + r[:400])
    saved = first.save()
    first.replay(f[400:500], f[400:500] + r[400:500])  # what was saved is a copy
    second.restore(saved)
    np.testing.assert_array_equal(second.replay(f[400:], f[400:] + r[400:]), whole[400:])


def test_one_by_one_is_the_whole_series():
    r = heavy(np.random.default_rng(10))[:300, None]
    whole, intervals = Intervals(1).replay(np.zeros((300, 1)), r), Intervals(1)
    for t in range(300):
        np.testing.assert_array_equal(intervals.bounds([0.0]), whole[t])
        intervals.learn([0.0], r[t])


BAD = [
    (lambda: Intervals(0), "y_dim: got int 0"),
    (lambda: Intervals(1, coverages=()), "coverages: got tuple (). Pass numbers between 0 and 1"),
    (lambda: Intervals(1, coverages=(0.9, 1.0)), "coverages: got tuple (0.9, 1.0)"),
    (lambda: Intervals(1, memory=5), "memory: got int 5. Pass a whole number ≥ 20."),
    (lambda: Intervals(2).bounds([1.0]), "forecast: got shape (1,)"),
    (lambda: Intervals(2).learn([1.0, 2.0], [1.0]), "target: got shape (1,)"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_bad_input_names_the_argument_and_the_remedy(call, words):
    with pytest.raises(nc.InvalidInput) as caught:
        call()
    assert words in str(caught.value)
