"""Saved intervals: restored ones continue bit for bit, and a refused state changes nothing and names the field."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.intervals import Intervals


def learnt(y_dim=2, steps=30, memory=40):
    intervals = Intervals(y_dim, memory=memory)
    rng = np.random.default_rng(1)
    for _ in range(steps):
        intervals.learn(np.zeros(y_dim), rng.standard_normal(y_dim))
    return intervals


def altered(name, change):
    saved = learnt().save()
    saved[name] = change(saved[name])
    return saved


def first(value):
    def change(values):
        values.reshape(-1)[0] = value
        return values

    return change


def last(value):
    def change(values):
        values.reshape(-1)[-1] = value
        return values

    return change


def without(name):
    return {key: values for key, values in learnt().save().items() if key != name}


BAD = [
    (without("scales"), "saved scales: got nothing"),
    (without("seen"), "saved seen: got nothing"),
    ({**learnt().save(), "extra": np.zeros(2)}, "saved extra: got an unknown field"),
    ([1, 2], "saved: got list"),
    (learnt(y_dim=3).save(), "saved scales: got shape (3, 5)"),
    (learnt(memory=50).save(), "saved scores: got shape (2, 5, 50)"),
    (altered("debts", list), "saved debts: got list"),
    (altered("debts", np.float32), "saved debts: got an array of shape (2, 3) and type float32"),
    (altered("seen", np.float64), "saved seen: got an array of shape (2,) and type float64"),
    (altered("seen", first(-1)), "saved seen: got -1"),
    (altered("seen", first(31)), "saved weights: got"),
    (altered("weights", first(0.0)), "saved weights: got 0"),
    (altered("scales", first(np.nan)), "saved scales: got nan"),
    (altered("scales", last(-1e-9)), "saved scales: got -1e-09"),
    (altered("scores", first(1000.5)), "saved scores: got 1000.5"),
    (altered("scores", last(np.inf)), "saved scores: got inf"),
    (altered("debts", last(np.nan)), "saved debts: got nan"),
    (altered("losses", last(-0.5)), "saved losses: got -0.5"),
    (altered("losses", first(np.inf)), "saved losses: got inf"),
    (altered("size", first(np.nan)), "saved size: got nan"),
    (altered("largest", first(np.inf)), "saved largest: got inf"),
]


@pytest.mark.parametrize(("saved", "words"), BAD)
def test_a_refused_state_names_the_field_and_changes_nothing(saved, words):
    intervals = Intervals(2, memory=40)
    intervals.learn([0.0, 0.0], [1.0, -2.0])
    before, bounds = intervals.save(), intervals.bounds([0.0, 0.0])
    with pytest.raises(nc.InvalidInput) as caught:
        intervals.restore(saved)
    assert words in str(caught.value)
    for name, values in intervals.save().items():
        np.testing.assert_array_equal(values, before[name])
    np.testing.assert_array_equal(intervals.bounds([0.0, 0.0]), bounds)


def test_scores_in_empty_places_are_refused():
    saved = learnt(steps=10).save()
    saved["scores"][0, 0, -1] = 0.5
    with pytest.raises(nc.InvalidInput, match=r"saved scores: got 0\.5 in a place that is empty"):
        Intervals(2, memory=40).restore(saved)


@pytest.mark.parametrize("steps", [0, 1, 10, 21, 22, 200])
def test_restored_intervals_continue_bit_for_bit(steps):
    r = np.random.default_rng(2).standard_normal((100, 2))
    whole, again = learnt(steps=steps), Intervals(2, memory=40)
    again.bounds([0.0, 0.0])
    again.restore(whole.save())
    np.testing.assert_array_equal(again.bounds([0.0, 0.0]), whole.bounds([0.0, 0.0]))
    np.testing.assert_array_equal(again.replay(0.0 * r, r), whole.replay(0.0 * r, r))


def test_what_was_saved_and_restored_is_a_copy():
    intervals = learnt()
    saved = intervals.save()
    before = {name: values.copy() for name, values in saved.items()}
    again = Intervals(2, memory=40)
    again.restore(saved)
    again.learn([0.0, 0.0], [1.0, 2.0])
    intervals.learn([0.0, 0.0], [1.0, 2.0])
    for name, values in saved.items():
        np.testing.assert_array_equal(values, before[name])
