"""The prior-centred game in a federation: by hand, its certificate, its limits, and what it does not do."""

import numpy as np
import pytest

import nashcast as nc
from nashcast import datasets
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.federation.compiled.replay import replay
from support.federations import random_stream


def quadratic(x):
    """One, the last two inputs and their products."""
    u = x[-2:]
    return np.concatenate([[1.0], u, np.outer(u, u)[np.triu_indices(2)]])


def agents(forgetting=0.97, ridge=0.2, order=(0, 1)):
    both = [
        PaperAgent(nc.encoders.Linear(1), forgetting=forgetting, ridge=ridge, name="a"),
        PaperAgent(nc.encoders.Callable(quadratic, features=6), forgetting=forgetting, ridge=ridge, name="b"),
    ]
    return [both[i] for i in order]


def by_hand(X, Y, start, lookback, forgetting=0.97, ridge=0.2, game_ridge=3.0):
    """The same federation written out: decoders over all history, weights, the game around them, forecasts from y_t."""
    known = np.vstack([start, Y])
    ones, products = np.ones((len(X), 1)), np.stack([np.outer(x, x)[np.triu_indices(len(x))] for x in X])
    Z = [np.hstack([ones, X]), np.hstack([ones, X, products])]
    said = np.empty((len(X) + 1, 2))
    said[0] = start[0]
    weights, mixed = np.empty((len(X), 2)), np.empty(len(X))
    stands = [np.empty(len(X)), np.empty(len(X))]
    for t in range(len(X)):
        w = weights[t] = nc.mixture_weights(said[t][None], known[t], ridge=1.0)
        decoders = []
        for i in range(2):
            fading = forgetting ** np.arange(t - 1, -1, -1.0)
            past = Z[i][:t] * fading[:, None]
            residual = known[1 : t + 1, 0] - stands[i][:t]
            decoders.append(np.linalg.solve(past.T @ Z[i][:t] + ridge * np.eye(Z[i].shape[1]), past.T @ residual))
        now = said[t].copy()
        if t >= lookback:
            window = slice(t - lookback, t)
            solved = nc.solve_game(
                [np.ascontiguousarray(z[window, None, :]) for z in Z], weights[window], known[window.start + 1 : t + 1],
                known[window.start], ridge=game_ridge, prior=[np.repeat(b[None], lookback, axis=0) for b in decoders],
            )  # fmt: skip
            decoders, now = [b[-1] for b in solved.decoders], np.full(2, known[t, 0])
        for i in range(2):
            stands[i][t] = now[i]
            said[t + 1, i] = now[i] + Z[i][t] @ decoders[i]
        mixed[t] = w @ said[t + 1]
    return mixed


@pytest.mark.parametrize("lookback", [1, 3])
def test_it_is_the_algorithm_written_out(lookback):
    X, Y = random_stream(np.random.default_rng(lookback), 1, steps=25, x_dim=2)
    start = np.array([0.3])
    game = nc.LookbackGame(lookback=lookback, memory=True, ridge=3.0)
    found = nc.paper_federation(agents(), game=game, start=start).replay(X, Y)
    np.testing.assert_allclose(found.forecasts[:, 0], by_hand(X, Y, start, lookback), atol=1e-8)


def test_nobody_gains_by_deviating_from_it():
    X, Y = random_stream(np.random.default_rng(5), 1, steps=20, x_dim=2)
    federation = nc.paper_federation(agents(), game=nc.LookbackGame(lookback=3, memory=True), start=0.0)
    federation.replay(X, Y)
    assert federation.health["games"] == 17
    assert federation.certificate().worst < 1e-8


def test_a_stiff_game_is_none_and_order_does_not_matter():
    X, Y = random_stream(np.random.default_rng(6), 1, steps=30, x_dim=2)
    stiff = nc.paper_federation(agents(), game=nc.LookbackGame(lookback=1, memory=True, ridge=1e12), start=0.0).replay(
        X, Y
    )
    none = nc.paper_federation(agents(), game=None, anchored=True, start=0.0).replay(X, Y)
    np.testing.assert_allclose(stiff.forecasts, none.forecasts, atol=1e-6)
    game = nc.LookbackGame(lookback=2, memory=True, ridge=2.0)
    first = nc.paper_federation(agents(), game=game, start=0.0).replay(X, Y)
    second = nc.paper_federation(agents(order=(1, 0)), game=game, start=0.0).replay(X, Y)
    np.testing.assert_allclose(first.forecasts, second.forecasts, atol=1e-9)


def test_under_drift_it_corrects_what_is_remembered():
    stream = datasets.concept_shift(target=1)

    def error(game):
        federation = nc.paper_federation(agents(1.0, 0.1), game=game, anchored=game is None, start=stream.start)
        return federation.replay(stream.inputs, stream.targets).mse

    assert error(nc.LookbackGame(lookback=1, memory=True)) < 0.3 * error(None)


def test_saved_and_loaded_it_goes_on_bit_for_bit(tmp_path):
    X, Y = random_stream(np.random.default_rng(7), 1, steps=40, x_dim=2)
    game = nc.LookbackGame(lookback=2, memory=True)
    first, second = (
        nc.paper_federation(agents(), game=game, start=0.0),
        nc.paper_federation(agents(), game=game, start=0.0),
    )
    first.replay(X[:20], Y[:20])
    first.save(tmp_path / "state.state")
    second.load(tmp_path / "state.state")
    np.testing.assert_array_equal(first.replay(X[20:], Y[20:]).forecasts, second.replay(X[20:], Y[20:]).forecasts)


class Forgetful:
    """An agent that cannot recall."""

    def forecast(self, x): ...

    def learn(self, target): ...


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nc.LookbackGame(memory=True, placement="spread"), "memory: got True in a spread game"),
        (lambda: nc.LookbackGame(memory=True, rewrite_past=True), "memory: got True with rewrite_past"),
        (lambda: nc.LookbackGame(ridge=0.0), "ridge: got"),
        (lambda: nc.LookbackGame(ridge=1.0, placement="spread"), "ridge: got 1 in a spread game"),
        (lambda: nc.paper_federation([Forgetful()], game=nc.LookbackGame(memory=True)), "`recall` their decoder"),
        (
            lambda: replay(
                nc.paper_federation(agents(), game=nc.LookbackGame(memory=True)), np.zeros((5, 2)), np.zeros((5, 1))
            ),
            "game: got memory. Replay it online",
        ),
        (
            lambda: replay(
                nc.paper_federation(agents(), game=nc.LookbackGame(ridge=2)), np.zeros((5, 2)), np.zeros((5, 1))
            ),
            "game: got a ridge of its own. Replay it online",
        ),
    ],
)
def test_what_it_does_not_do_is_said(make, words):
    with pytest.raises(nc.InvalidInput, match=words):
        make()
