"""The certificate must also find gains where there are some: rules that are not an equilibrium, by brute force."""

import numpy as np
import pytest

import nashcast as nc
from support.games import random_game
from support.reference import best_response


@pytest.mark.parametrize("seed", range(15))
def test_gains_of_rules_that_are_no_equilibrium_equal_brute_force(seed):
    """The rules of one game, judged in another: with other ridges, decays and targets somebody gains."""
    game = random_game(seed, N=3, T=3)
    solved = nc.solve_game(*game.arguments(), **game.settings())
    rng = np.random.default_rng(seed)
    other = {"ridge": game.gamma * 3, "decay": game.alpha + 0.5, "targets": rng.standard_normal(game.y.shape)}
    judged = nc.certify(solved._replace(problem=solved.problem._replace(**other)))

    _, mean, cov, w, _, start, _, _, prior = game.dense_arguments()
    K, k = [], []
    for t in range(3):
        zero = nc.respond(solved, t, np.zeros_like(start))
        units = [nc.respond(solved, t, unit.reshape(start.shape)) for unit in np.eye(start.size)]
        k.append(zero)
        K.append([np.stack([unit[i] - zero[i] for unit in units], axis=1) for i in range(3)])
    found = 0.0
    for i in range(3):
        arguments = (mean, cov, w, other["targets"], other["decay"], other["ridge"], prior)
        played, best = best_response.values(i, K, k, *arguments)
        for t in range(3):
            state = rng.standard_normal(start.shape)
            cost = best_response.at(played[t], state.ravel())
            gain = cost - best_response.at(best[t], state.ravel())
            assert judged.costs(t, state)[i] == pytest.approx(cost, rel=1e-8)
            assert judged.gains(t, state)[i] == pytest.approx(gain, rel=1e-6, abs=1e-10 * cost)
            found = max(found, gain / cost)
    assert found > 1e-3
    assert judged.worst > 0


def test_expected_cost_is_the_mean_of_played_costs():
    """Monte Carlo with fresh features: the certificate's cost is what the agents pay on average."""
    game = random_game(11, N=3, T=3, p=1, sizes=[2, 1, 2], noisy=True, prior=False)
    solved = nc.solve_game(*game.arguments(), **game.settings())
    _, mean, cov, w, y, start, alpha, gamma, _ = game.dense_arguments()
    rng, n = np.random.default_rng(0), 200_000
    halves = [[np.linalg.cholesky(c[t, 0, 0] + 1e-15 * np.eye(len(c[t, 0, 0]))) for t in range(3)] for c in cov]
    state = np.tile(start[:, 0], (n, 1))
    paid = np.zeros((n, 3))
    for t in range(3):
        zero = nc.respond(solved, t, np.zeros((3, 1)))
        units = [nc.respond(solved, t, unit[:, None]) for unit in np.eye(3)]
        betas = []
        for i in range(3):
            slope = np.stack([unit[i] - zero[i] for unit in units], axis=1)
            betas.append(state @ slope.T + zero[i])
        for i in range(3):
            Z = mean[i][t, 0] + rng.standard_normal((n, mean[i].shape[2])) @ halves[i][t].T
            state[:, i] += np.sum(Z * betas[i], axis=1)
        missed = (y[t, 0] - state @ w[t]) ** 2
        for i in range(3):
            paid[:, i] += np.exp(-alpha[i] * (2 - t)) * (missed + gamma[i] * np.sum(betas[i] ** 2, axis=1))
    error = paid.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(paid.mean(axis=0) - nc.certify(solved).costs()) < 4.5 * error)


def test_steps_and_states_are_checked():
    game = random_game(1, N=2, T=2)
    certificate = nc.certify(nc.solve_game(*game.arguments(), **game.settings()))
    with pytest.raises(nc.InvalidInput, match=r"step: got 2\. Pass a step from 0 to 1\."):
        certificate.gains(2, game.start)
    with pytest.raises(nc.InvalidInput, match="forecasts: got nothing"):
        certificate.costs(1)
    with pytest.raises(nc.InvalidInput, match="forecasts: got shape"):
        certificate.costs(0, np.ones(5))
