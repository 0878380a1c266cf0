"""Weights by log score: the definition written out, and what must not matter."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.maths.bernstein import fill_bernstein_weights, learn_gains
from nashcast.maths.log_score import CAP, FREEDOM, GROWTH, PRECISION, LogScore, fill_weights, learn_scores


def random_experts(seed, steps=40, experts=5, spread=1.0):
    rng = np.random.default_rng(seed)
    targets = np.cumsum(rng.standard_normal(steps))
    return targets[:, None] + spread * rng.uniform(0.5, 1.0, experts) * rng.standard_normal((steps, experts)), targets


def fadings(memory, scale_memory, steps):
    young = 1.0 / (1.0 + np.arange(steps) / GROWTH)
    return np.minimum(memory, 1.0 - young / 5.0), np.minimum(scale_memory, 1.0 - young)


def by_definition(forecasts, targets, reach, memory, scale_memory):
    """Scores and fading squares, each as one sum over all steps; no score reaches the cap."""
    steps, experts = forecasts.shape
    fading, scale_fading = fadings(memory, scale_memory, steps)

    def faded(values, factors, t):
        return sum(values[s] * np.prod(factors[s + 1 : t + 1]) for s in range(t + 1))

    squares = (forecasts - targets[:, None]) ** 2 / reach
    logs = np.empty((steps, experts))
    for t in range(steps):
        variance = faded(squares, scale_fading, t) / faded(np.ones(steps), scale_fading, t) * reach[t]
        error = (forecasts[t] - targets[t]) ** 2
        logs[t] = -0.5 * np.log(variance) - 0.5 * (FREEDOM + 1) * np.log1p(error / (FREEDOM * variance))
    score = faded(logs, fading, steps - 1)
    return score - score.max(), faded(squares, scale_fading, steps - 1)


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_the_definition(seed):
    forecasts, targets = random_experts(seed)
    rng = np.random.default_rng(seed)
    reach = 1.0 + rng.exponential(1.0, forecasts.shape)
    memory, scale_memory = rng.uniform(0.8, 1.0), rng.uniform(0.5, 1.0)
    score, squares, count, awake = np.zeros(5), np.zeros(5), 0.0, np.ones(5, dtype=bool)
    for t, y in enumerate(targets):
        count = learn_scores(
            score, squares, count, forecasts[t], y, 0.0, reach[t], awake, memory, scale_memory, t
        )  # fmt: skip
    # The best score is subtracted at every step; fading, that changes all scores alike.
    wanted_score, wanted_squares = by_definition(forecasts, targets, reach, memory, scale_memory)
    assert wanted_score.min() > -CAP
    np.testing.assert_allclose(squares, wanted_squares, rtol=1e-10)
    np.testing.assert_allclose(score - score.max(), wanted_score, atol=1e-9)

    prior, now = np.log(rng.dirichlet(np.ones(5))), 1.0 + rng.exponential(1.0, 5)
    weights = np.empty(5)
    fill_weights(score, squares, count, prior, now, awake, PRECISION, weights)
    wanted = np.exp(wanted_score + prior) * (wanted_squares * now) ** -PRECISION
    np.testing.assert_allclose(weights, wanted / wanted.sum(), rtol=1e-8)


def run(rule, forecasts, targets):
    weights = []
    for f, y in zip(forecasts, targets, strict=True):
        weights.append(rule.weights())
        rule.learn(f[:, None] if f.ndim == 1 else f, np.atleast_1d(y))
    return np.array(weights)


@pytest.mark.parametrize("seed", range(5))
def test_units_and_order_do_not_matter(seed):
    forecasts, targets = random_experts(seed)
    weights = run(LogScore(5), forecasts, targets)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(run(LogScore(5), 1e6 * forecasts, 1e6 * targets), weights, rtol=1e-7)
    np.testing.assert_allclose(run(LogScore(5), forecasts + 50.0, targets + 50.0), weights, rtol=1e-6)
    order = np.random.default_rng(seed).permutation(5)
    np.testing.assert_allclose(run(LogScore(5), forecasts[:, order], targets), weights[:, order], rtol=1e-9)


def test_an_exact_expert_takes_over_and_loses_it_again_when_it_fails():
    forecasts, targets = random_experts(1, steps=80)
    forecasts[10:50, 2] = targets[10:50]
    forecasts[50:, 2] += 5.0
    weights = run(LogScore(5), forecasts, targets)
    assert weights[40, 2] > 0.999
    assert weights[54, 2] < 0.05


def test_who_sleeps_weighs_nothing_and_is_judged_as_the_others_together():
    forecasts, targets = random_experts(2)
    rule = LogScore(5, prior=np.array([1.0, 1.0, 1.0, 1.0, 4.0]))
    assert rule.weights()[4] == pytest.approx(0.5)
    for f, y in zip(forecasts, targets, strict=True):
        f[4] = np.nan
        rule.learn(f[:, None], np.array([y]))
        awake = np.array([True] * 4 + [False])
        assert rule.weights(awake)[4] == 0.0
        assert rule.weights(awake).sum() == pytest.approx(1.0)
    assert 0.1 < rule.weights()[4] < 0.9


def test_saved_and_restored_it_goes_on_bit_for_bit():
    forecasts, targets = random_experts(3)
    first, second = LogScore(5), LogScore(5)
    run(first, forecasts[:20], targets[:20])
    second.restore(first.save())
    np.testing.assert_array_equal(run(first, forecasts[20:], targets[20:]), run(second, forecasts[20:], targets[20:]))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LogScore(0), "experts: got int 0"),
        (lambda: LogScore(2, memory=1.5), "memory: got"),
        (lambda: LogScore(2, prior=np.array([1.0, 0.0])), "prior: got 0. Pass numbers > 0"),
        (lambda: LogScore(2).learn(np.zeros((3, 1)), np.zeros(1)), "forecasts: got shape"),
    ],
)
def test_bad_arguments_are_refused(make, words):
    with pytest.raises(nc.InvalidInput, match=words):
        make()


def bernstein(forecasts, targets, prior):
    """Mixed forecasts and weights at every step."""
    K = forecasts.shape[1]
    total, squares, bound, awake = np.zeros(K), np.zeros(K), 0.0, np.ones(K, dtype=bool)
    mixed, weights = np.empty(len(targets)), np.empty((len(targets), K))
    for t, y in enumerate(targets):
        fill_bernstein_weights(total, squares, bound, np.log(prior), awake, weights[t])
        mixed[t] = weights[t] @ forecasts[t]
        bound = learn_gains(total, squares, bound, np.log(prior), forecasts[t], y, mixed[t], awake)
    return mixed, weights


def test_bernstein_weights_are_those_of_the_rule_of_that_name():
    boa = pytest.importorskip("nashcast.maths.boa")
    forecasts, targets = random_experts(4, steps=200)
    rule = boa.BOA(5)
    np.testing.assert_allclose(
        bernstein(forecasts, targets, np.full(5, 0.2))[1], run(rule, forecasts, targets), rtol=1e-8
    )


@pytest.mark.parametrize("prior", [np.full(4, 0.25), np.array([0.85, 0.05, 0.05, 0.05])])
def test_bernstein_regret_stays_within_its_bound_on_hostile_sequences(prior):
    rng = np.random.default_rng(5)
    for hostile in range(20):
        steps, forecasts = 400, rng.uniform(-1, 1, (400, 4))
        targets = np.empty(steps)
        total, squares, bound, awake = np.zeros(4), np.zeros(4), 0.0, np.ones(4, dtype=bool)
        gains, weights = np.zeros((steps, 4)), np.empty(4)
        for t in range(steps):
            fill_bernstein_weights(total, squares, bound, np.log(prior), awake, weights)
            mixed = weights @ forecasts[t]
            # The target that hurts the mixture most, or a favourite expert that changes now and then.
            favourite = forecasts[t, (hostile + t // 100) % 4]
            targets[t] = favourite if hostile % 2 else (-1.0 if mixed > 0 else 1.0)
            gains[t] = 2.0 * (mixed - targets[t]) * (mixed - forecasts[t])
            bound = learn_gains(total, squares, bound, np.log(prior), forecasts[t], targets[t], mixed, awake)
        V, B, log_odds = (gains**2).sum(axis=0), np.abs(gains).max(), np.log(1.0 / prior)
        rates = 1.0 / np.sqrt(V / log_odds + 4.0 * B**2)
        first = np.abs(gains[0]).max()
        drop = np.log(1.0 + np.log(np.maximum(1.0 / (2.0 * max(first, 1e-12)) / rates, 1.0)).max())
        allowed = B + 2.0 * np.sqrt(V * log_odds) + (np.sqrt(V / log_odds) + 2.0 * B) * (log_odds + drop)
        assert np.all(gains.sum(axis=0) <= allowed)
