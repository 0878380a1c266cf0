"""The joint game in its window form, against dense solutions that share no code with it."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.joint.window_blocks import WindowBlocks
from nashcast.federation.joint.window_server import WindowServer
from nashcast.fields import Fields
from nashcast.games.joint import JointGame

PUBLIC, USUAL = 2, np.array([1.0])


class Team:
    """Agents of one size and a server, in the window form; errors are not clipped."""

    def __init__(self, window, forgetting=0.99, boldness=1.0, agents=3, size=2, ridge=2.0):
        self.game = JointGame(forgetting=(forgetting,), boldness=(boldness,), ridge=ridge, window=window)
        self.blocks = WindowBlocks(self.game, [size] * agents, 0, 1, 1)
        self.server = WindowServer(self.game, agents, PUBLIC, 1, 1)
        self.server._guard.factor = lambda leverage: None  # pyright: ignore
        self.server._judge.clipped = lambda error, known: error  # pyright: ignore

    def forecast(self, features, public):
        return self.server.forecast(self.blocks.forecast(features, public), public, USUAL).changes[0, 0, 0]

    def learn(self, t, change):
        self.blocks.add_row(t, None, True)
        self.server.add_row(t, True, np.zeros(PUBLIC))
        steps, known = np.array([t]), np.array([True])
        heard = self.server.residuals(steps, np.array([[change]]), known, self.blocks.recall(steps), USUAL)
        self.blocks.learn(steps, heard, 0.0)


def stream(steps, agents=3, size=2, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((steps, 1, 1))
    features = 0.7 * rng.standard_normal((steps, agents, 1, size)) + 0.7 * common[..., None]
    public = rng.standard_normal((steps, 1, PUBLIC))
    truth = rng.standard_normal(agents * size)
    changes = features.reshape(steps, -1) @ truth + public[:, 0, 0] + 0.1 * rng.standard_normal(steps)
    return features, public, changes


@pytest.mark.parametrize("boldness", [1.0, 4.0])
@pytest.mark.parametrize("forgetting", [1.0, 0.97])
@pytest.mark.parametrize("window", [1, 7])
def test_it_is_the_dense_solution_window_by_window(window, forgetting, boldness):
    features, public, changes = stream(60)
    team = Team(window, forgetting, boldness)
    blocks = [np.r_[0:2], np.r_[2:4], np.r_[4:6], np.r_[6:8]]  # the player's come last
    ridge = np.diag([4.0] * 6 + [4.0] * 2)
    information, centre, rows = ridge.copy(), np.zeros(8), []

    def faded(matrix):
        return forgetting**window * matrix + (1.0 - forgetting**window) * ridge

    information = faded(information)
    for t in range(60):
        z = np.concatenate([features[t].ravel(), public[t, 0]])
        beta = centre.copy()
        if rows:  # Σ (r - zᵀβ)² + ‖β - β̄‖² in Γ/μ, private blocks only
            Z, r = np.array([row for row, _ in rows]), np.array([label for _, label in rows])
            prior = information / boldness
            beta = np.linalg.solve(Z.T @ Z + prior, Z.T @ r + prior @ centre)
        np.testing.assert_allclose(team.forecast(features[t], public[t]), z @ beta, rtol=1e-8, atol=1e-9)
        team.learn(t, changes[t])
        rows.append((z, changes[t]))
        if len(rows) == window:
            Z, r = np.array([row for row, _ in rows]), np.array([label for _, label in rows])
            prior = information / boldness
            centre = np.linalg.solve(Z.T @ Z + prior, Z.T @ r + prior @ centre)
            whole = np.zeros((8, 8))
            for block in blocks:
                whole[np.ix_(block, block)] = (information + Z.T @ Z)[np.ix_(block, block)]
            information, rows = faded(whole), []


def test_one_agent_without_forgetting_is_batch_ridge_across_windows():
    features, _, changes = stream(50, agents=1)
    team, nothing = Team(8, forgetting=1.0, agents=1), np.zeros((1, PUBLIC))
    for t in range(50):
        Z, r = features[:t, 0, 0], changes[:t]
        beta = np.linalg.solve(Z.T @ Z + 4.0 * np.eye(2), Z.T @ r)
        np.testing.assert_allclose(team.forecast(features[t], nothing), features[t, 0, 0] @ beta, rtol=1e-9, atol=1e-9)
        team.learn(t, changes[t])


def test_nobody_gains_by_deviating_within_a_window():
    features, public, changes = stream(6)
    team = Team(10, forgetting=1.0)
    for t in range(6):
        team.forecast(features[t], public[t])
        team.learn(t, changes[t])
    a, n = team.server._residuals[0, 0, :6], 6
    Z = [features[:n, i, 0] for i in range(3)] + [public[:n, 0]]
    moves = [np.linalg.solve(4.0 * np.eye(2), own.T @ a) for own in Z]  # Γ is the ridge
    left = changes[:n] - sum(own @ move for own, move in zip(Z, moves, strict=True))

    def cost(own, move, others):
        return ((others - own @ move) ** 2).sum() + 4.0 * move @ move

    for own, move in zip(Z, moves, strict=True):
        others = left + own @ move
        best = np.linalg.solve(own.T @ own + 4.0 * np.eye(2), own.T @ others)
        assert cost(own, move, others) == pytest.approx(cost(own, best, others), rel=1e-10)
        assert cost(own, move + 0.01, others) > cost(own, move, others)


def owners(steps=700, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((steps, 4))
    return X, (X @ np.array([1.0, -1.0, 1.0, -1.0]) + 0.1 * rng.standard_normal(steps)).cumsum()


def agents_of():
    return [nc.Agent(nc.encoders.Lags(lags=1), name=f"owner {i}", inputs=[i]) for i in range(4)]


def test_a_federation_plays_it(tmp_path):
    X, Y = owners()
    federation = nc.Federation(agents_of(), game=nc.JointGame(window=40), start=0.0)
    errors = []
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        forecast = federation.predict_one(x)
        errors.append(forecast - y)
        federation.learn_one(x, y)
        if t == 300:
            federation.save(tmp_path / "state")
            other = nc.Federation(agents_of(), game=nc.JointGame(window=40), start=0.0)
            other.load(tmp_path / "state")
        elif t > 300:
            assert other.predict_one(x) == forecast
            other.learn_one(x, y)
    changes = np.diff(Y, prepend=0.0)
    assert np.mean(np.square(errors[200:])) < 0.02 * np.mean(changes[200:] ** 2)


def test_late_and_missing_labels_are_survived():
    X, Y = owners(200)
    federation = nc.Federation(agents_of(), game=nc.JointGame(window=10), start=0.0)
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        assert np.isfinite(federation.predict_one(x))
        federation.learn_one(x, y if t % 3 else None)
        if t % 6 == 2:
            federation.learn_late(t - 2, Y[t - 2])
    assert np.isfinite(federation.predict_one(X[0]))


def test_settings_are_refused_by_name():
    with pytest.raises(nc.InvalidInput, match="window"):
        nc.JointGame(window=0)
    with pytest.raises(nc.InvalidInput, match="horizon: got 2 with a window"):
        nc.Federation(agents_of(), game=nc.JointGame(window=10), horizon=2)


def test_a_damaged_count_is_refused():
    team = Team(5)
    saved = team.server.save()
    with pytest.raises(nc.InvalidInput):
        team.server.restore(Fields({**saved, "counts": np.array([5, -1])}))
