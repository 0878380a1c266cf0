"""Where the look-back game has a unique equilibrium, and the errors where it has none or none that can be computed."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.errors import IllConditionedGame
from nashcast.games.lookback import reference
from nashcast.games.lookback.coupling import ILL_CONDITIONED, SINGULAR, Condition, check_existence, invert
from support.games import relative
from support.reference import exact_game

SOLVERS = pytest.mark.parametrize("compiled", [False, True])


def solve_scaled(scale, compiled=False):
    """Two agents with opposed interests and different patience; all weights scaled alike."""
    Z = np.array([[1.04, 1.40], [1.15, -2.37], [1.23, 0.34]])[:, :, None, None]
    w = np.array([[1.27, 1.11], [1.15, 0.96], [-1.08, -5.70]])
    y, settings = np.ones((3, 1)), {"ridge": np.array([0.65, 5.96]), "decay": np.array([1.96, 0.0])}
    return nc.solve_game(Z, scale * w, y, np.zeros(1), **settings, compiled=compiled)


def coupling_is_positive(solved):
    """The sign of det F at the first step, which is where this game can lose its equilibrium."""
    carry = [np.linalg.det(solved.rule.step(t).carry) for t in (0, 1)]
    return carry[1] / carry[0] > 0


def recursion(scale, compiled):
    """`solve_scaled` by the O(N) recursion alone."""
    problem = solve_scaled(scale, compiled).problem
    if compiled:
        from nashcast.games.lookback.compiled.solve import solve

        return solve(problem)
    return reference.solve(problem)


def close_in(low, high, compiled):
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if coupling_is_positive(recursion(middle, compiled)) else (low, middle)


@SOLVERS
def test_near_a_game_without_unique_equilibrium_the_error_is_typed(compiled):
    """Between weights near 0 and full weights det F changes sign: close in on the point where it vanishes."""
    low, high = 0.1, 1.0
    assert coupling_is_positive(solve_scaled(low, compiled))
    assert not coupling_is_positive(solve_scaled(high, compiled))
    with pytest.raises(nc.SingularGame) as caught:
        close_in(low, high, compiled)
    assert caught.value.step == 0
    assert caught.value.condition >= 1e-3 / np.finfo(float).eps
    assert "Raise the agents' ridge" in str(caught.value)
    assert isinstance(caught.value, nc.NashcastError)


@SOLVERS
def test_beyond_the_singular_point_the_solution_is_exact_again(compiled):
    assert nc.certify(solve_scaled(1.0, compiled)).worst < 1e-9


def test_ill_conditioned_and_singular_are_told_apart():
    check_existence(0, Condition(0.99 * ILL_CONDITIONED, 0.99 * ILL_CONDITIONED**2))
    for condition in (
        Condition(ILL_CONDITIONED, ILL_CONDITIONED),
        Condition(0.99 * SINGULAR, 1.0),
        Condition(1.0, ILL_CONDITIONED**2),
        Condition(1.0, np.inf),
        Condition(np.nan, np.nan),
    ):
        with pytest.raises(IllConditionedGame, match=r"^the game's equilibrium cannot be computed .* at step 2 "):
            check_existence(2, condition)
    for condition in (Condition(SINGULAR, 1.0), Condition(np.inf, np.inf)):
        with pytest.raises(nc.SingularGame, match=r"^the game has no unique equilibrium: at step 2 ") as caught:
            check_existence(2, condition)
        assert not isinstance(caught.value, IllConditionedGame)


def test_scales_of_rows_and_columns_do_not_matter():
    rng = np.random.default_rng(1)
    for _ in range(20):
        F = rng.standard_normal((4, 4)) + 3 * np.eye(4)
        rows, columns = 10.0 ** rng.uniform(-40, 40, 4), 10.0 ** rng.uniform(-40, 40, 4)
        scaled = F * rows[:, None] * columns
        inverse, condition = invert(scaled - np.eye(4))
        if np.abs(scaled).min() > 1e3:  # else F - I rounds to -1
            np.testing.assert_allclose(inverse * columns[:, None] * rows, np.linalg.inv(F), rtol=1e-9, atol=1e-12)
            assert condition.scaled < 1e4


def test_a_matrix_that_is_singular_stays_so_after_scaling():
    """An entry that cancels to rounding must not be scaled up into a pivot."""
    for F in (
        np.array([[1.0, 2.0], [0.5, 1.0]]),
        np.diag([1e-17, 1.0]),
        np.array([[1e200, 1e100], [1.0, 1e-100]]),
        np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 1.0], [4.0, 2.0, 3.0]]) * np.array([1.0, 1e30, 1e-30]),
    ):
        assert invert(F - np.eye(len(F)))[1].scaled >= SINGULAR


@SOLVERS
@pytest.mark.parametrize("lookback", [2, 4, 6])
def test_steep_decay_has_a_unique_equilibrium_whose_matrix_only_looks_singular(lookback, compiled):
    """α = 5, as in the paper's look-back study. The oracle solves the dense theorem to a hundred digits."""
    rng = np.random.default_rng(lookback)
    N, T = 3, lookback
    Z, w, y = rng.standard_normal((T, N, 1, 1)), rng.uniform(0.1, 0.6, (T, N)), rng.standard_normal((T, 1))
    gamma, alpha, start = rng.uniform(0.1, 2.0, N), np.full(N, 5.0), np.zeros(1)
    solved = nc.solve_game(Z, w, y, start, ridge=gamma, decay=alpha, compiled=compiled)
    exact = exact_game.solve(Z[:, :, 0, 0], w, y[:, 0], gamma, np.exp(-alpha))
    for t in range(T):
        assert relative(solved.decoders[t, :, 0], exact[t]) < 1e-7
    assert solved.conditions.max() < 1e6
    assert nc.certify(solved).worst < 1e-9


def steep_game(seed, lookback, alpha):
    rng = np.random.default_rng(seed)
    N, T = 3 + 3 * (seed % 2), lookback
    Z, w, y = rng.standard_normal((T, N, 1, 1)), rng.standard_normal((T, N)), rng.standard_normal((T, 1))
    return Z, w, y, rng.uniform(0.1, 2.0, N), np.where(np.arange(N) == seed % 5, 0.1, alpha)


@SOLVERS
@pytest.mark.parametrize("alpha", [2.0, 5.0, 8.0])
@pytest.mark.parametrize("lookback", [4, 6, 8, 10])
def test_what_is_solved_has_digits_and_what_has_none_is_refused(lookback, alpha, compiled):
    """From mild to hopeless decay, with patient agents among the others."""
    for seed in range(6):
        Z, w, y, gamma, decay = steep_game(seed, lookback, alpha)
        try:
            solved = nc.solve_game(Z, w, y, np.zeros(1), ridge=gamma, decay=decay, compiled=compiled)
        except nc.SingularGame:
            assert alpha * (lookback - 1) > 20  # scales apart by less than exp(20) are no reason to refuse
            continue
        exact = exact_game.solve(Z[:, :, 0, 0], w, y[:, 0], gamma, np.exp(-decay))
        assert relative(solved.decoders[:, :, 0], exact) < 1e-3  # of the largest decoder of the game


@SOLVERS
@pytest.mark.parametrize("scale", [1e160, 1e300])
def test_numbers_too_large_to_square_are_a_typed_error_and_never_a_silent_nan(scale, compiled):
    rng = np.random.default_rng(0)
    with pytest.raises(IllConditionedGame):
        nc.solve_game(
            scale * rng.standard_normal((3, 2, 1, 2)), np.full((3, 2), 0.5), np.ones((3, 1)), np.zeros(1), ridge=1.0,
            compiled=compiled,
        )  # fmt: skip
