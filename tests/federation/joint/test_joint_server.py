"""The server's side of the joint game: what it takes over from agents as they come to explain their features."""

import numpy as np
import pytest

from nashcast.agents.joint.joint_blocks import JointBlocks, PublicBlock, averaging_rate
from nashcast.federation.joint.joint_server import JointServer
from nashcast.fields import Fields
from nashcast.games.joint import JointGame

AGENTS, SIZE, PUBLIC, Y_DIM = 3, 4, 2, 2
USUAL = np.array([2.0, 0.5])


class Game:
    """Agents, public block and server without a federation. Features lean on the public ones."""

    def __init__(self, seed=0, horizon=1, game=None):
        game = game or JointGame()
        self.rng, self.horizon = np.random.default_rng(seed), horizon
        self.blocks = JointBlocks(game, [SIZE] * AGENTS, PUBLIC if game.partial else 0, Y_DIM, horizon)
        self.public_block = PublicBlock(Y_DIM, PUBLIC)
        self.server = JointServer(game, AGENTS, PUBLIC, Y_DIM, horizon)
        self.mixed = self.rng.standard_normal((AGENTS, SIZE, PUBLIC))
        self.past = []

    def row(self):
        public = self.rng.standard_normal((Y_DIM, PUBLIC))
        own = 0.5 * self.rng.standard_normal((AGENTS, Y_DIM, SIZE))
        return own + np.einsum("isq,kq->iks", self.mixed, public), public

    def forecast(self, features, public):
        said = self.blocks.forecast(features, public)
        said = said._replace(said=said.said * USUAL[:, None])
        return self.server.forecast(said, public, USUAL)

    def step(self, t, learn=True):
        features, public = self.row()
        self.past.append((features, public))
        self.forecast(features, public)
        gain = self.public_block.learn(public)
        self.blocks.add_row(t, gain, True)
        self.server.add_row(t, True, gain)
        if learn:
            changes = np.repeat((features.sum(axis=(0, 2)) * USUAL)[:, None], self.horizon, axis=1)
            steps, known = np.maximum(t - np.arange(self.horizon), 0), t - np.arange(self.horizon) >= 0
            recalled = self.blocks.recall(steps) * USUAL[:, None]
            residuals = self.server.residuals(steps, changes, known, recalled, USUAL)
            self.blocks.learn(steps, residuals, averaging_rate(t + 1, 0.998))


@pytest.mark.parametrize("horizon", [1, 3])
def test_learning_what_is_public_changes_no_joint_forecast(horizon):
    game = Game(horizon=horizon)
    for t in range(40):
        game.step(t)
    probe = game.row()
    before = game.forecast(*probe).changes
    game.server._guard._mean[:] = 1e9  # the guard must not decide
    before = game.forecast(*probe).changes
    contributions = game.blocks.forecast(*probe).played
    game.step(40, learn=False)
    after = game.forecast(*probe).changes
    assert np.abs(game.blocks.forecast(*probe).played - contributions).max() > 1e-6  # the agents did move
    np.testing.assert_allclose(after, before, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("horizon", [1, 3])
def test_what_it_recalls_of_a_row_is_what_it_said_of_it_until_decoders_move(horizon):
    game = Game(seed=1, horizon=horizon)
    for t in range(30):
        game.step(t)
    game.server._guard._mean[:] = 1e9
    features, public = game.row()
    said = game.forecast(features, public)
    gain = game.public_block.learn(public)
    game.blocks.add_row(30, gain, True)
    game.server.add_row(30, True, gain)
    for t in range(31, 34):  # rows without labels move what is public alone
        game.step(t, learn=False)
    steps, game.server._judge._learnt[:] = np.full(horizon, 30), 0  # errors are not clipped
    heard = game.server.residuals(
        steps,
        np.zeros((Y_DIM, horizon)),
        np.ones(horizon, dtype=bool),
        game.blocks.recall(steps) * USUAL[:, None],
        USUAL,
    )
    boldness = np.array([1.0, 16.0, 1.0, 16.0])[:, None, None]
    leverage = game.server._leverages[30][[0, 0, 1, 1]][:, :, None]
    expected = -said.changes[:-1] / USUAL[:, None] * boldness / (1.0 + boldness * leverage)
    np.testing.assert_allclose(heard[:-1, 0], expected, rtol=1e-9, atol=1e-12)


def test_a_restored_server_continues_bit_for_bit():
    game, other = Game(seed=2), Game(seed=2)
    for t in range(25):
        game.step(t)
        other.step(t)
    other.server = JointServer(JointGame(), AGENTS, PUBLIC, Y_DIM, 1)
    saved = {name: value.copy() for name, value in game.server.save().items()}
    other.server.restore(Fields(saved))
    for t in range(25, 30):
        game.step(t)
        other.step(t)
    probe = game.row()
    np.testing.assert_array_equal(game.forecast(*probe).changes, other.forecast(*probe).changes)


def test_without_partialling_nothing_is_taken_over():
    game = Game(game=JointGame(partial=False))
    for t in range(10):
        game.step(t)
    assert not game.server._taken.any()


@pytest.mark.parametrize("horizon", [1, 2])
def test_features_that_change_their_meaning_leave_the_joint_forecast_as_it_was(horizon):
    game = Game(seed=4, horizon=horizon)
    for t in range(40):
        game.step(t)
    turn = 1.7 * np.eye(SIZE) + 0.2 * game.rng.standard_normal((AGENTS, SIZE, SIZE))
    lean = game.rng.standard_normal((AGENTS, SIZE, PUBLIC))

    def revised(features, public):
        """Other units, and more of the public features in the private ones."""
        return np.einsum("isd,ikd->iks", turn, features) + np.einsum("isq,kq->iks", lean, public), 0.5 * public

    game.server._guard._mean[:] = 1e9
    probes = [game.row() for _ in range(30)]
    before = np.array([game.forecast(*probe).changes for probe in probes])
    old = [np.array(part) for part in zip(*game.past, strict=True)]
    new = [np.array(part) for part in zip(*(revised(*row) for row in game.past), strict=True)]
    game.public_block.relearn(new[1])
    features, public, unit = (new[0], old[0]), (new[1], old[1]), np.ones(Y_DIM)
    stopped = game.blocks.relearn(features, public, game.public_block, 40, unit, game.server.included)
    assert stopped is not None
    assert stopped.shape == (len(JointGame().variants) + 1, Y_DIM, horizon, PUBLIC)
    game.server.relearn(public, 40, unit)
    game.server.take_over(stopped)
    after = np.array([game.forecast(*revised(*probe)).changes for probe in probes])
    game.server._player.take_over(-stopped)
    without = np.array([game.forecast(*revised(*probe)).changes for probe in probes])
    moved, moved_without = (np.sqrt(np.mean((said - before) ** 2)) for said in (after, without))
    assert moved < 0.03 * np.sqrt(np.mean(before**2))
    assert moved < 0.8 * moved_without
