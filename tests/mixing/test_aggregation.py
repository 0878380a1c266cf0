"""Aggregation rules against plain loops, under transformations, with experts asleep, saved and restored."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.mixing.aggregation import RULES, aggregation_rule
from nashcast.mixing.windowed_weights import DISCOUNTS, RIDGES
from support import plain_rules as plain

CONVEX = ["exponential", "fixed-share", "boa", "ml-poly", "log-score"]


def draw(seed, steps=60, experts=4, y_dim=2, asleep=0.0):
    """Experts of different quality, the best one changing halfway."""
    rng = np.random.default_rng(seed)
    targets = np.cumsum(rng.standard_normal((steps, y_dim)), axis=0)
    noise = rng.uniform(0.1, 2.0, (2, experts))[(np.arange(steps) >= steps // 2).astype(int)]
    forecasts = targets[:, None] + noise[:, :, None] * rng.standard_normal((steps, experts, y_dim))
    awake = rng.random((steps, experts)) >= asleep
    awake[:, 0] |= ~awake.any(axis=1)
    return forecasts, targets, awake


def run(rule, forecasts, targets, awake):
    seen = []
    for f, y, here in zip(forecasts, targets, awake, strict=True):
        seen.append(rule.weights(here, f))
        rule.learn(np.where(here[:, None], f, np.nan), y, here)
    return np.array(seen)


@pytest.mark.parametrize("asleep", [0.0, 0.4])
@pytest.mark.parametrize(
    ("name", "options", "reference"),
    [
        ("exponential", {}, lambda *a: plain.exponential(*a)),
        ("exponential", {"bound": 40.0}, lambda *a: plain.exponential(*a, bound=40.0)),
        ("fixed-share", {}, lambda *a: plain.exponential(*a, share="1/t")),
        ("fixed-share", {"share": 0.05}, lambda *a: plain.exponential(*a, share=0.05)),
        ("boa", {}, lambda *a: plain.boa(*a)),
        ("boa", {"bound": 60.0}, lambda *a: plain.boa(*a, bound=60.0)),
        ("ml-poly", {}, lambda *a: plain.ml_poly(*a)),
        ("ml-poly", {"bound": 60.0}, lambda *a: plain.ml_poly(*a, bound=60.0)),
    ],
)
def test_equals_the_plain_loop(name, options, reference, asleep):
    for seed in range(3):
        forecasts, targets, awake = draw(seed, asleep=asleep)
        seen = run(aggregation_rule(name, 4, 2, **options), forecasts, targets, awake)
        wanted = np.array(reference(forecasts.tolist(), targets.tolist(), awake.tolist()))
        assert np.ptp(wanted, axis=0).max() > 0.05  # something is learnt
        np.testing.assert_allclose(seen, wanted, atol=1e-9)


def test_the_forward_ridge_is_a_least_squares_problem():
    forecasts, targets, awake = draw(1)
    forecasts[:3] = forecasts[:3, :1]  # nobody differs at first
    seen = run(aggregation_rule("ridge", 4, 2, ridge=0.3), forecasts, targets, awake)
    np.testing.assert_allclose(seen, plain.forward_ridge(forecasts, targets, 0.3), atol=1e-8)


@pytest.mark.parametrize("budget", [1.0, 0.7])
def test_windowed_weights_are_a_mixture_of_theorem_one_over_every_window(budget):
    forecasts, targets, awake = draw(2, steps=25)
    rule = aggregation_rule("windowed", 4, 2, budget=budget)
    seen = run(rule, forecasts, targets, awake)
    pairs = [(discount, ridge) for discount in DISCOUNTS for ridge in RIDGES] + [(1.0, np.inf)]
    candidates = np.full((25, len(pairs), 4), budget / 4)
    for t in range(1, 25):
        for g, (discount, ridge) in enumerate(pairs):
            candidates[t, g] = plain.window_weights(forecasts[:t], targets[:t], discount, ridge, budget)
    own = candidates @ forecasts
    everybody = np.ones((25, len(pairs)), dtype=bool)
    chosen = plain.boa(own.tolist(), targets.tolist(), everybody.tolist())
    np.testing.assert_allclose(seen, np.einsum("tg,tgk->tk", chosen, candidates), atol=1e-8)


def test_the_papers_rule_is_theorem_one_of_the_last_step():
    forecasts, targets, awake = draw(3)
    seen = run(aggregation_rule("paper", 4, 2, ridge=0.4, budget=0.9), forecasts, targets, awake)
    np.testing.assert_array_equal(seen[0], 0.9 / 4)
    for t in range(1, len(seen)):
        wanted = nc.mixture_weights(forecasts[t - 1].T, targets[t - 1], ridge=0.4, budget=0.9)
        np.testing.assert_allclose(seen[t], wanted, rtol=1e-12)


@pytest.mark.parametrize("asleep", [0.0, 0.4])
@pytest.mark.parametrize("name", RULES)
def test_weights_sum_to_one_and_are_zero_for_those_asleep(name, asleep):
    forecasts, targets, awake = draw(4, asleep=asleep)
    seen = run(aggregation_rule(name, 4, 2), forecasts, targets, awake)
    np.testing.assert_allclose(seen.sum(axis=1), 1.0, atol=1e-9)
    assert (seen[~awake] == 0.0).all()
    if name in CONVEX:
        assert seen.min() >= 0.0
    assert (aggregation_rule(name, 4).weights(np.zeros(4, dtype=bool)) == 0.0).all()


@pytest.mark.parametrize("name", RULES)
def test_permuting_experts_permutes_weights(name):
    forecasts, targets, awake = draw(5, asleep=0.3)
    order = [2, 0, 3, 1]
    seen = run(aggregation_rule(name, 4, 2), forecasts, targets, awake)
    other = run(aggregation_rule(name, 4, 2), forecasts[:, order], targets, awake[:, order])
    np.testing.assert_allclose(other, seen[:, order], atol=1e-9)


@pytest.mark.parametrize("name", [name for name in RULES if name != "paper"])
@pytest.mark.parametrize("unit", [1e-6, 3.0, 1e6])
def test_units_and_origin_change_nothing(name, unit):
    forecasts, targets, awake = draw(6)
    seen = run(aggregation_rule(name, 4, 2), forecasts, targets, awake)
    other = run(aggregation_rule(name, 4, 2), unit * (forecasts + 5.0), unit * (targets + 5.0), awake)
    np.testing.assert_allclose(other, seen, atol=1e-7)


@pytest.mark.parametrize("name", [name for name in RULES if name != "paper"])
def test_an_expert_that_is_right_is_followed(name):
    rng = np.random.default_rng(7)
    forecasts = rng.standard_normal((400, 5, 1))
    targets = forecasts[:, 3] + 0.05 * rng.standard_normal((400, 1))
    seen = run(aggregation_rule(name, 5), forecasts, targets, np.ones((400, 5), dtype=bool))
    assert seen[-1, 3] > 0.9


@pytest.mark.parametrize("name", RULES)
def test_asking_changes_nothing_and_a_restored_rule_continues_bit_for_bit(name):
    forecasts, targets, awake = draw(8, asleep=0.2)
    rule, other = aggregation_rule(name, 4, 2), aggregation_rule(name, 4, 2)
    run(rule, forecasts[:30], targets[:30], awake[:30])
    before = rule.save()
    first = rule.weights(awake[30], forecasts[30])
    np.testing.assert_array_equal(rule.weights(awake[30], forecasts[30]), first)
    for key, value in rule.save().items():
        np.testing.assert_array_equal(value, before[key])
    other.restore(before)
    run(rule, forecasts[30:31], targets[30:31], awake[30:31])  # what was saved is a copy
    rule = aggregation_rule(name, 4, 2)
    rule.restore(before)
    rest = [run(each, forecasts[30:], targets[30:], awake[30:]) for each in (rule, other)]
    np.testing.assert_array_equal(*rest)
    whole = run(aggregation_rule(name, 4, 2), forecasts, targets, awake)
    np.testing.assert_array_equal(rest[0], whole[30:])


@pytest.mark.parametrize("name", RULES)
def test_an_expert_that_blows_up_does_not_silence_the_others(name):
    forecasts, targets, awake = draw(9, steps=80)
    wild = np.concatenate([forecasts, np.full((80, 1, 2), 1e200)], axis=1)
    here = np.concatenate([awake, np.zeros((80, 1), dtype=bool)], axis=1)
    rule, quiet = aggregation_rule(name, 5, 2), aggregation_rule(name, 5, 2)
    for f, y, mask in zip(wild, targets, here, strict=True):
        rule.learn(f, y)  # awake, but its error is no number
        quiet.learn(f, y, mask)
    np.testing.assert_array_equal(rule.weights(here[0]), quiet.weights(here[0]))


def test_far_from_zero_and_still():
    """Experts that all agree, and targets that never differ from them: nothing to learn, and no division by it."""
    for name in RULES:
        rule = aggregation_rule(name, 3)
        for _ in range(5):
            rule.learn(np.full((3, 1), 7.0), np.array([7.0]))
        np.testing.assert_allclose(rule.weights(), 1 / 3)


BAD = [
    (lambda: aggregation_rule("hedge", 3), "rule: got 'hedge'. Pass one of paper, windowed"),
    (lambda: aggregation_rule("boa", 3, share=0.1), "rule 'boa': got an unknown option"),
    (lambda: aggregation_rule("boa", 0), "experts: got int 0. Pass a whole number ≥ 1."),
    (lambda: aggregation_rule("boa", 2, bound=0), "bound: got 0. Pass a number > 0."),
    (lambda: aggregation_rule("fixed-share", 2, share=2), "share: got 2. Pass a number ≤ 1."),
    (lambda: aggregation_rule("windowed", 2, ridges=()), "ridges: got none. Pass at least one."),
    (lambda: aggregation_rule("boa", 2).weights(np.ones(2)), "awake: got an array"),
    (lambda: aggregation_rule("ridge", 2).weights(None, [[1.0]]), "forecasts: got shape (1, 1)"),
    (lambda: aggregation_rule("boa", 2).learn([[1.0]], [1.0]), "forecasts: got shape (1, 1)"),
    (lambda: aggregation_rule("boa", 2).learn([[1.0], [2.0]], [np.inf]), "target: got inf"),
    (
        lambda: aggregation_rule("boa", 2).restore({}),
        "saved bound: got nothing. Restore what a boa of 2 experts saved.",
    ),
    (lambda: aggregation_rule("boa", 2).restore(aggregation_rule("boa", 3).save()), "saved total: got shape (1, 3)"),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_bad_input_names_the_argument_and_the_remedy(call, words):
    with pytest.raises(nc.InvalidInput) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.parametrize("damage", ["missing", "shape", "nan", "negative", "type"])
@pytest.mark.parametrize("name", RULES)
def test_a_refused_restore_names_the_field_and_changes_nothing(name, damage):
    forecasts, targets, awake = draw(10)
    rule, other = aggregation_rule(name, 4, 2), aggregation_rule(name, 4, 2)
    run(rule, forecasts[:30], targets[:30], awake[:30])
    run(other, forecasts[30:], targets[30:], awake[30:])
    saved, before, refused = rule.save(), other.save(), 0
    for field, good in saved.items():
        bad = dict(saved)
        if damage == "missing":
            del bad[field]
        elif damage == "shape":
            bad[field] = np.zeros((*good.shape, 2))
        elif damage == "type":
            bad[field] = np.full(good.shape, "x")
        elif damage == "nan" and good.dtype == np.float64:
            bad[field] = np.full(good.shape, np.nan)
        elif damage == "negative" and good.dtype != bool and (good >= 0).all():
            bad[field] = -1 - good
        else:
            continue
        if damage == "negative" and field in ("score", "regret", "total", "choice.total", "cross", "crosses"):
            continue  # fields of either sign that happen to be positive
        if damage == "negative" and name == "paper":
            continue  # forecasts and targets have either sign
        with pytest.raises(nc.InvalidInput, match=f"^saved {field}: got "):
            other.restore(bad)
        refused += 1
        for key, value in other.save().items():
            np.testing.assert_array_equal(value, before[key])
    assert refused > 0 or (damage == "negative" and name == "paper")
    other.restore(saved)
    np.testing.assert_array_equal(other.weights(), rule.weights())


@pytest.mark.parametrize("name", ["ridge", "windowed"])
def test_a_saved_gram_matrix_must_be_one(name):
    rule = aggregation_rule(name, 4, 2)
    saved = rule.save()
    field = "gram" if name == "ridge" else "grams"
    saved[field] = np.broadcast_to(-np.eye(4), saved[field].shape)
    with pytest.raises(nc.InvalidInput, match=f"saved {field}: got a matrix that is not symmetric"):
        rule.restore(saved)


@pytest.mark.parametrize("name", RULES)
def test_an_expert_whose_forecast_is_not_finite_has_no_weight(name):
    forecasts, targets, awake = draw(11)
    rule = aggregation_rule(name, 4, 2)
    run(rule, forecasts[:30], targets[:30], awake[:30])
    now = forecasts[30].copy()
    now[2, 1] = np.nan
    here = np.array([True, True, False, True])
    np.testing.assert_array_equal(rule.weights(None, now), rule.weights(here, forecasts[30]))
    assert rule.weights(None, now)[2] == 0.0
