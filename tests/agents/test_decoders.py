"""Proposition 1 against least squares, and its long-memory form against the batch."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.decoders import empty_memory, long_memory_decoder, remember, window_decoder


def batch(Z, r, gamma, fading):
    """The weighted ridge as one stacked least-squares problem."""
    S, p, d = Z.shape
    root = np.sqrt(fading ** np.arange(S - 1, -1, -1.0))[:, None]
    rows = (root[:, :, None] * Z).reshape(S * p, d)
    stack = np.vstack([rows, np.sqrt(gamma) * np.eye(d)])
    return np.linalg.lstsq(stack, np.append((root * r).ravel(), np.zeros(d)), rcond=None)[0]


@pytest.mark.parametrize("seed", range(20))
def test_window_form_equals_least_squares(seed):
    rng = np.random.default_rng(seed)
    S, p, d = rng.integers(1, 9), rng.integers(1, 4), rng.integers(1, 13)
    Z, r = rng.standard_normal((S, p, d)), rng.standard_normal((S, p))
    gamma, alpha = rng.uniform(0.05, 5), rng.uniform(0, 2)
    beta = window_decoder(Z, r, ridge=gamma, decay=alpha)
    np.testing.assert_allclose(beta, batch(Z, r, gamma, np.exp(-alpha)), rtol=1e-9, atol=1e-12)
    age = np.exp(-alpha * np.arange(S - 1, -1, -1))
    gradient = np.einsum("s,spd,sp->d", age, Z, np.einsum("spd,d->sp", Z, beta) - r) + gamma * beta
    assert np.abs(gradient).max() < 1e-11


@pytest.mark.parametrize("forgetting", [0.9, 0.95, 0.99, 0.999, 1.0])
def test_long_memory_equals_the_batch_after_10000_steps(forgetting):
    rng = np.random.default_rng(int(1000 * forgetting))
    S, p, d, gamma = 10_000, 2, 5, 0.3
    Z, r = rng.standard_normal((S, p, d)), rng.standard_normal((S, p))
    memory = empty_memory(d)
    for t in range(S):
        memory = remember(memory, Z[t], r[t], forgetting=forgetting)
    beta = long_memory_decoder(memory, ridge=gamma)
    np.testing.assert_allclose(beta, batch(Z, r, gamma, forgetting), rtol=1e-9)
    if forgetting < 1:
        window = window_decoder(Z, r, ridge=gamma, decay=-np.log(forgetting))
        np.testing.assert_allclose(beta, window, rtol=1e-9)


def test_remembering_leaves_the_old_memory_as_it_was():
    memory = empty_memory(2)
    later = remember(memory, np.ones((1, 2)), np.ones(1), forgetting=0.5)
    np.testing.assert_array_equal(memory.cross, 0.0)
    np.testing.assert_array_equal(later.cross, 1.0)


def test_a_feature_that_falls_silent_lets_go_of_its_decoder():
    memory = empty_memory(2)
    memory = remember(memory, np.array([[1.0, 1.0]]), np.array([1.0]), forgetting=0.5)
    for _ in range(200):
        memory = remember(memory, np.array([[1.0, 0.0]]), np.array([1.0]), forgetting=0.5)
    beta = long_memory_decoder(memory, ridge=0.1)
    assert abs(beta[1]) < 1e-12
    assert beta[0] == pytest.approx(2 / 2.1, rel=1e-9)


def test_zero_features_and_scaled_units():
    rng = np.random.default_rng(5)
    Z, r = rng.standard_normal((4, 2, 3)), rng.standard_normal((4, 2))
    beta = window_decoder(Z, r, ridge=0.7, decay=0.3)
    wide = window_decoder(np.concatenate([Z, 0 * Z[..., :1]], axis=2), r, ridge=0.7, decay=0.3)
    np.testing.assert_allclose(wide, np.append(beta, 0.0), rtol=1e-12)
    np.testing.assert_allclose(window_decoder(5 * Z, 3 * r, ridge=17.5, decay=0.3), 0.6 * beta, rtol=1e-12)


GOOD = {"features": np.ones((2, 1, 3)), "residuals": np.ones((2, 1)), "ridge": 1.0, "decay": 0.0}
BAD = [
    ({"features": np.ones((2, 3))}, "features", "(steps, y_dim, features)"),
    ({"features": np.full((2, 1, 3), np.nan)}, "features", "the 6 entries"),
    ({"features": np.ones((0, 1, 3))}, "features", "at least 1"),
    ({"residuals": np.ones(2)}, "residuals", "(steps, y_dim) = (2, 1)"),
    ({"ridge": 0}, "ridge", "> 0"),
    ({"decay": -0.1}, "decay", "≥ 0"),
]


@pytest.mark.parametrize(("change", "argument", "words"), BAD)
def test_bad_input_names_the_argument_and_the_remedy(change, argument, words):
    arguments = {**GOOD, **change}
    with pytest.raises(nc.InvalidInput) as caught:
        window_decoder(arguments.pop("features"), arguments.pop("residuals"), **arguments)
    assert str(caught.value).startswith(f"{argument}: got ")
    assert words in str(caught.value)


BAD_MEMORY = [
    (lambda: empty_memory(-1), "features", "≥ 0"),
    (lambda: empty_memory(2.5), "features", "whole number"),
    (
        lambda: remember(empty_memory(2), np.ones((1, 3)), np.ones(1), forgetting=1),
        "memory",
        "(features,) = (3,)",
    ),
    (lambda: remember(empty_memory(2), np.ones((1, 2)), np.ones(2), forgetting=1), "residual", "(y_dim,) = (1,)"),
    (lambda: remember(empty_memory(2), np.ones((1, 2)), np.ones(1), forgetting=0), "forgetting", "> 0"),
    (lambda: remember(empty_memory(2), np.ones((1, 2)), np.ones(1), forgetting=1.1), "forgetting", "≤ 1"),
    (lambda: long_memory_decoder(empty_memory(2), ridge=-1), "ridge", "> 0"),
]


@pytest.mark.parametrize(("call", "argument", "words"), BAD_MEMORY)
def test_bad_memory_input(call, argument, words):
    with pytest.raises(nc.InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(f"{argument}: got ")
    assert words in str(caught.value)
