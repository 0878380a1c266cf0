"""What agents remember of the joint game, against recursions and batch solutions that share no code with it."""

import numpy as np
import pytest

from nashcast.agents.joint.joint_blocks import JointBlocks, PublicBlock
from nashcast.games.joint import JointGame

NOTHING = np.empty((1, 0))


def alone(forgetting, horizon=1, size=3, ridge=2.0):
    game = JointGame(
        forgetting=(forgetting,), boldness=(1.0,), averaged=False, ridge=ridge, partial=False, largest_leverage=np.inf
    )
    return JointBlocks(game, [size], 0, 1, horizon)


def step(blocks, t, z, changes, known):
    """One row: forecast, then the labels of horizons 1 … H, made at t, t - 1, …"""
    said = blocks.forecast(z[None, None], NOTHING)
    leverages.append(said.leverage[0, 0, 0])
    blocks.add_row(t, None, True)
    steps = t - np.arange(len(changes))
    steps = np.where(known, steps, t)
    error = changes - blocks.recall(steps)[0, 0, 0]
    rho = np.array([e / (1.0 + leverages[s]) if k else 0.0 for e, s, k in zip(error, steps, known, strict=True)])
    blocks.learn(steps, rho[None, None, None], 0.0)
    return said.played[0, 0, 0]


leverages: list[float] = []


@pytest.mark.parametrize("forgetting", [1.0, 0.998, 0.97, 0.9])
def test_one_agent_alone_is_recursive_least_squares(forgetting):
    leverages.clear()
    rng, size, gamma = np.random.default_rng(1), 3, 2.0 * 3
    blocks = alone(forgetting)
    truth = rng.standard_normal(size)
    gram, cross, beta = gamma * np.eye(size), np.zeros(size), np.zeros(size)
    for t in range(10_000):
        z = rng.standard_normal(size)
        r = z @ truth + 0.1 * rng.standard_normal()
        said = step(blocks, t, z, np.array([r]), np.array([True]))[0]
        if t % 500 == 0:
            np.testing.assert_allclose(said, z @ beta, rtol=1e-10, atol=1e-10)
        # The batch problem: all rows, weighted, and a ridge that does not fade, centred on the last decoder.
        cross = forgetting * cross + (1.0 - forgetting) * gamma * beta + z * r
        gram = forgetting * gram + (1.0 - forgetting) * gamma * np.eye(size) + np.outer(z, z)
        beta = np.linalg.solve(gram, cross)
    np.testing.assert_allclose(blocks._decoders[0, 0, 0, 0], beta, rtol=1e-10)


def test_a_leverage_beyond_the_largest_counts_as_that():
    game = JointGame(forgetting=(1.0,), boldness=(1.0,), averaged=False, partial=False)
    blocks = JointBlocks(game, [1], 0, 1, 1)
    said = blocks.forecast(np.full((1, 1, 1), 100.0), NOTHING)
    assert said.leverage[0, 0, 0] == pytest.approx(1.0)
    blocks.add_row(0, None, True)
    blocks.learn(np.array([0]), np.full((1, 1, 1, 1), 0.5), 0.0)
    # ρ = e / (1 + 1): the decoder moves the forecast by leverage · ρ, as if the leverage were 1.
    assert 100.0 * blocks._decoders[0, 0, 0, 0, 0] == pytest.approx(0.5)


def test_without_forgetting_it_is_batch_ridge():
    leverages.clear()
    rng, size = np.random.default_rng(2), 3
    blocks, rows, changes = alone(1.0), [], []
    for t in range(500):
        z = rng.standard_normal(size)
        r = z.sum() + rng.standard_normal()
        step(blocks, t, z, np.array([r]), np.array([True]))
        rows.append(z)
        changes.append(r)
    Z, r = np.array(rows), np.array(changes)
    batch = np.linalg.solve(Z.T @ Z + 6.0 * np.eye(size), Z.T @ r)
    np.testing.assert_allclose(blocks._decoders[0, 0, 0, 0], batch, rtol=1e-10)


def test_each_horizon_is_its_own_batch_ridge():
    leverages.clear()
    rng, size, H, T = np.random.default_rng(3), 3, 4, 200
    blocks = alone(1.0, horizon=H)
    Z = rng.standard_normal((T, size))
    y = np.cumsum(Z[:, 0] + rng.standard_normal(T))  # y[t]: the target after row t
    start = 0.0
    level = np.concatenate([[start], y])  # level[t]: where the target stood at row t
    for t in range(T):
        made = t - np.arange(H)
        known = made >= 0
        changes = np.where(known, y[t] - level[np.maximum(made, 0)], 0.0)
        step(blocks, t, Z[t], changes, known)
    for h in range(1, H + 1):
        rows = np.arange(T - h + 1)
        r = y[rows + h - 1] - level[rows]
        batch = np.linalg.solve(Z[rows].T @ Z[rows] + 6.0 * np.eye(size), Z[rows].T @ r)
        np.testing.assert_allclose(blocks._decoders[0, 0, 0, h - 1], batch, rtol=1e-10)


def test_what_the_public_features_explain_is_taken_out():
    rng = np.random.default_rng(4)
    block = PublicBlock(1, 2)
    public = np.concatenate([np.ones((400, 1, 1)), rng.standard_normal((400, 1, 1))], axis=2)
    mixing = rng.standard_normal((2, 3))
    noise = rng.standard_normal((400, 1, 3))
    private = (public[:, 0] @ mixing)[:, None] + noise
    game = JointGame(forgetting=(1.0,), boldness=(1.0,), averaged=False)
    blocks = JointBlocks(game, [3], 2, 1, 1)
    for t in range(400):
        blocks.forecast(private[t][None], public[t])
        gain = block.learn(public[t])
        blocks.add_row(t, gain, True)
    # Forgetting 0.998 over 400 rows of noise: coefficients are known to about 1/√250.
    np.testing.assert_allclose(blocks._coefficients[0, 0], mixing.T, atol=0.25)


def test_an_absent_agent_contributes_nothing_and_forgets_nothing():
    leverages.clear()
    rng = np.random.default_rng(5)
    blocks = alone(1.0)
    for t in range(50):
        z = rng.standard_normal(3)
        step(blocks, t, z, np.array([z.sum()]), np.array([True]))
    before = blocks._decoders.copy()
    said = blocks.forecast(np.zeros((1, 1, 3)), NOTHING)
    assert said.played[0, 0, 0, 0] == 0.0
    assert said.leverage[0, 0, 0] == 0.0
    blocks.add_row(50, None, True)
    blocks.learn(np.array([50]), np.ones((1, 1, 1, 1)), 0.0)
    np.testing.assert_array_equal(blocks._decoders, before)
