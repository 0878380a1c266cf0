"""Drift and coverage alarms against their definition, under scaling, after a restart, and how seldom they are false."""

from math import inf, log, nan

import numpy as np
import pytest

from nashcast.service.events.watch import COVERAGE, ERRORS, INTERVALS, THRESHOLD, Watch

COVERAGES = (0.5, 0.9)


def told(errors, inside=None, watch=None):
    """Steps and what was noticed there."""
    watch = Watch(COVERAGES) if watch is None else watch
    found = []
    for t, error in enumerate(errors):
        watch.learn(float(error) ** 2, 1.0 if inside is None else float(inside[t]))
        found += [(t, each.kind, each.text.partition(":")[0]) for each in watch.drain()]
    return found


def jumping(seed=0, size=3.0, steps=2500, at=1000, until=1200):
    errors = np.random.default_rng(seed).normal(size=steps)
    errors[at:until] *= size
    return errors


def alarm_by_definition(errors):
    """Page's test of normal errors, written out from its definition with weighted means over lists."""
    known, weights, total, raised, found = [], [], 0.0, False, []
    scale = 0.0
    for t, error in enumerate(errors):
        square = error**2
        if t >= 50:
            z = min(square / scale, 9.0)
            # Densities of N(0, 4 s) and N(0, s) at the clipped error.
            ratio = log(0.5) - z / 8 + z / 2
            total = min(max(0.0, total + ratio), THRESHOLD)
            if total == THRESHOLD and not raised:
                raised = True
                found.append((t, "drift"))
            elif total == 0 and raised:
                raised = False
                found.append((t, "drift over"))
        known.append(square if t < 5 else min(square, 9 * scale))
        share = max(3 / (t + 3), 1 / 500)
        weights = [weight * (1 - share) for weight in weights] + [share]
        scale = float(np.dot(weights, known) / sum(weights))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_a_jump_is_found_where_the_definition_finds_it(seed):
    errors = jumping(seed)
    found = [(t, kind) for t, kind, _ in told(errors)]
    assert found == alarm_by_definition(errors)
    assert [kind for _, kind in found][:2] == ["drift", "drift over"]
    assert 1000 < found[0][0] < 1040


def test_neither_units_nor_a_restart_change_what_is_noticed():
    errors = jumping()
    found = told(errors)
    for unit in (1e-9, 1e9):
        assert told(errors * unit) == found
    first = Watch(COVERAGES)
    before = told(errors[:1050], watch=first)
    second = Watch(COVERAGES)
    second.restore({name: np.array(value) for name, value in first.save().items()})
    after = [(t + 1050, kind, text) for t, kind, text in told(errors[1050:], watch=second)]
    assert before + after == found


def test_without_a_change_there_is_hardly_an_alarm():
    rng = np.random.default_rng(3)
    for errors in (rng.normal(size=20_000), rng.laplace(size=20_000)):
        assert told(errors, np.abs(errors) < np.quantile(np.abs(errors), 0.9)) == []


def test_spikes_constants_and_wild_errors_are_no_drift():
    errors = np.random.default_rng(1).normal(size=2000)
    errors[[500, 900, 901, 1300]] = 1e12
    assert told(errors) == []
    assert told(np.zeros(500)) == []
    watch = Watch(COVERAGES)
    for error in (inf, 1e300, 0.0, nan):
        watch.learn(error, nan)
    assert watch.alarms() == []


def test_a_series_that_was_constant_and_moves_is_a_drift():
    errors = np.concatenate([np.zeros(100), np.ones(20)])
    assert told(errors)[0][1:] == ("drift", "error jump")


def test_misses_three_times_as_frequent_are_an_interval_debt():
    inside = np.ones(3000)
    inside[::10] = 0  # as many as a 90 % interval may miss
    assert told(np.ones(3000), inside) == []
    inside[1000:1200:2] = 0
    found = told(np.ones(3000), inside)
    assert next((kind, text) for _, kind, text in found) == ("drift", "interval debt")
    # Likelihoods multiplied as they are defined: 0.3 against 0.1 for a miss, 0.7 against 0.9 for a hit.
    total, sums = 0.0, []
    for hit in inside:
        total = max(0.0, total + log(0.7 / 0.9 if hit else 0.3 / 0.1))
        sums.append(total)
    assert found[0][0] == np.argmax(np.array(sums) >= THRESHOLD)


def test_coverage_is_off_beyond_four_standard_errors_and_back_within_two():
    watch = Watch((0.9,))
    for _ in range(400):
        watch.learn(1.0, nan)
    far = 4 * (0.9 * 0.1 / 400) ** 0.5
    kinds = []
    for share in (0.9 + 0.99 * far, 0.9 - 1.01 * far, 0.9 - 0.51 * far, 0.9 - 0.49 * far, nan, 1.0):
        assert watch.due
        watch.cover(np.array([share]), 500)
        kinds.append([each.kind for each in watch.drain()])
    assert kinds == [[], ["coverage off"], [], ["coverage back"], [], ["coverage off"]]
    assert watch.alarms() == [COVERAGE]
    assert {ERRORS, INTERVALS, COVERAGE} == {"errors", "intervals", "coverage"}
