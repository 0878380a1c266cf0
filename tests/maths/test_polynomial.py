"""Compiled polynomial weights: against the rule of that name, its regret bound, and changes that must not matter."""

import numpy as np
import pytest

from nashcast.maths.ml_poly import MLPoly
from nashcast.maths.polynomial import fill_polynomial_weights, learn_polynomial


def run(forecasts, targets, awake=None):
    """Weights at every step."""
    K = forecasts.shape[1]
    awake = np.ones(forecasts.shape, dtype=bool) if awake is None else awake
    total, squares, bound, weights = np.zeros(K), np.zeros(K), 0.0, np.empty(forecasts.shape)
    for t, y in enumerate(targets):
        fill_polynomial_weights(total, squares, bound, awake[t], weights[t])
        mixed = weights[t] @ forecasts[t]
        bound = learn_polynomial(total, squares, bound, forecasts[t], y, mixed, awake[t])
    return weights


def experts(seed, steps=300, count=5):
    rng = np.random.default_rng(seed)
    targets = np.cumsum(rng.standard_normal(steps))
    return targets[:, None] + rng.standard_normal((steps, count)) * np.linspace(0.2, 2.0, count), targets


@pytest.mark.parametrize("sleepers", [False, True])
def test_it_is_the_rule_of_that_name(sleepers):
    forecasts, targets = experts(1)
    awake = np.random.default_rng(2).random(forecasts.shape) > (0.3 if sleepers else -1.0)
    awake[:, 0] |= ~awake.any(axis=1)
    rule, expected = MLPoly(5), []
    for t in range(len(targets)):
        expected.append(rule.weights(awake[t]))
        rule.learn(forecasts[t][:, None], targets[t : t + 1], awake[t])
    np.testing.assert_allclose(run(forecasts, targets, awake), expected, rtol=1e-9, atol=1e-12)


def test_regret_stays_within_its_bound_when_the_target_is_chosen_against_it():
    rng = np.random.default_rng(5)
    for hostile in range(20):
        forecasts = rng.uniform(-1, 1, (400, 4))
        total, squares, bound, awake = np.zeros(4), np.zeros(4), 0.0, np.ones(4, dtype=bool)
        gains, weights, first = np.zeros((400, 4)), np.empty(4), 0.0
        for t in range(400):
            fill_polynomial_weights(total, squares, bound, awake, weights)
            mixed = weights @ forecasts[t]
            y = forecasts[t, (hostile + t // 100) % 4] if hostile % 2 else (-1.0 if mixed > 0 else 1.0)
            gains[t] = 2.0 * (mixed - y) * (mixed - forecasts[t])
            bound = learn_polynomial(total, squares, bound, forecasts[t], y, mixed, awake)
            first = first or bound
        D, B = bound**2 + (gains**2).sum(axis=0), np.abs(gains).max()
        assert np.all(gains.sum(axis=0) <= B + np.sqrt(D * np.log2(D / first**2).sum()))


def test_units_and_the_order_of_experts_do_not_matter():
    forecasts, targets = experts(3)
    weights = run(forecasts, targets)
    np.testing.assert_allclose(run(1e-60 * forecasts, 1e-60 * targets), weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run(1e70 * forecasts, 1e70 * targets), weights, rtol=1e-9, atol=1e-12)
    order = np.array([3, 0, 4, 1, 2])
    np.testing.assert_allclose(run(forecasts[:, order], targets), weights[:, order], rtol=1e-9, atol=1e-12)
    assert weights[0] == pytest.approx(np.full(5, 0.2))
    assert weights[-1].argmax() == 0
