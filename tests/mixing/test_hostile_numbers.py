"""No number an expert or a target can be breaks an expert rule: weights stay finite, and it soon learns again.

pytest turns warnings into errors, so these sequences also show that no rule warns.
"""

import os

import numpy as np
import pytest

from nashcast.mixing import boa, log_score, ml_poly
from nashcast.mixing.aggregation import RULES, aggregation_rule
from nashcast.mixing.errors import error_scale

EXPERTS, HOSTILE, SANE, JUDGED = 4, 12, 200, 50


def hostile_number(rng, largest):
    kind = rng.integers(6)
    if kind < 2:
        return (np.nan, np.inf * rng.choice([-1.0, 1.0]))[kind]
    return rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(0.0, largest)


def sequence(seed, before, after):
    """Forecasts (steps, experts), targets, which steps are hostile, and the best expert, whose errors are 1/10.

    Hostile steps have a target up to ±1e15, one forecast up to ±1e100, NaN or infinite, or both.
    """
    rng = np.random.default_rng(seed)
    steps, best, kind = before + HOSTILE + after, rng.integers(EXPERTS), rng.integers(3)
    targets = np.cumsum(rng.standard_normal(steps))
    noise = np.where(np.arange(EXPERTS) == best, 0.1, 1.0)
    forecasts = targets[:, None] + noise * rng.standard_normal((steps, EXPERTS))
    hostile = (np.arange(steps) >= before) & (np.arange(steps) < before + HOSTILE)
    for t in np.flatnonzero(hostile):
        if kind != 1 and rng.random() < 0.75:
            targets[t] = rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(0.0, 15.0)
        if kind != 0:
            forecasts[t, rng.integers(EXPERTS)] = hostile_number(rng, 100.0)
    return forecasts, targets, hostile, best


def stays_finite(name, seeds):
    for seed in seeds:
        rule = aggregation_rule(name, EXPERTS)
        forecasts, targets, _, _ = sequence(seed, before=int(seed % 4), after=2)
        for f, y in zip(forecasts[:, :, None], targets[:, None], strict=True):
            weights = rule.weights(None, f)
            assert np.isfinite(weights).all()
            assert (weights[~np.isfinite(f[:, 0])] == 0.0).all()
            rule.learn(f, y)
        assert np.isfinite(rule.weights()).all()
        assert rule.weights().sum() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", RULES)
def test_weights_stay_finite(name):
    stays_finite(name, range(500))


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_weights_stay_finite_on_thousands_of_sequences(name):
    """NASHCAST_SEQUENCES=10000 runs ten thousand of each."""
    stays_finite(name, range(500, 500 + int(os.environ.get("NASHCAST_SEQUENCES", "2000"))))


def judged_errors(name, seed):
    """Mean squared errors in the last sane steps: of a rule that saw the hostile steps, one that did not, the mean."""
    rng = np.random.default_rng(seed)
    forecasts, targets, hostile, _ = sequence(seed, before=int(rng.choice([0, 1, 5, 30, 100])), after=SANE)
    rule, spared, errors = aggregation_rule(name, EXPERTS), aggregation_rule(name, EXPERTS), []
    for t, (f, y) in enumerate(zip(forecasts[:, :, None], targets[:, None], strict=True)):
        if t >= len(targets) - JUDGED:
            equal = np.full(EXPERTS, 1.0 / EXPERTS)
            errors.append([((w @ f - y) ** 2).item() for w in (rule.weights(None, f), spared.weights(None, f), equal)])
        rule.learn(f, y)
        if not hostile[t]:
            spared.learn(f, y)
    return np.mean(errors, axis=0)


def recovers(name, seeds):
    """Each is within 1.1 times a rule that was spared, or half of the error of equal weights; 95 % within a quarter."""
    found = np.array([judged_errors(name, seed) for seed in seeds])
    hit, spared, equal = found.T
    assert (hit <= np.maximum(1.1 * spared, 0.5 * equal)).all()
    assert np.mean(hit <= np.maximum(1.1 * spared, 0.25 * equal)) >= 0.95
    assert np.median(hit / spared) <= 1.1


@pytest.mark.parametrize("name", RULES)
def test_a_rule_learns_again_within_200_sane_steps(name):
    recovers(name, range(10))


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_a_rule_learns_again_within_200_sane_steps_on_many_sequences(name):
    recovers(name, range(10, 310))


@pytest.mark.parametrize("name", [name for name in RULES if name != "paper"])
@pytest.mark.parametrize("value", [1e99, 1e15])
def test_one_hostile_forecast_or_nine_targets_after_a_hundred_steps(name, value):
    """The best expert blows up once, or nine observations are wrong: 200 steps later it has most weight again."""
    rng = np.random.default_rng(1)
    rule = aggregation_rule(name, 3)
    for t in range(309):
        y = rng.standard_normal(1)
        f = y + np.array([[0.1], [2.0], [2.0]]) * rng.standard_normal((3, 1))
        if value == 1e99 and t == 100:
            f[0] = value
        if value == 1e15 and 100 <= t < 109:
            y = y + value
        rule.learn(f, y)
    assert rule.weights()[0] > 0.9


@pytest.mark.parametrize("name", [name for name in RULES if name != "paper"])
def test_an_expert_that_diverges_for_good_loses_its_weight(name):
    rng = np.random.default_rng(2)
    rule = aggregation_rule(name, 3)
    for t in range(160):
        y = rng.standard_normal(1)
        f = y + np.array([[0.5], [1.0], [1.0]]) * rng.standard_normal((3, 1))
        if t >= 60:
            f[0] = 1e50
        rule.learn(f, y)
    assert abs(rule.weights()[0]) < 0.45
    assert abs(rule.weights()[1:].sum()) > 0.55


def test_many_columns_at_once_stay_finite_and_put_most_weight_on_the_best():
    """10,000 sequences as columns of the functional rules."""
    C, rng = 10_000, np.random.default_rng(3)
    best = rng.integers(EXPERTS, size=C)
    noise = np.where(np.arange(EXPERTS) == best[:, None], 0.1, 1.0)
    states = {boa: boa.init(C, EXPERTS), ml_poly: ml_poly.init(C, EXPERTS), log_score: log_score.init(C, EXPERTS)}
    scale, prior = error_scale.init(C), np.full(EXPERTS, -np.log(EXPERTS))
    before = rng.choice([0, 1, 5, 30], size=C)
    for t in range(30 + HOSTILE + SANE):
        y = rng.standard_normal(C)
        f = y[:, None] + noise * rng.standard_normal((C, EXPERTS))
        hostile = (t >= before) & (t < before + HOSTILE)
        y = np.where(hostile & (rng.random(C) < 0.5), rng.choice([-1, 1], C) * 10.0 ** rng.uniform(0, 15, C), y)
        blown = hostile[:, None] & (np.arange(EXPERTS) == rng.integers(EXPERTS, size=C)[:, None])
        size = np.where(rng.random(C) < 0.3, np.nan, rng.choice([-1, 1], C) * 10.0 ** rng.uniform(0, 100, C))
        f = np.where(blown, size[:, None], f)
        awake, errors = np.isfinite(f), None
        weights = {rule: rule.weights(state, awake) for rule, state in states.items() if rule is not log_score}
        weights[log_score] = log_score.weights(states[log_score], prior, awake)
        errors = error_scale.observe(scale, f, y, awake)
        for rule, state in states.items():
            w = weights[rule]
            assert np.isfinite(w).all()
            np.testing.assert_allclose(w.sum(axis=1), 1.0, atol=1e-9)
            speeds = {"memory": 0.99, "scale_memory": 0.95} if rule is log_score else {}
            rule.learn(state, errors, w, **speeds)
    on_best = {rule: w[np.arange(C), best] for rule, w in weights.items()}
    assert (on_best[log_score] > 0.99).all()
    for rule in (boa, ml_poly):
        assert np.quantile(on_best[rule], 0.01) > 0.7
        assert np.median(on_best[rule]) > 0.9
