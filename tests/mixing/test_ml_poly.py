"""ML-Poly over columns: against the plain loop, its regret bound, and changes that must not matter."""

import numpy as np
import pytest

from nashcast.mixing import ml_poly
from nashcast.mixing.aggregation import aggregation_rule
from nashcast.mixing.errors import error_scale
from support import plain_rules as plain


def run(forecasts, targets, awake=None, labelled=None):
    """Weights at every step, (steps, columns, experts).   forecasts: the same shape.   targets: (steps, columns)."""
    T, C, K = forecasts.shape
    state, scale, seen = ml_poly.init(C, K), error_scale.init(C), np.empty(forecasts.shape)
    for t in range(T):
        here = None if awake is None else awake[t]
        seen[t] = ml_poly.weights(state, here)
        errors = error_scale.observe(scale, forecasts[t], targets[t], here, None if labelled is None else labelled[t])
        ml_poly.learn(state, errors, seen[t])
    return seen


def experts(seed, steps=300, columns=1, count=5):
    rng = np.random.default_rng(seed)
    targets = np.cumsum(rng.standard_normal((steps, columns)), axis=0)
    noise = rng.standard_normal((steps, columns, count)) * np.linspace(0.2, 2.0, count)
    return targets[:, :, None] + noise, targets


@pytest.mark.parametrize("sleepers", [False, True])
def test_each_column_equals_the_plain_loop_over_its_labelled_steps(sleepers):
    forecasts, targets = experts(1, columns=3)
    rng = np.random.default_rng(2)
    awake = rng.random(forecasts.shape) > (0.3 if sleepers else -1.0)
    awake[:, :, 0] |= ~awake.any(axis=2)
    labelled = rng.random(targets.shape) > 0.2
    seen = run(np.where(awake, forecasts, np.nan), np.where(labelled, targets, np.nan), awake, labelled)
    for c in range(3):
        known = labelled[:, c]
        f, y = forecasts[known, c, :, None], targets[known, c, None]
        wanted = plain.ml_poly(f.tolist(), y.tolist(), awake[known, c].tolist())
        np.testing.assert_allclose(seen[known, c], wanted, rtol=1e-9, atol=1e-12)


def test_regret_stays_within_its_bound_when_the_target_is_chosen_against_it():
    rng = np.random.default_rng(5)
    for hostile in range(20):
        forecasts = rng.uniform(-1, 1, (400, 1, 4))
        state, scale = ml_poly.init(1, 4), error_scale.init(1)
        gains, first = np.zeros((400, 4)), 0.0
        for t in range(400):
            f, weights = forecasts[t], ml_poly.weights(state)
            mixed = (weights @ f[0]).item()
            y = f[0, (hostile + t // 100) % 4] if hostile % 2 else (-1.0 if mixed > 0 else 1.0)
            gains[t] = 2.0 * (mixed - y) * (mixed - f[0])
            ml_poly.learn(state, error_scale.observe(scale, f, np.array([y])), weights)
            first = first or state.bound.item()
        D, B = state.bound.item() ** 2 + (gains**2).sum(axis=0), np.abs(gains).max()
        assert np.all(gains.sum(axis=0) <= B + np.sqrt(D * np.log2(D / first**2).sum()))


def test_units_and_the_order_of_experts_do_not_matter():
    forecasts, targets = experts(3)
    weights = run(forecasts, targets)
    np.testing.assert_allclose(run(1e-60 * forecasts, 1e-60 * targets), weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(run(1e70 * forecasts, 1e70 * targets), weights, rtol=1e-9, atol=1e-12)
    order = np.array([3, 0, 4, 1, 2])
    np.testing.assert_allclose(run(forecasts[:, :, order], targets), weights[:, :, order], rtol=1e-9, atol=1e-12)
    assert weights[0, 0] == pytest.approx(np.full(5, 0.2))
    assert weights[-1, 0].argmax() == 0


def test_prior_weights_hold_until_an_expert_has_gained_and_scale_the_others_after():
    forecasts, targets = experts(4, steps=50)
    prior, awake = np.array([0.5, 0.2, 0.1, 0.1, 0.1]), np.array([True, True, False, True, True])
    state, scale = ml_poly.init(1, 5), error_scale.init(1)
    np.testing.assert_allclose(ml_poly.weights(state, None, prior)[0], prior)
    np.testing.assert_allclose(ml_poly.weights(state, awake, prior)[0], prior * awake / 0.9)
    assert (ml_poly.weights(state, np.zeros(5, dtype=bool), prior) == 0.0).all()
    for t in range(50):
        weights = ml_poly.weights(state)
        ml_poly.learn(state, error_scale.observe(scale, forecasts[t], targets[t]), weights)
    equal = ml_poly.weights(state)[0]
    assert (equal > 0.0).sum() > 1
    np.testing.assert_allclose(ml_poly.weights(state, None, prior)[0], equal * prior / (equal @ prior), rtol=1e-12)


def test_the_rounding_of_equal_experts_is_no_evidence():
    """Experts that say the same but for the last digit keep equal weights until one of them is better."""
    rng = np.random.default_rng(0)
    rule = aggregation_rule("ml-poly", 3, 1)
    for t, target in enumerate(rng.standard_normal(60)):
        if t == 20:
            np.testing.assert_allclose(rule.weights(), np.full(3, 1 / 3))
        same = target + 1.0
        better = same - 0.5 if t >= 20 else same * (1.0 - 3e-16)
        rule.learn(np.array([[same], [same * (1.0 + 3e-16)], [better]]), [target])
    assert rule.weights()[2] > 0.9
