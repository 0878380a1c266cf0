"""Theorem 1 against its optimality conditions, a quadratic program, and its transformations."""

import numpy as np
import pytest
from scipy.optimize import minimize

import nashcast as nc


def draw(seed, p, N, steps=None):
    rng = np.random.default_rng(seed)
    lead = () if steps is None else (steps,)
    return rng.standard_normal((*lead, p, N)), rng.standard_normal((*lead, p)), rng.uniform(0.05, 3), rng.uniform(-2, 2)


CASES = [(seed, p, N) for seed, (p, N) in enumerate((p, N) for p in (1, 2, 3, 4) for N in (1, 2, 3, 5, 8, 40))]


@pytest.mark.parametrize(("seed", "p", "N"), CASES)
def test_optimality_conditions(seed, p, N):
    Y, y, kappa, eta = draw(seed, p, N)
    w = nc.mixture_weights(Y, y, ridge=kappa, budget=eta)
    assert abs(w.sum() - eta) <= 1e-12
    gradient = Y.T @ (Y @ w - y) + kappa * w
    scale = max(1.0, np.abs(gradient).max())
    assert np.abs(gradient - gradient.mean()).max() / scale <= 1e-12  # equal to one multiplier for all agents


@pytest.mark.parametrize(("seed", "p", "N"), CASES[::3])
def test_equals_the_bordered_system_and_a_quadratic_program(seed, p, N):
    Y, y, kappa, eta = draw(seed, p, N)
    w = nc.mixture_weights(Y, y, ridge=kappa, budget=eta)
    border = np.ones((N, 1))
    system = np.block([[2 * (Y.T @ Y + kappa * np.eye(N)), border], [border.T, np.zeros((1, 1))]])
    np.testing.assert_allclose(w, np.linalg.solve(system, np.append(2 * Y.T @ y, eta))[:N], rtol=1e-10, atol=1e-12)
    if N <= 8:
        program = minimize(
            lambda v: np.sum((y - Y @ v) ** 2) + kappa * v @ v,
            np.full(N, eta / N),
            jac=lambda v: 2 * (Y.T @ (Y @ v - y) + kappa * v),
            constraints={"type": "eq", "fun": lambda v: v.sum() - eta, "jac": lambda v: np.ones(N)},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 500},
        )
        np.testing.assert_allclose(w, program.x, atol=2e-6)


@pytest.mark.parametrize(("steps", "p", "N"), [(1, 2, 3), (4, 1, 2), (6, 2, 5), (3, 1, 9), (20, 3, 4)])
@pytest.mark.parametrize("discount", [1.0, 0.8])
def test_a_discounted_window_meets_its_own_optimality_conditions(steps, p, N, discount):
    Y, y, kappa, eta = draw(steps, p, N, steps)
    w = nc.mixture_weights(Y, y, ridge=kappa, budget=eta, discount=discount)
    gradient = kappa * w
    for s in range(steps):
        gradient = gradient + discount ** (steps - 1 - s) * Y[s].T @ (Y[s] @ w - y[s])
    assert abs(w.sum() - eta) <= 1e-12
    assert np.abs(gradient - gradient.mean()).max() <= 1e-11


def test_a_window_of_one_is_the_paper():
    Y, y, kappa, eta = draw(7, 2, 5)
    one = nc.mixture_weights(Y, y, ridge=kappa, budget=eta)
    np.testing.assert_array_equal(nc.mixture_weights(Y[None], y[None], ridge=kappa, budget=eta, discount=0.5), one)


def test_permuting_agents_permutes_weights_and_scaling_units_changes_nothing():
    Y, y, kappa, eta = draw(8, 3, 6)
    w = nc.mixture_weights(Y, y, ridge=kappa, budget=eta)
    order = [3, 0, 5, 1, 4, 2]
    np.testing.assert_allclose(nc.mixture_weights(Y[:, order], y, ridge=kappa, budget=eta), w[order], rtol=1e-11)
    np.testing.assert_allclose(nc.mixture_weights(9 * Y, 9 * y, ridge=81 * kappa, budget=eta), w, rtol=1e-11)


def test_agents_that_agree_share_equally_whatever_they_say():
    """Far from zero and nearly equal: the form with A⁻¹ loses its digits here."""
    Y = np.full((1, 4), 1e8)
    np.testing.assert_allclose(nc.mixture_weights(Y, np.array([3.0]), ridge=1e-6), 0.25, rtol=1e-12)
    Y = 1e6 + np.array([[0.0, 1.0, 2.0, 3.0]])
    w = nc.mixture_weights(Y, np.array([1e6 + 2.5]), ridge=1e-9)
    assert abs(w.sum() - 1.0) <= 1e-12
    assert (Y @ w).item() == pytest.approx(1e6 + 2.5, abs=1e-6)


BAD = [
    ({"forecasts": np.ones(3)}, "forecasts", "(y_dim, agents) or (steps, y_dim, agents)"),
    ({"forecasts": np.ones((1, 0))}, "forecasts", "at least 1"),
    ({"forecasts": [[1.0, np.nan]]}, "forecasts", "nan at index (0, 1)"),
    ({"forecasts": [["a", "b"]]}, "forecasts", "Pass numbers"),
    ({"target": [1.0, 2.0]}, "target", "shape (2,)"),
    ({"target": [np.inf]}, "target", "inf at index (0,)"),
    ({"ridge": 0.0}, "ridge", "> 0"),
    ({"ridge": -1}, "ridge", "> 0"),
    ({"ridge": None}, "ridge", "one number"),
    ({"budget": np.nan}, "budget", "finite"),
    ({"discount": 0.0}, "discount", "> 0"),
    ({"discount": 1.5}, "discount", "≤ 1"),
]


@pytest.mark.parametrize(("change", "argument", "words"), BAD)
def test_bad_input_names_the_argument_and_the_remedy(change, argument, words):
    good = {"forecasts": np.ones((1, 2)), "target": np.ones(1), "ridge": 1.0, "budget": 1.0}
    arguments = {**good, **change}
    with pytest.raises(nc.InvalidInput) as caught:
        nc.mixture_weights(arguments.pop("forecasts"), arguments.pop("target"), **arguments)
    assert str(caught.value).startswith(f"{argument}: got ")
    assert words in str(caught.value)
