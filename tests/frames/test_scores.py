"""Scores against their definitions."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from nashcast.frames.scores import CRPS_LEVELS, crps, naive_scale, pinball, quantiles


def test_pinball_by_hand():
    found = pinball(np.array([10.0]), np.array([[8.0, 13.0]]), [0.1, 0.9])
    np.testing.assert_allclose(found, [[0.1 * 2.0, 0.1 * 3.0]])


def test_crps_of_a_normal_is_near_the_closed_form():
    normal = NormalDist(2.0, 3.0)
    levels = (np.arange(2000) + 0.5) / 2000
    said = np.array([normal.inv_cdf(level) for level in levels])
    z = (4.5 - 2.0) / 3.0
    exact = 3.0 * (z * (2 * NormalDist().cdf(z) - 1) + 2 * NormalDist().pdf(z) - 1 / np.sqrt(np.pi))
    np.testing.assert_allclose(crps(np.array(4.5), said, levels), exact, rtol=1e-3)
    coarse = np.array([normal.inv_cdf(level) for level in CRPS_LEVELS])
    np.testing.assert_allclose(crps(np.array(4.5), coarse, CRPS_LEVELS), exact, rtol=0.06)


def test_quantiles_are_exact_at_the_coverages_and_normal_between_them():
    coverages = (0.9, 0.5)
    z = {c: NormalDist().inv_cdf(0.5 + c / 2) for c in coverages}
    middle, halves = np.array([[7.0]]), np.array([[[2.0 * z[c]]] for c in coverages])
    levels = np.array([0.05, 0.25, 0.4, 0.5, 0.75, 0.95, 0.99])
    want = [NormalDist(7.0, 2.0).inv_cdf(level) for level in levels]
    np.testing.assert_allclose(quantiles(middle, halves, coverages, levels)[0, 0], want, rtol=1e-12)


def test_quantiles_never_cross_and_infinite_bounds_stay_infinite():
    middle, halves = np.zeros((1, 1)), np.array([[[np.inf]], [[np.inf]]])
    found = quantiles(middle, halves, (0.8, 0.9), np.array([0.1, 0.5, 0.9]))[0, 0]
    assert found.tolist() == [-np.inf, 0.0, np.inf]


def test_scale_of_mase_is_the_mean_seasonal_change():
    y = np.array([[1.0], [5.0], [2.0], [7.0], [np.nan], [6.0]])
    assert naive_scale(y, 2)[0] == np.mean([1.0, 2.0, 1.0])
