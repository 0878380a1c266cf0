"""Steep decay, long look-back and extreme units: the equilibrium, or a typed error, never a wrong number."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.games.lookback import root_solver
from support.games import random_game, relative, stacked
from support.hard_games import compare, hard_game


@pytest.mark.parametrize("seed", range(15))
def test_the_root_form_is_the_recursion(seed):
    game = random_game(seed, N=1 + seed % 4, T=1 + seed % 5, p=1 + seed % 3)
    solved = nc.solve_game(*game.arguments(), **game.settings(), compiled=False)
    root = root_solver.solve(solved.problem, compiled=False)
    assert relative(root.decoders, stacked(solved.decoders)) < 1e-9
    assert relative(root.forecasts, solved.forecasts) < 1e-9
    rng = np.random.default_rng(seed)
    state = rng.standard_normal(game.start.shape)
    for t in range(len(game.y)):
        told = nc.respond(solved._replace(rule=root.rule), t, state)
        for one, other in zip(told, nc.respond(solved, t, state), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)
    certificate = nc.certify(solved._replace(rule=root.rule))
    assert certificate.over_forecasts
    assert certificate.worst < 1e-12
    np.testing.assert_allclose(certificate.costs(), nc.certify(solved).costs(), rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_hard_games_against_four_hundred_digits(compiled):
    """A sample of `python tests/support/hard_games.py 500`."""
    found = [compare(hard_game(seed), compiled) for seed in range(0, 500, 25 if compiled else 17)]
    solved = np.array([each for each in found if each is not None])
    assert len(solved) >= 0.9 * len(found)
    assert solved.max() < 2e-3
    assert np.median(solved.max(axis=1)) < 1e-8


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_of_the_inputs_do_not_matter(scale):
    game = random_game(3, N=3, T=4, p=1, noisy=False, prior=False)
    one = nc.solve_game(*game.arguments(), **game.settings())
    Z = [scale * z for z in game.Z]
    other = nc.solve_game(Z, game.w, game.y, game.start, ridge=game.gamma * scale**2, decay=game.alpha)
    assert relative(other.forecasts, one.forecasts) < 1e-12
    # With its ridge as it was, a game of large inputs is still solved.
    if scale > 1.0:
        large = nc.solve_game(Z, game.w, game.y, game.start, ridge=game.gamma, decay=game.alpha)
        assert nc.certify(large).worst < 1e-6


def test_a_tiny_ridge_is_solved_and_certified():
    game = random_game(5, N=3, T=3, p=1, noisy=False, prior=False)
    solved = nc.solve_game(*game.arguments(), ridge=1e-12, decay=game.alpha)
    assert nc.certify(solved).worst < 1e-6


def test_where_targets_do_not_change_rounding_is_no_gain():
    """Rates that stand still over a week-end: the mixture is right from the start, and all costs are rounding."""
    rng = np.random.default_rng(2)
    for seed in range(20):
        game = random_game(seed, N=5, T=2, p=1, sizes=[6] * 5, noisy=True, prior=False)
        level = 1.0 + 0.1 * rng.random()
        weights = game.w + (1.0 - game.w.sum(axis=1, keepdims=True)) / 5
        solved = nc.solve_game(
            game.Z, weights, np.full((2, 1), level), np.array([level]),
            ridge=10.0, means=game.mean, covariance=game.cov,
        )  # fmt: skip
        assert nc.certify(solved).worst < 1e-6
