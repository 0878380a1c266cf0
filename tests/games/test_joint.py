"""The joint game: its closed form against Theorem 2's solver, against brute force, and against its definition."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.errors import InvalidInput
from nashcast.games.joint import deviation_gains, joint_equilibrium


def random_joint_game(seed):
    rng = np.random.default_rng(seed)
    agents, y_dim = rng.integers(1, 9), rng.integers(1, 5)
    sizes = rng.integers(1, 7, agents)
    Z = [rng.standard_normal((y_dim, d)) for d in sizes]
    information = []
    for d in sizes:
        rows = rng.standard_normal((d + 3, d))
        information.append(rows.T @ rows + 0.5 * np.eye(d))
    before = [rng.standard_normal(d) for d in sizes]
    change = rng.standard_normal(y_dim)
    error = change - sum(z @ b for z, b in zip(Z, before, strict=True))
    return Z, information, before, change, error


def square_root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(values) @ vectors.T


@pytest.mark.parametrize("block", range(10))
def test_it_is_theorem_2_on_whitened_features(block):
    for seed in range(30 * block, 30 * block + 30):
        Z, information, before, change, error = random_joint_game(seed)
        roots = [square_root(G) for G in information]
        whitened = [(z @ np.linalg.inv(root))[None] for z, root in zip(Z, roots, strict=True)]
        prior = [(root @ b)[None] for root, b in zip(roots, before, strict=True)]
        y_dim = len(change)
        solved = nc.solve_game(
            whitened, np.ones((1, len(Z))), change[None], np.zeros(y_dim), ridge=1.0, prior=prior, compiled=False
        )
        moves = joint_equilibrium(Z, information, error).moves
        for root, b, move, played in zip(roots, before, moves, solved.decoders, strict=True):
            np.testing.assert_allclose(b + move, np.linalg.solve(root, played[0]), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("block", range(10))
def test_it_solves_the_stationarity_equations_of_all_agents_at_once(block):
    for seed in range(30 * block, 30 * block + 30):
        Z, information, _, _, error = random_joint_game(seed)
        joined = np.concatenate(Z, axis=1)
        system = joined.T @ joined
        at = 0
        for G in information:
            system[at : at + len(G), at : at + len(G)] += G
            at += len(G)
        brute = np.linalg.solve(system, joined.T @ error)
        np.testing.assert_allclose(
            np.concatenate(joint_equilibrium(Z, information, error).moves), brute, rtol=1e-9, atol=1e-10
        )


@pytest.mark.parametrize("boldness", [1.0, 16.0])
def test_no_agent_gains_by_deviating(boldness):
    for seed in range(300):
        Z, information, _, _, error = random_joint_game(seed)
        moves = joint_equilibrium(Z, information, error, boldness).moves
        gains = deviation_gains(Z, information, error, moves, boldness)
        assert np.abs(gains).max() < 1e-10


def test_a_deviation_is_found_out():
    Z, information, _, _, error = random_joint_game(3)
    moves = joint_equilibrium(Z, information, error).moves
    moves[0] = moves[0] + 0.1
    assert deviation_gains(Z, information, error, moves)[0] > 1e-6


def test_order_of_agents_units_and_zero_features_change_nothing():
    Z, information, _, _, error = random_joint_game(11)
    moves = joint_equilibrium(Z, information, error).moves
    turned = joint_equilibrium(Z[::-1], information[::-1], error).moves[::-1]
    for a, b in zip(moves, turned, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    # Features in other units: the information is in their squares, the decoder in their inverse.
    scaled = joint_equilibrium([1e3 * z for z in Z], [1e6 * G for G in information], error).moves
    for a, b in zip(moves, scaled, strict=True):
        np.testing.assert_allclose(a, 1e3 * b, rtol=1e-9)
    padded = [np.concatenate([z, np.zeros((len(z), 1))], axis=1) for z in Z]
    wider = [np.pad(G, ((0, 1), (0, 1))) + np.diag([0.0] * len(G) + [1.0]) for G in information]
    for a, b in zip(moves, joint_equilibrium(padded, wider, error).moves, strict=True):
        np.testing.assert_allclose(a, b[:-1], rtol=1e-12)
        assert b[-1] == 0.0


def test_settings_are_checked():
    with pytest.raises(InvalidInput, match="forgetting"):
        nc.JointGame(forgetting=(1.5,))
    with pytest.raises(InvalidInput, match="boldness"):
        nc.JointGame(boldness=(0.0,))
    with pytest.raises(InvalidInput, match="ridge"):
        nc.JointGame(ridge=0.0)
