"""Diebold–Mariano: against a plain loop, against SciPy, and by its size when nothing differs."""

import numpy as np
import pytest
from scipy import stats

import nashcast as nc
from nashcast.evaluation.statistics.significance import diebold_mariano, long_run_variance, student_p


def plain(first, second):
    """The definition, term by term."""
    T = len(first)
    d = [a - b for a, b in zip(first, second, strict=True)]
    mean = sum(d) / T
    L = int(round(T ** (1 / 3), 9))
    omega = sum((x - mean) ** 2 for x in d) / T
    for lag in range(1, L + 1):
        gamma = sum((d[t] - mean) * (d[t - lag] - mean) for t in range(lag, T)) / T
        omega += 2 * (1 - lag / (L + 1)) * gamma
    statistic = mean / (omega / T) ** 0.5
    return statistic, 2 * stats.t.sf(abs(statistic), T - 1)


@pytest.mark.parametrize("steps", [10, 27, 64, 200, 1000])
def test_equals_the_plain_loop(steps):
    rng = np.random.default_rng(steps)
    first, second = rng.standard_normal(steps) ** 2, 1.1 * rng.standard_normal(steps) ** 2
    np.testing.assert_allclose(diebold_mariano(first, second), plain(first.tolist(), second.tolist()), rtol=1e-9)


@pytest.mark.parametrize("freedom", [1, 2, 5, 30, 160, 2000])
def test_students_tail_is_scipys(freedom):
    for t in (0.0, 1e-4, 0.3, 1.0, 1.96, 4.0, 12.0, 40.0, -2.5):
        assert student_p(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("correlation", [0.0, 0.3])
@pytest.mark.parametrize("steps", [160, 1000])
def test_its_size_where_nothing_differs_and_its_power_where_something_does(steps, correlation):
    rng = np.random.default_rng(7)
    found = {0.0: 0, 0.3: 0}
    runs = 1500
    for _ in range(runs):
        noise = rng.standard_normal(steps + 1)
        d = noise[1:] + correlation * noise[:-1]
        base = rng.standard_normal(steps) ** 2
        for shift in found:
            found[shift] += diebold_mariano(base + d + shift, base)[1] < 0.05
    assert 0.03 < found[0.0] / runs < 0.085  # nominal 5 %, a little more on short series, as is known of it
    assert found[0.3] / runs > 0.75
    # Plain t-tests, which take the differences for independent, are no substitute once they are not.
    if correlation and steps == 1000:
        naive = 0
        for _ in range(runs):
            noise = rng.standard_normal(steps + 1)
            naive += stats.ttest_1samp(noise[1:] + 0.9 * noise[:-1], 0.0).pvalue < 0.05
        assert naive / runs > 0.1


def test_swapping_turns_the_sign_and_units_change_nothing():
    rng = np.random.default_rng(3)
    first, second = rng.standard_normal((2, 300)) ** 2
    t, p = diebold_mariano(first, second)
    np.testing.assert_allclose(diebold_mariano(second, first), (-t, p))
    np.testing.assert_allclose(diebold_mariano(1e6 * first, 1e6 * second), (t, p), rtol=1e-9)


def test_edges():
    same = np.arange(20.0)
    assert diebold_mariano(same, same) == (0.0, 1.0)
    assert diebold_mariano(same + 1, same)[1] == 0.0  # always worse by the same
    assert np.isnan(diebold_mariano(np.ones(9), np.zeros(9))[1])
    assert np.isnan(diebold_mariano(np.append(same, np.inf), np.append(same, 0.0))[1])
    assert long_run_variance(np.tile([1.0, -1.0], 50)) >= 0.0
    with pytest.raises(nc.InvalidInput, match=r"others: got shape \(3,\)"):
        diebold_mariano(same, np.ones(3))
