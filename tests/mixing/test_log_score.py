"""Weights by log score: the definition written out, and what must not matter."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.mixing import log_score
from nashcast.mixing.errors import error_scale
from nashcast.mixing.errors.error_scale import Errors
from nashcast.mixing.log_score import CAP, FREEDOM, GROWTH, PRECISION, LogScore


def random_experts(seed, steps=40, experts=5, spread=1.0):
    rng = np.random.default_rng(seed)
    targets = np.cumsum(rng.standard_normal(steps))
    return targets[:, None] + spread * rng.uniform(0.5, 1.0, experts) * rng.standard_normal((steps, experts)), targets


def fadings(memory, scale_memory, steps):
    young = 1.0 / (1.0 + np.arange(steps) / GROWTH)
    return np.minimum(memory, 1.0 - young / 5.0), np.minimum(scale_memory, 1.0 - young)


def by_definition(forecasts, targets, q, memory, scale_memory):
    """Scores and fading squares, each as one sum over all steps; no score reaches the cap."""
    steps, experts = forecasts.shape
    fading, scale_fading = fadings(memory, scale_memory, steps)

    def faded(values, factors, t):
        return sum(values[s] * np.prod(factors[s + 1 : t + 1]) for s in range(t + 1))

    squares = (forecasts - targets[:, None]) ** 2 / q
    logs = np.empty((steps, experts))
    for t in range(steps):
        variance = faded(squares, scale_fading, t) / faded(np.ones(steps), scale_fading, t) * q[t]
        error = (forecasts[t] - targets[t]) ** 2
        logs[t] = -0.5 * np.log(variance) - 0.5 * (FREEDOM + 1) * np.log1p(error / (FREEDOM * variance))
    score = faded(logs, fading, steps - 1)
    return score - score.max(), faded(squares, scale_fading, steps - 1)


@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_the_definition(seed):
    forecasts, targets = random_experts(seed)
    rng = np.random.default_rng(seed)
    q = 1.0 + rng.exponential(1.0, forecasts.shape)
    memory, scale_memory = rng.uniform(0.8, 1.0), rng.uniform(0.5, 1.0)
    state, scale, equal = log_score.init(1, 5), error_scale.init(1), np.full((1, 5), 0.2)
    for t in range(len(targets)):
        errors = error_scale.observe(scale, forecasts[t : t + 1], targets[t : t + 1])
        log_score.learn(state, errors, equal, memory=memory, scale_memory=scale_memory, leverage=q[t] - 1.0)
    score, squares = state.score[0], state.squares[0]
    # The best score is subtracted at every step; fading, that changes all scores alike.
    wanted_score, wanted_squares = by_definition(forecasts, targets, q, memory, scale_memory)
    assert wanted_score.min() > -CAP
    np.testing.assert_allclose(squares, wanted_squares, rtol=1e-10)
    np.testing.assert_allclose(score - score.max(), wanted_score, atol=1e-9)

    prior, now = np.log(rng.dirichlet(np.ones(5))), 1.0 + rng.exponential(1.0, 5)
    weights = log_score.weights(state, prior, None, now - 1.0)[0]
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


def test_columns_learn_alone_and_only_from_labels():
    """Each column is as it would be alone; one memory per column; a column without a label stays as it was."""
    rng = np.random.default_rng(6)
    targets = np.cumsum(rng.standard_normal((80, 3)), axis=0)
    forecasts = targets[:, :, None] + rng.standard_normal((80, 3, 5))
    awake, labelled = rng.random((80, 3, 5)) > 0.3, rng.random((80, 3)) > 0.3
    memory, scale_memory = np.array([1.0, 0.95, 0.8]), np.array([0.98, 0.8, 0.3])
    prior, leverage = np.log(rng.dirichlet(np.ones(5))), rng.exponential(1.0, (80, 3, 5))

    def learn(columns, steps):
        state, scale = log_score.init(len(columns), 5), error_scale.init(len(columns))
        for t in steps:
            here, h = awake[t][columns], leverage[t][columns]
            weights = log_score.weights(state, prior, here, h)
            errors = error_scale.observe(scale, forecasts[t][columns], targets[t][columns], here, labelled[t][columns])
            speeds = {"memory": memory[columns], "scale_memory": scale_memory[columns]}
            log_score.learn(state, errors, weights, leverage=h, **speeds)
        return state

    together = learn([0, 1, 2], range(80))
    for c in range(3):
        alone = learn([c], np.flatnonzero(labelled[:, c] & awake[:, c].any(axis=1)))
        assert alone.steps[0] == together.steps[c] > 40
        for one, all_of_them in zip(alone, together, strict=True):
            np.testing.assert_allclose(one[0], all_of_them[c], rtol=1e-12, atol=1e-13)


def test_at_horizon_h_a_label_counts_one_hth_and_memories_are_h_times_as_long():
    rng, h, memory, scale_memory = np.random.default_rng(8), 6, 0.9, 0.8
    errors, state = rng.standard_normal((80, 3)) * [0.5, 1.0, 2.0], log_score.init(1, 3)
    score, squares, count = np.zeros(3), np.zeros(3), 0.0
    for t, e in enumerate(errors):
        young = log_score.GROWTH / (log_score.GROWTH * h + t)
        fading, scale_fading = min(memory ** (1 / h), 1 - young / 5), min(scale_memory ** (1 / h), 1 - young)
        count, squares = scale_fading * count + 1, scale_fading * squares + e**2
        v, nu = squares / count, log_score.FREEDOM
        score = fading * score - (0.5 * np.log(v) + 0.5 * (nu + 1) * np.log(1 + e**2 / (nu * v))) / h
        score = np.maximum(score - score.max(), -log_score.CAP)
        one = _errors(e)
        log_score.learn(
            state, one, np.full((1, 3), 1 / 3), memory=memory, scale_memory=scale_memory, horizons=np.array([float(h)])
        )
    np.testing.assert_allclose(state.score[0], score, rtol=1e-9)


def _errors(values: np.ndarray) -> Errors:
    nowhere = np.zeros(1, dtype=bool)
    return Errors(values[None], np.ones((1, len(values)), dtype=bool), True, np.ones(1), nowhere, nowhere, nowhere)
