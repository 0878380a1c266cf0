"""How long an agent may take: always the same, or median + k·MAD of how long it took."""

from statistics import median

import numpy as np
import pytest

from nashcast import InvalidInput
from nashcast.remote.hub.deadlines import Fixed, Learned


def told(times, **options):
    deadlines = Learned(**options)
    for time in times:
        deadlines.took("a", time)
    return deadlines


def test_a_fixed_deadline_stays():
    deadlines = Fixed(0.7)
    deadlines.took("a", 5.0)
    deadlines.missed("a")
    assert deadlines.of("a") == deadlines.of("anybody") == 0.7


def test_until_it_is_known_an_agent_has_the_longest_time():
    for answers in range(Learned.MINIMUM):
        assert told([0.001] * answers).of("a") == 5.0
    assert told([0.001] * Learned.MINIMUM).of("a") == 0.25
    assert told([0.001] * Learned.MINIMUM).of("b") == 5.0


@pytest.mark.parametrize("count", [5, 6, 99, 100])
def test_it_is_the_median_and_k_times_the_median_distance_from_it(count):
    times = np.random.default_rng(count).uniform(1.0, 3.0, count).tolist()
    middle = median(times)
    expected = middle + 3.0 * median([abs(time - middle) for time in times])
    deadlines = told(times, k=3.0, least=1e-3, most=1e3)
    assert deadlines.of("a") == max(expected, 1.5 * times[-1])
    deadlines.took("a", middle)
    assert deadlines.of("a") != 1e3


def test_old_answers_are_forgotten():
    deadlines = told([9.0] * 50 + [1.0] * 60, window=20, least=0.1, most=100.0)
    assert deadlines.of("a") == 1.5
    deadlines = told([1.0] * 100 + [9.0] * 200, least=0.1, most=100.0)
    assert deadlines.of("a") == 13.5


def test_it_stays_within_bounds():
    assert told([1e-6] * 9, least=0.4).of("a") == 0.4
    assert told([50.0] * 9, most=8.0).of("a") == 8.0
    assert told([1.0] * 9, least=3.0, most=2.0).of("a") == 3.0


def test_who_has_become_slow_is_found_again_but_does_not_hold_up_the_others():
    deadlines = told([0.1] * 20, least=0.25, most=64.0)
    waited = []
    for _ in range(128):
        waited.append(deadlines.of("a"))
        deadlines.missed("a")
    longer = [i for i, time in enumerate(waited) if time > 0.25]
    assert longer == [1, 2, 4, 8, 16, 32, 64]
    assert [waited[i] for i in longer] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    assert sum(waited) < 3 * 0.25 * len(waited)  # one that hangs
    assert deadlines.of("b") == 64.0
    deadlines.took("a", 2.0)
    assert deadlines.of("a") == 3.0  # now that it is known to be slow
    deadlines.took("a", 0.1)
    assert deadlines.of("a") == 0.25


@pytest.mark.parametrize(("options", "words"), [
    ({"k": 0.0}, "k: got 0. Pass a number > 0."),
    ({"least": -1.0}, "least: got -1. Pass a number > 0."),
    ({"most": 0.0}, "most: got 0. Pass a number > 0."),
    ({"window": 4}, "window: got int 4. Pass a whole number ≥ 5."),
])  # fmt: skip
def test_bad_settings(options, words):
    with pytest.raises(InvalidInput) as caught:
        Learned(**options)
    assert words in str(caught.value)
