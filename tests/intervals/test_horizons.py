"""Intervals several steps ahead: labels meet what was issued with their forecasts, whatever was learnt since."""

from __future__ import annotations

import numpy as np

from nashcast.federation.forecast import Scored
from nashcast.federation.views.bounds import Bounds
from nashcast.intervals import Intervals
from nashcast.intervals.issued_log import IssuedLog

H, STEPS = 8, 1500


def covered(*, issued: bool) -> np.ndarray:
    """Coverage of 80 % intervals round persistence of a random walk, for each step ahead, after 200 steps."""
    y = np.cumsum(np.random.default_rng(5).standard_normal(STEPS))
    bounds, inside = Bounds((0.8,), 1, H, 0), np.full((STEPS, H), np.nan)
    lows, highs = np.zeros((STEPS, H)), np.zeros((STEPS, H))
    for t in range(STEPS):
        made = t - 1 - np.arange(H)
        known = made >= 0
        if t:
            said = np.where(known, y[np.maximum(made, 0)], 0.0)[:, None]
            at = np.flatnonzero(known)
            inside[made[at], at] = (lows[made[at], at] <= y[t]) & (y[t] <= highs[made[at], at])
            bounds.learn(Scored(y[t : t + 1], said, np.zeros((0, 1)), known, t - 1))
        low, high = bounds.around_all(np.full((H, 1), y[t]))[0]
        lows[t], highs[t] = low[:, 0], high[:, 0]
        if issued:
            bounds.issue(t)
    return np.nanmean(inside[200:-H], axis=0)


def test_every_step_ahead_is_covered_as_often_as_asked():
    np.testing.assert_allclose(covered(issued=True), 0.8, atol=0.03)


def test_without_what_was_issued_longer_steps_are_covered_less():
    assert covered(issued=False)[-1] < 0.77


def test_one_step_ahead_what_was_issued_is_what_is_there():
    rng = np.random.default_rng(1)
    plain, told = Intervals(2), Intervals(2, horizons=[1, 1])
    for _ in range(60):
        f, y = rng.standard_normal(2), rng.standard_normal(2)
        np.testing.assert_array_equal(plain.bounds(f), told.bounds(f))
        issued = told.issued()
        plain.learn(f, y)
        told.learn(f, y, issued)


def test_the_log_gives_each_column_its_own_step():
    intervals = Intervals(3, coverages=(0.5,))
    log, kept = IssuedLog(intervals.issued(), 4), []
    for step in range(6):
        intervals.learn(np.zeros(3), np.full(3, step + 1.0))
        kept.append(intervals.issued())
        log.add(step, kept[-1])
    now = intervals.issued()
    found = log.at(np.array([5, 3, 0]), now)
    assert found.widths[0] == kept[5].widths[0]
    assert found.widths[1] == kept[3].widths[1]
    assert found.widths[2] == now.widths[2]  # step 0 is no longer remembered
