"""What must not change, or change in a known way, when a game is written differently."""

import numpy as np
import pytest

import nashcast as nc
from support.games import random_game, relative, stacked

SEEDS = range(10)


def solved(game):
    return nc.solve_game(*game.arguments(), **game.settings())


def reordered(game, order):
    def pick(values):
        return None if values is None else [values[i] for i in order]

    return game._replace(
        Z=pick(game.Z),
        mean=pick(game.mean),
        cov=pick(game.cov),
        prior=pick(game.prior),
        w=game.w[:, order],
        start=game.start[order],
        gamma=game.gamma[order],
        alpha=game.alpha[order],
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_permuting_agents_permutes_the_solution(seed):
    game = random_game(seed, N=7)
    order = np.random.default_rng(seed).permutation(7)
    one, other = solved(game), solved(reordered(game, order))
    for place, agent in enumerate(order):
        assert relative(other.decoders[place], one.decoders[agent]) < 1e-8
    assert relative(other.forecasts, one.forecasts[:, order]) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_scaling_targets_scales_decoders_and_forecasts(seed):
    game = random_game(seed)
    scaled = game._replace(y=7 * game.y, start=7 * game.start)
    if game.prior:
        scaled = scaled._replace(prior=[7 * prior for prior in game.prior])
    one, other = solved(game), solved(scaled)
    assert relative(stacked(other.decoders), 7 * stacked(one.decoders)) < 1e-9
    assert relative(other.forecasts, 7 * one.forecasts) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_scaling_features_and_ridge_scales_decoders_back(seed):
    game = random_game(seed)
    scaled = game._replace(Z=[4 * z for z in game.Z], gamma=16 * game.gamma)
    if game.mean:
        scaled = scaled._replace(
            mean=[4 * m for m in game.mean], cov=[None if c is None else 16 * c for c in game.cov]
        )  # fmt: skip
    if game.prior:
        scaled = scaled._replace(prior=[prior / 4 for prior in game.prior])
    one, other = solved(game), solved(scaled)
    assert relative(stacked(other.decoders), stacked(one.decoders) / 4) < 1e-9
    assert relative(other.forecasts, one.forecasts) < 1e-9


def with_zero_columns(array, where):
    for axis in where:
        array = np.concatenate([array, np.zeros_like(np.take(array, [0, 0], axis=axis))], axis=axis)
    return array


@pytest.mark.parametrize("seed", SEEDS)
def test_extra_zero_features_change_nothing(seed):
    game = random_game(seed, N=4)
    wide = game._replace(Z=[with_zero_columns(game.Z[0], [2]), *game.Z[1:]])
    if game.mean:
        cov = game.cov[0]
        wide = wide._replace(
            mean=[with_zero_columns(game.mean[0], [2]), *game.mean[1:]],
            cov=[None if cov is None else with_zero_columns(cov, [3, 4]), *game.cov[1:]],
        )
    if game.prior:
        wide = wide._replace(prior=[with_zero_columns(game.prior[0], [1]), *game.prior[1:]])
    one, other = solved(game), solved(wide)
    size = game.Z[0].shape[2]
    assert relative(other.decoders[0][:, :size], one.decoders[0]) < 1e-9
    np.testing.assert_array_equal(other.decoders[0][:, size:], 0.0)
    assert relative(other.forecasts, one.forecasts) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_an_agent_with_weight_zero_throughout_changes_nobody_else(seed):
    game = random_game(seed, N=5)
    w = game.w.copy()
    w[:, 2] = 0.0
    game = game._replace(w=w)
    one, other = solved(game), solved(reordered(game, [0, 1, 3, 4]))
    for place, agent in enumerate([0, 1, 3, 4]):
        assert relative(other.decoders[place], one.decoders[agent]) < 1e-9
    assert relative(other.forecasts, one.forecasts[:, [0, 1, 3, 4]]) < 1e-9


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_one_agent_alone_solves_a_least_squares_problem(seed, prior):
    """With one agent and certain features, the whole plan of decoders is one stacked ridge regression."""
    game = random_game(seed, N=1, noisy=False, prior=prior)
    Z, w, y, gamma, alpha = game.Z[0], game.w[:, 0], game.y, game.gamma[0], game.alpha[0]
    T, p, d = Z.shape
    centre = game.prior[0] if prior else np.zeros((T, d))
    rows, right = [], []
    for t in range(T):
        root = np.sqrt(np.exp(-alpha * (T - 1 - t)))
        moved = np.zeros((p, T, d))
        moved[:, : t + 1] = Z[: t + 1].transpose(1, 0, 2)
        rows.append(root * w[t] * moved.reshape(p, T * d))
        right.append(root * (y[t] - w[t] * game.start[0]))
        effort = np.zeros((d, T, d))
        effort[:, t] = np.eye(d)
        rows.append(root * np.sqrt(gamma) * effort.reshape(d, T * d))
        right.append(root * np.sqrt(gamma) * centre[t])
    plan = np.linalg.lstsq(np.concatenate(rows), np.concatenate(right), rcond=None)[0]
    assert relative(solved(game).decoders[0], plan.reshape(T, d)) < 1e-9


def test_covariance_of_zero_is_the_deterministic_game():
    game = random_game(4, N=6, T=5, p=2, noisy=False)
    zero = [np.zeros((5, 2, 2, z.shape[2], z.shape[2])) for z in game.Z]
    one, other = solved(game), solved(game._replace(cov=zero))
    assert relative(stacked(other.decoders), stacked(one.decoders)) < 1e-12


def test_prior_of_zero_is_the_papers_game():
    game = random_game(4, N=6, T=4, p=2, noisy=True, prior=False)
    zero = [np.zeros((4, z.shape[2])) for z in game.Z]
    one, other = solved(game), solved(game._replace(prior=zero))
    assert relative(stacked(other.decoders), stacked(one.decoders)) < 1e-12


def test_a_prior_that_already_fits_is_left_alone():
    """If β̄ brings every mixture to its target at no cost, nobody moves away from it."""
    game = random_game(8, N=3, T=3, p=1, noisy=False, prior=True)
    state, y = game.start.copy(), []
    for t in range(3):
        state = state + np.stack([game.Z[i][t] @ game.prior[i][t] for i in range(3)])
        y.append(game.w[t] @ state)
    answer = solved(game._replace(y=np.array(y)))
    for i in range(3):
        np.testing.assert_allclose(answer.decoders[i], game.prior[i], rtol=1e-10)
    assert np.all(nc.certify(answer).costs() < 1e-20)
