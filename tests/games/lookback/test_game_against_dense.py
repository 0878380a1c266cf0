"""The fast game against the paper's dense matrices and against its definition, on more than 300 random games."""

import numpy as np
import pytest

import nashcast as nc
from support.games import random_game, relative, stacked
from support.reference import best_response, dense_game

GROUPS, PER_GROUP = 16, 21


def games_of(group):
    return [random_game(1000 * group + i) for i in range(PER_GROUP)]


def test_there_are_more_than_300_games_and_they_cover_the_ranges():
    games = [game for group in range(GROUPS) for game in games_of(group)]
    assert len(games) >= 300
    assert {len(game.Z) for game in games} == set(range(1, 9))
    assert {game.Z[0].shape[1] for game in games} == {1, 2, 3}
    assert {game.Z[0].shape[0] for game in games} == set(range(1, 7))
    kinds = {(game.cov is not None, game.prior is not None) for game in games}
    assert kinds == {(False, False), (False, True), (True, False), (True, True)}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("group", range(GROUPS))
def test_every_decoder_and_forecast_equals_the_dense_theorem(group, compiled):
    for game in games_of(group):
        fast = nc.solve_game(*game.arguments(), **game.settings(), compiled=compiled)
        dense = dense_game.solve(*game.dense_arguments())
        T, N = len(game.y), len(game.Z)
        for t in range(T):
            assert relative(stacked(fast.decoders)[t], dense.decoders[t]) <= 1e-9
            assert relative(fast.forecasts[t + 1].ravel(), dense.forecasts[t + 1]) <= 1e-9
        assert fast.forecasts.shape == (T + 1, N, game.y.shape[1])
        assert np.all(fast.conditions >= 1.0 - 1e-12)


@pytest.mark.parametrize("group", range(GROUPS))
def test_the_compiled_solver_equals_the_reference(group):
    rng = np.random.default_rng(200 + group)
    for game in games_of(group):
        plain, fast = (nc.solve_game(*game.arguments(), **game.settings(), compiled=c) for c in (False, True))
        for i in range(len(game.Z)):
            assert relative(fast.decoders[i], plain.decoders[i]) <= 1e-10
        assert relative(fast.forecasts, plain.forecasts) <= 1e-10
        np.testing.assert_allclose(fast.conditions, plain.conditions, rtol=1e-8)
        for t in range(len(game.y)):
            state = rng.standard_normal(game.start.shape)
            one, other = (np.concatenate(nc.respond(solved, t, state)) for solved in (fast, plain))
            assert relative(one, other) <= 1e-10


@pytest.mark.parametrize("group", range(GROUPS))
def test_nobody_gains_by_deviating_from_the_start_or_from_any_state(group):
    """Feedback equilibrium: also off the played path, at every step."""
    rng = np.random.default_rng(group)
    for game in games_of(group):
        solved = nc.solve_game(*game.arguments(), **game.settings())
        certificate = nc.certify(solved)
        assert np.all(certificate.gains() <= 1e-9 * certificate.costs())
        for t in range(len(game.y)):
            state = 3 * rng.standard_normal(game.start.shape)
            assert np.all(certificate.gains(t, state) <= 1e-9 * certificate.costs(t, state))


@pytest.mark.parametrize("group", range(GROUPS))
def test_the_rule_off_the_path_and_its_costs_equal_the_dense_theorem(group):
    rng = np.random.default_rng(100 + group)
    for game in games_of(group)[::3]:
        solved = nc.solve_game(*game.arguments(), **game.settings())
        dense = dense_game.solve(*game.dense_arguments())
        certificate = nc.certify(solved)
        for t in range(len(game.y)):
            state = rng.standard_normal(game.start.shape)
            x = state.ravel()
            assert relative(np.concatenate(nc.respond(solved, t, state)), dense.G[t] @ x + dense.H[t]) <= 1e-9
            for i, cost in enumerate(certificate.costs(t, state)):
                P, S, r = dense.P[t][i], dense.S[t][i], dense.r[t][i]
                # The oracle adds and cancels squares of targets and states, all of order 1, to reach a cost that may be
                # a millionth of them: it has no more digits than this.
                rounding = 1e-13 * (x @ x + 1.0)
                assert abs(cost - best_response.at((P, S, r), x)) <= 1e-9 * cost + rounding


@pytest.mark.parametrize("seed", range(12))
def test_nobody_gains_by_brute_force_either(seed):
    """The same with a best response over the full state that shares no code with the package."""
    game = random_game(seed, N=3, T=3)
    solved = nc.solve_game(*game.arguments(), **game.settings())
    Z, mean, cov, w, y, start, alpha, gamma, prior = game.dense_arguments()
    n = start.size
    K, k = [], []
    for t in range(len(y)):
        zero = nc.respond(solved, t, np.zeros_like(start))
        units = [nc.respond(solved, t, unit.reshape(start.shape)) for unit in np.eye(n)]
        k.append(zero)
        K.append([np.stack([unit[i] - zero[i] for unit in units], axis=1) for i in range(len(Z))])
    for i in range(len(Z)):
        played, best = best_response.values(i, K, k, mean, cov, w, y, alpha, gamma, prior)
        cost = best_response.at(played[0], start.ravel())
        assert cost - best_response.at(best[0], start.ravel()) <= 1e-9 * cost
        assert cost == pytest.approx(nc.certify(solved).costs()[i], rel=1e-9)


def test_agents_all_alike_in_one_array_or_one_by_one():
    game = random_game(5, N=6, T=4, p=2, sizes=[3] * 6, noisy=True, prior=True)
    cov = [c if c is not None else np.zeros((4, 2, 2, 3, 3)) for c in game.cov]
    each = nc.solve_game(*game.arguments(), **{**game.settings(), "covariance": cov})

    def one(arrays):
        return np.stack(arrays, axis=1)

    settings = {**game.settings(), "means": one(game.mean), "covariance": one(cov), "prior": one(game.prior)}
    alike = nc.solve_game(one(game.Z), game.w, game.y, game.start, **settings)
    np.testing.assert_array_equal(alike.decoders, one(each.decoders))
    np.testing.assert_array_equal(alike.forecasts, each.forecasts)
    np.testing.assert_array_equal(
        nc.respond(alike, 1, game.start), np.stack(nc.respond(each, 1, game.start))
    )  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("noisy", [False, True])
def test_more_agents_than_one_chunk(noisy, compiled):
    """Compiled, above sixteen agents the work is split; the noise then goes through its tensor."""
    game = random_game(9, N=37, T=3, p=1, sizes=[1 + i % 4 for i in range(37)], noisy=noisy)
    fast = nc.solve_game(*game.arguments(), **game.settings(), compiled=compiled)
    dense = dense_game.solve(*game.dense_arguments())
    assert relative(stacked(fast.decoders), np.array(dense.decoders)) <= 1e-9
    assert nc.certify(fast).worst <= 1e-9


@pytest.mark.parametrize("compiled", [False, True])
def test_agents_without_features_take_part_with_a_constant_forecast(compiled):
    game = random_game(3, N=4, T=3, p=2, sizes=[2, 0, 3, 0], noisy=False, prior=False)
    solved = nc.solve_game(*game.arguments(), **game.settings(), compiled=compiled)
    assert solved.decoders[1].shape == (3, 0)
    np.testing.assert_array_equal(solved.forecasts[:, 1], np.repeat(game.start[1][None], 4, axis=0))
    assert nc.certify(solved).worst <= 1e-9
