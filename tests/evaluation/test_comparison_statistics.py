"""Statistics over streams: against enumeration, SciPy, the definition, and under transformations."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import nashcast as nc
from nashcast.evaluation.statistics.critical_difference import mean_ranks, nemenyi, studentised_range
from nashcast.evaluation.statistics.ratio_interval import geometric_mean_interval
from nashcast.evaluation.statistics.signed_rank import average_ranks, holm, signed_rank_p


def generator(seed=0):
    return np.random.default_rng(seed)


def enumerated(differences):
    """All choices of signs, one by one."""
    d = [x for x in differences if x != 0]
    ranks = stats.rankdata(np.abs(d))
    seen = sum(rank for rank, x in zip(ranks, d, strict=True) if x > 0)
    sums = [
        sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign) for signs in product([0, 1], repeat=len(d))
    ]
    lower, upper = sum(s <= seen for s in sums), sum(s >= seen for s in sums)
    return min(1.0, 2 * min(lower, upper) / len(sums))


@pytest.mark.parametrize("seed", range(6))
def test_signed_ranks_are_those_of_all_choices_of_signs(seed):
    rng = generator(seed)
    smooth = rng.standard_normal(9) + 0.3
    tied = rng.integers(-3, 4, size=10).astype(float)
    for d in (smooth, tied):
        assert signed_rank_p(d) == pytest.approx(enumerated(d), rel=1e-12)
    many = rng.standard_normal(40) + 0.2
    assert signed_rank_p(many) == pytest.approx(stats.wilcoxon(many, method="exact").pvalue, rel=1e-9)


def test_signed_ranks_under_transformations():
    d = generator(2).standard_normal(25) + 0.4
    p = signed_rank_p(d)
    assert signed_rank_p(-d) == pytest.approx(p, rel=1e-12)
    assert signed_rank_p(1e6 * d[::-1]) == pytest.approx(p, rel=1e-12)
    assert signed_rank_p(np.append(d, [0.0, 0.0])) == p
    assert signed_rank_p(d**3) == pytest.approx(p, rel=1e-12)  # ranks alone count
    d[np.argmax(np.abs(d))] *= np.inf
    assert signed_rank_p(d) == pytest.approx(p, rel=1e-12)
    assert signed_rank_p(np.zeros(5)) == 1.0
    assert signed_rank_p(np.ones(6)) == pytest.approx(2 / 64)
    with pytest.raises(nc.InvalidInput, match="differences: got NaN"):
        signed_rank_p(np.array([1.0, np.nan]))


def test_signed_ranks_reject_as_often_as_they_say():
    rng = generator(3)
    rejected = np.mean([signed_rank_p(rng.standard_normal(20)) <= 0.05 for _ in range(2000)])
    assert 0.035 < rejected <= 0.06


def test_ranks_are_scipys():
    values = generator().integers(0, 5, size=30).astype(float)
    np.testing.assert_array_equal(average_ranks(values), stats.rankdata(values))
    assert average_ranks(np.array([np.inf, 1.0, np.inf])).tolist() == [2.5, 1.0, 2.5]


def test_holm_by_its_definition():
    p = [0.02, 0.5, 0.004, 0.03, 0.02]
    for level in (0.01, 0.05, 0.09, 0.12, 0.6):
        # Step down: from the smallest on, reject while p is below level / (those left).
        rejected = set()
        for place, i in enumerate(np.argsort(p, kind="stable")):
            if p[i] > level / (len(p) - place):
                break
            rejected.add(int(i))
        assert {i for i, q in enumerate(holm(p)) if q <= level} == rejected
    assert holm([]) == []
    with pytest.raises(nc.InvalidInput, match="p_values"):
        holm([0.1, np.nan])


@pytest.mark.parametrize("count", [2, 3, 10, 30])
@pytest.mark.parametrize("level", [0.1, 0.05, 0.01])
def test_the_range_of_normal_variables(count, level):
    reference = stats.studentized_range.ppf(1 - level, count, np.inf)
    assert studentised_range(level, count) == pytest.approx(reference, rel=1e-6)
    if count == 2:  # the difference of two has variance 2
        assert studentised_range(level, 2) == pytest.approx(np.sqrt(2) * stats.norm.ppf(1 - level / 2), rel=1e-6)


def test_the_critical_difference_of_a_published_example():
    # Demšar (2006), section 3.2.2: four classifiers on fourteen data sets, q = 2.569.
    assert nemenyi(14, 4) == pytest.approx(1.25, abs=0.005)


def test_friedman_is_scipys_in_the_form_of_iman_and_davenport():
    errors = generator(5).standard_normal((12, 4)) + np.array([0.0, 0.3, 0.6, 0.2])
    found = mean_ranks(errors)
    chi2 = stats.friedmanchisquare(*errors.T).statistic
    F = (12 - 1) * chi2 / (12 * 3 - chi2)
    assert found.p == pytest.approx(stats.f.sf(F, 3, 33), rel=1e-9)
    np.testing.assert_allclose(found.ranks, stats.rankdata(errors, axis=1).mean(axis=0))
    tied = np.round(errors)
    chi2 = stats.friedmanchisquare(*tied.T).statistic
    assert mean_ranks(tied).p == pytest.approx(stats.f.sf(11 * chi2 / (36 - chi2), 3, 33), rel=1e-9)


def test_ranks_under_transformations():
    errors = generator(6).random((9, 5))
    found = mean_ranks(errors)
    order = [3, 0, 4, 1, 2]
    moved = mean_ranks((errors * generator(7).random((9, 1)))[::-1, order])  # every stream in its own units
    np.testing.assert_allclose(moved.ranks, found.ranks[order])
    assert moved.p == pytest.approx(found.p, rel=1e-9)
    assert mean_ranks(np.ones((4, 3))).p == 1.0
    same = mean_ranks(np.tile([1.0, 2.0, np.inf], (5, 1)))
    assert same.ranks.tolist() == [1.0, 2.0, 3.0]
    assert same.p == 0.0
    for wrong in (np.ones((1, 3)), np.ones((3, 1)), np.array([[1.0, np.nan], [1.0, 2.0]])):
        with pytest.raises(nc.InvalidInput, match="errors: got"):
            mean_ranks(wrong)


def test_the_interval_is_the_bootstrap_by_its_definition():
    ratios = np.exp(generator(8).standard_normal(15) * 0.2)
    found = geometric_mean_interval(ratios, generator=generator(1), resamples=500, level=0.9)
    assert found.mean == pytest.approx(stats.gmean(ratios))
    rng, means = generator(1), []
    for drawn in rng.integers(15, size=(500, 15)):
        means.append(np.prod([ratios[i] for i in drawn]) ** (1 / 15))
    assert found.low == pytest.approx(sorted(means)[25])
    assert found.high == pytest.approx(sorted(means)[500 - 26])
    turned = geometric_mean_interval(1 / ratios, generator=generator(1), resamples=500, level=0.9)
    np.testing.assert_allclose(turned, (1 / found.mean, 1 / found.high, 1 / found.low))


def test_the_interval_covers_as_often_as_it_says():
    rng = generator(9)
    hits = 0
    for _ in range(400):
        low, high = geometric_mean_interval(np.exp(0.1 * rng.standard_normal(40)), generator=rng, resamples=400)[1:]
        hits += low <= 1.0 <= high
    assert 0.89 < hits / 400 < 0.985


def test_intervals_of_odd_ratios():
    assert geometric_mean_interval(np.array([0.7]), generator=generator()) == pytest.approx((0.7, 0.7, 0.7))
    found = geometric_mean_interval(np.append(np.ones(99), np.inf), generator=generator())
    assert found.mean == found.high == np.inf
    assert found.low == 1.0
    for wrong in (np.array([]), np.array([1.0, 0.0]), np.array([np.nan])):
        with pytest.raises(nc.InvalidInput, match="ratios: got"):
            geometric_mean_interval(wrong, generator=generator())
    with pytest.raises(nc.InvalidInput, match=r"level: got 1\.5"):
        geometric_mean_interval(np.ones(3), generator=generator(), level=1.5)
