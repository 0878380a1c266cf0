"""Each erratum that touches the core: the printed form fails the definition, the corrected one does not."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.games.moments.features import relu_moments
from support.games import random_game, relative, stacked
from support.reference import best_response, dense_game


def relative_gains(game, **switches):
    """Each agent's gain from deviating, as a share of its cost, under the dense theorem with the given switches."""
    arguments = game.dense_arguments()
    Z, mean, cov, w, y, start, alpha, gamma, prior = arguments
    dense = dense_game.solve(*arguments, **switches)
    K, k = best_response.split_rules(dense.G, dense.H, [z.shape[2] for z in Z])
    gains = []
    for i in range(len(Z)):
        played, best = best_response.values(i, K, k, mean, cov, w, y, alpha, gamma, prior)
        cost = best_response.at(played[0], start.ravel())
        gains.append((cost - best_response.at(best[0], start.ravel())) / cost)
    return np.array(gains)


def drawn(seed, alpha, T, **more):
    game = random_game(seed, N=3, T=T, p=1, sizes=[2, 2, 2], noisy=False, prior=False, **more)
    return game._replace(alpha=np.full(3, alpha), gamma=np.full(3, 0.5), w=np.abs(game.w) + 0.3)


def test_1_the_printed_recursion_is_not_an_equilibrium():
    """α = 0.5, T = 4: without the factor on Â some agent gains more than 1e-4 of its cost; with it nobody gains."""
    printed = max(relative_gains(drawn(seed, 0.5, 4), printed_recursion=True).max() for seed in range(5))
    corrected = max(relative_gains(drawn(seed, 0.5, 4)).max() for seed in range(5))
    assert printed > 1e-4
    assert corrected < 1e-9


@pytest.mark.parametrize(("alpha", "T"), [(0.0, 5), (0.7, 2)])
def test_1_the_printed_recursion_is_right_without_decay_or_for_short_windows(alpha, T):
    """Hence small experiments did not notice."""
    game = drawn(0, alpha, T)
    printed = dense_game.solve(*game.dense_arguments(), printed_recursion=True)
    exact = nc.solve_game(*game.arguments(), **game.settings())
    assert relative(stacked(exact.decoders), np.array(printed.decoders)) < 1e-9


def test_2_the_appendix_writes_a_different_mixture_matrix_which_misses_the_optimum():
    rng = np.random.default_rng(2)
    Y, y, kappa, N = rng.standard_normal((2, 4)), rng.standard_normal(2), 0.7, 4
    b, one = 2 * Y.T @ y, np.ones(N)

    def weights(A):
        inverse = np.linalg.inv(A)
        return inverse @ (b - (one @ inverse @ b - 1.0) / (one @ inverse @ one) * one)

    def objective(w):
        return np.sum((y - Y @ w) ** 2) + kappa * w @ w

    theorem, appendix = weights(2 * (Y.T @ Y + kappa * np.eye(N))), weights(2 * N * Y.T @ Y + kappa * np.eye(N))
    ours = nc.mixture_weights(Y, y, ridge=kappa)
    np.testing.assert_allclose(ours, theorem, rtol=1e-12)
    assert objective(appendix) > objective(ours) * 1.001


def test_3_rows_that_share_their_noise_are_not_independent():
    """The corollary for y_dim > 1 takes E[Z_k Z_l] = E[Z_k] E[Z_l]; a million draws deny it and agree with us."""
    rng = np.random.default_rng(3)
    a, sigma = rng.uniform(-0.5, 0.5, (2, 3)), np.array([0.8, 0.5])
    W = rng.standard_normal((1_000_000, 1, 3))
    Z = np.maximum(a + sigma[:, None] * W, 0.0)
    sampled = np.mean(Z[:, 0] * Z[:, 1], axis=0) - Z[:, 0].mean(0) * Z[:, 1].mean(0)
    exact = np.diagonal(relu_moments(a, sigma).covariance[0, 1])
    assert np.all(np.abs(sampled - exact) < 5e-3)
    assert np.all(exact > 0.01)  # the corollary has 0 here


def test_3_the_corollarys_sum_over_all_row_pairs_does_not_belong_in_a_hat():
    """Â^(i,i) = w² E[ZᵀZ], a sum over equal rows; over all pairs of rows it is something else."""
    rng = np.random.default_rng(4)
    game = random_game(4, N=1, T=1, p=2, sizes=[2], noisy=True, prior=False)
    mean, cov, w = game.mean[0][0], game.dense_arguments()[2][0][0], game.w[0, 0]
    half = np.linalg.cholesky(cov.transpose(0, 2, 1, 3).reshape(4, 4) + 1e-12 * np.eye(4))
    Z = mean + (rng.standard_normal((400_000, 4)) @ half.T).reshape(-1, 2, 2)
    sampled = w**2 * np.einsum("nkp,nkq->pq", Z, Z) / len(Z)
    pairs = [[w**2 * (np.outer(mean[k], mean[l]) + cov[k, l]) for l in range(2)] for k in range(2)]
    equal_rows, all_rows = pairs[0][0] + pairs[1][1], sum(sum(row) for row in pairs)
    assert relative(sampled, equal_rows) < 0.02
    assert relative(sampled, all_rows) > 0.1


def test_4_the_published_block_assembly_scrambles_games_with_more_than_one_feature():
    game = drawn(0, 0.0, 3)
    published = dense_game.solve(*game.dense_arguments(), published_assembly=True)
    exact = nc.solve_game(*game.arguments(), **game.settings())
    assert relative(stacked(exact.decoders), np.array(published.decoders)) > 1e-2
    assert relative_gains(game, published_assembly=True).max() > 1e-4

    single = random_game(1, N=3, T=3, p=1, sizes=[1, 1, 1], noisy=True, prior=False)
    published = dense_game.solve(*single.dense_arguments(), published_assembly=True)
    exact = nc.solve_game(*single.arguments(), **single.settings())
    assert relative(stacked(exact.decoders), np.array(published.decoders)) < 1e-9


def echo_game(rng, samples, *, recurrent=6.0, noise=4.0, ridge=0.05):
    """Two echo states with strong memory, look-back 3: the solved game, its drawn features, weights and targets."""
    N, T, d = 2, 3, 2
    drive, signs = 2.0 * rng.standard_normal((N, T, 1, d)), rng.choice([-1.0, 1.0], N)
    means, cov, drawn = np.empty((T, N, 1, d)), np.zeros((T, N, 1, 1, d, d)), []
    for i in range(N):
        Z = [np.broadcast_to(hard_sigmoid(drive[i, 0]), (samples, 1, d))]
        for t in range(1, T):
            shock = noise * rng.standard_normal((samples, 1, d))
            Z.append(hard_sigmoid(drive[i, t] + recurrent * signs[i] * Z[-1] + shock))
        drawn.append([each[:, 0] for each in Z])
        for t in range(T):
            means[t, i] = Z[t].mean(axis=0)
            cov[t, i, 0, 0] = np.diag(Z[t][:, 0].var(axis=0))  # columns are independent
    w, y = rng.uniform(0.3, 0.7, (T, N)), 2.0 * rng.standard_normal((T, 1))
    return nc.solve_game(means.copy(), w, y, np.zeros(1), ridge=ridge, means=means, covariance=cov), drawn, w, y, ridge


def hard_sigmoid(v):
    return np.clip(v / 6.0 + 0.5, 0.0, 1.0)


def test_14_an_echo_states_features_depend_on_the_forecasts_before_them():
    """By simulation: at the last step an agent gains by another rule, though the certificate finds nothing to gain."""
    n = 40_000
    solved, Z, w, y, gamma = echo_game(np.random.default_rng(0), n)
    T, N = w.shape
    state, paid = np.zeros((n, N)), np.zeros((n, N))
    before, betas = state, []
    for t in range(T):
        zero = nc.respond(solved, t, np.zeros((N, 1)))
        units = [nc.respond(solved, t, unit[:, None]) for unit in np.eye(N)]
        slopes = [np.stack([unit[i] - zero[i] for unit in units], axis=1) for i in range(N)]
        betas = [state @ slopes[i].T + zero[i] for i in range(N)]
        before = state
        state = before + np.column_stack([np.sum(Z[i][t] * betas[i], axis=1) for i in range(N)])
        missed = (y[t, 0] - state @ w[t]) ** 2
        paid += np.column_stack([missed + gamma * np.sum(beta**2, axis=1) for beta in betas])
    assert nc.certify(solved).worst < 1e-9
    assert "memory" in nc.certify(solved).assumes
    fit, judge = slice(0, n // 2), slice(n // 2, n)
    seen = np.column_stack([before, np.ones(n)])
    for i in range(N):
        own = w[-1, i] * np.sum(Z[i][-1] * betas[i], axis=1)
        left = y[-1, 0] - state @ w[-1] + own
        # β = K · seen: the best K on one half of the draws is a ridge regression; the other half judges it.
        design = w[-1, i] * (Z[i][-1][:, :, None] * seen[:, None, :]).reshape(n, -1)
        effort = gamma * np.kron(np.eye(Z[i][-1].shape[1]), seen[fit].T @ seen[fit])
        best = np.linalg.solve(design[fit].T @ design[fit] + effort, design[fit].T @ left[fit])
        beta = seen @ best.reshape(-1, N + 1).T
        other = (left - design @ best) ** 2 + gamma * np.sum(beta**2, axis=1)
        played = (left - own) ** 2 + gamma * np.sum(betas[i] ** 2, axis=1)
        gain = (played - other)[judge]
        assert gain.mean() > 8 * gain.std() / np.sqrt(len(gain))
        assert 1e-3 < gain.mean() / paid[judge, i].mean() < 0.05
