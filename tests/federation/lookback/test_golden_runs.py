"""Whole runs of the published code, replayed through the federation from the recorded features."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.encoders import BuiltEncoder
from nashcast.federation.lookback import algorithm, placements
from nashcast.federation.lookback.placements import solve_views
from nashcast.federation.paper import as_paper_agent
from nashcast.games.moments.features import relu_moments
from nashcast.mixing.mixture_weights import mixture_weights
from support.golden import trace
from support.reference import dense_game


class Recorded(BuiltEncoder):
    """An encoder that gives back the features of a trace, and the moments that belong to them."""

    def __init__(self, g, agent):
        self.g, self.agent = g, agent
        self.features = int(g["d_z"])

    def build(self, x_dim, y_dim):
        return self

    def start(self):
        return 0

    def advance(self, context):
        return context.state + 1

    def encode(self, context):
        return self.g["Z"][self.agent, context.state - 1]

    def moments(self, inputs, features, noise):
        if str(self.g["kind"]) != "rfn":
            return None
        a = (inputs @ self.g["A"][self.agent].T)[:, :, None] + self.g["b"][self.agent]
        return relu_moments(a, float(self.g["sigma"]))


def made(g):
    window = nc.Window(int(g["client_T"]), ridge=float(g["gamma"]), decay=float(g["alpha"]))
    agents = [as_paper_agent(nc.Agent(Recorded(g, i), decoders=window)) for i in range(int(g["N"]))]
    game = nc.LookbackGame(lookback=int(g["game_T"]), every=int(g["sync_freq"])) if bool(g["nash"]) else None
    return nc.paper_federation(agents, game=game, y_dim=int(g["d_y"]), start=g["y"][0]), agents


def run(g):
    rounds = int(g["rounds"])
    return made(g)[0].replay(g["x"][:rounds], g["y"][1:])


def assert_same_run(result, g):
    np.testing.assert_allclose(result.forecasts, g["server_outputs"][1:], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(result.weights, g["mixture_weights"], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(result.agents, g["client_predictions"][1:], rtol=1e-8, atol=1e-8)
    assert result.mse == pytest.approx(float(g["mse"]), rel=1e-8)


@pytest.mark.parametrize("name", ["esn2_concept2d_nogame.corrected", "fixed2_concept2d_nogame.corrected"])
def test_runs_without_game(name):
    g = trace(name)
    assert_same_run(run(g), g)


@pytest.mark.parametrize("name", ["esn2_concept2d_nogame.corrected", "fixed2_concept2d_nash.corrected"])
def test_greedy_decoders_and_features_at_every_step(name):
    """Before the first game the agents' own decoders are those of the trace; without a game, always."""
    g = trace(name)
    federation, agents = made(g)
    steps = int(g["rounds"]) if not bool(g["nash"]) else int(g["game_T"])
    for t in range(steps):
        federation.predict_one(g["x"][t])
        for i, agent in enumerate(agents):
            np.testing.assert_allclose(agent._decoder, g["local_betas"][t, i], rtol=1e-8, atol=1e-10)
            np.testing.assert_array_equal(agent._pending.features, g["Z"][i, t])
        federation.learn_one(g["x"][t], g["y"][t + 1])


def as_published(monkeypatch):
    """Erratum 5: the published code fills the (y_dim, agents) forecasts row by row from the (agents, y_dim) ones."""

    def reshaped(forecasts, target, **settings):
        return mixture_weights(np.ascontiguousarray(forecasts.T).reshape(forecasts.shape), target, **settings)

    monkeypatch.setattr(algorithm, "mixture_weights", reshaped)


@pytest.mark.parametrize("name", ["esn2_concept2d_nogame", "fixed2_concept2d_nogame"])
def test_runs_without_game_as_published(name, monkeypatch):
    as_published(monkeypatch)
    g = trace(name)
    assert_same_run(run(g), g)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("rfn2_logistic_nash", True),
        ("fixed2_concept2d_nash", True),
        ("rfn2_logistic_nash.corrected", False),
        ("fixed2_concept2d_nash.corrected", False),
    ],
)
def test_runs_with_the_game_as_printed_or_published(name, published, monkeypatch):
    """The dense theorem with its switches, in the place of our solver: everything else is the federation's own."""

    def dense(views, window, *rest):
        features = [view.features for view in views]
        T, p, _ = features[0].shape
        means = [view.features if view.means is None else view.means for view in views]
        blank = [np.zeros((T, p, p, Z.shape[2], Z.shape[2])) for Z in features]
        spread = [zero if view.covariance is None else view.covariance for view, zero in zip(views, blank, strict=True)]
        prior = [np.zeros((T, Z.shape[2])) for Z in features]
        starts = np.tile(window.targets[0], (len(features), 1))
        decay, ridge = np.array([view.decay for view in views]), np.array([view.ridge for view in views])
        solved = dense_game.solve(
            features, means, spread, window.weights, window.targets[1:], starts, decay, ridge, prior,
            printed_recursion=True, published_assembly=published,
        )  # fmt: skip
        exact = solve_views(views, window)  # for the plan alone
        return exact._replace(decoders=np.array(solved.decoders), forecasts=solved.forecasts.reshape(T + 1, -1, p))

    monkeypatch.setattr(placements, "solve_views", dense)
    if published:
        as_published(monkeypatch)
    g = trace(name)
    assert_same_run(run(g), g)


def test_the_exact_game_comes_close_where_decay_is_tiny():
    g = trace("rfn2_logistic_nash.corrected")
    result = run(g)
    assert result.mse == pytest.approx(float(g["mse"]), rel=1e-4)
    np.testing.assert_allclose(result.forecasts, g["server_outputs"][1:], atol=1e-4)
