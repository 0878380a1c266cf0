"""The core against traces of the published code: same inputs, same numbers, with its departures switched on."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.decoders import window_decoder
from nashcast.games.moments.features import relu_moments
from support.golden import trace
from support.reference import dense_game


def dense_settings(g, t):
    """The dense theorem's arguments for the game the trace played at step t."""
    T, N, p = int(g["game_T"]), int(g["N"]), int(g["d_y"])
    steps = slice(t - T, t)
    Z = [g["Z"][i, steps] for i in range(N)]
    mean, cov = Z, [np.zeros((T, p, p, z.shape[2], z.shape[2])) for z in Z]
    if str(g["kind"]) == "rfn":
        a = [(g["x"][steps] @ g["A"][i].T)[:, :, None] + g["b"][i] for i in range(N)]  # (T, y_dim, features)
        moments = [relu_moments(a_i, float(g["sigma"])) for a_i in a]
        mean, cov = [m.mean for m in moments], [m.covariance for m in moments]
    start = np.tile(g["y"][t - T], (N, 1))
    alpha, gamma = np.full(N, float(g["alpha"])), np.full(N, float(g["gamma"]))
    prior = [np.zeros((T, z.shape[2])) for z in Z]
    return Z, mean, cov, g["mixture_weights"][steps], g["y"][t - T + 1 : t + 1], start, alpha, gamma, prior


@pytest.mark.parametrize("name", ["rfn2_logistic_nash", "fixed2_concept2d_nash"])
@pytest.mark.parametrize("form", ["", ".corrected"])
def test_the_dense_theorem_with_its_switches_replays_every_published_game(name, form):
    g = trace(name + form)
    for place, t in enumerate(g["sync_t"]):
        dense = dense_game.solve(*dense_settings(g, t), printed_recursion=True, published_assembly=form == "")
        np.testing.assert_allclose(dense.decoders, g["sync_betas"][place], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(dense.forecasts, g["sync_game_predictions"][place], rtol=1e-8, atol=1e-10)


def test_the_exact_game_is_close_to_the_corrected_trace_where_decay_is_tiny():
    """α = 1e-4: what erratum 1 changes is of that order, and no more."""
    g = trace("rfn2_logistic_nash.corrected")
    for place, t in enumerate(g["sync_t"]):
        Z, mean, cov, w, y, start, alpha, gamma, _ = dense_settings(g, t)
        solved = nc.solve_game(Z, w, y, start, ridge=gamma, decay=alpha, means=mean, covariance=cov)
        np.testing.assert_allclose(np.concatenate(solved.decoders, axis=1), g["sync_betas"][place], atol=2e-6)


NO_GAME = ["esn2_concept2d_nogame", "fixed2_concept2d_nogame"]


@pytest.mark.parametrize("name", [*(f"{name}.corrected" for name in NO_GAME), "rfn2_logistic_nash"])
def test_mixture_weights_at_every_step(name):
    g = trace(name)
    for t in range(int(g["rounds"])):
        w = nc.mixture_weights(g["client_predictions"][t].T, g["y"][t], ridge=float(g["kappa"]))
        np.testing.assert_allclose(w, g["mixture_weights"][t], rtol=1e-8)


@pytest.mark.parametrize("name", NO_GAME)
def test_greedy_decoders_at_every_step(name):
    g = trace(name)
    T, settings = int(g["client_T"]), {"ridge": float(g["gamma"]), "decay": float(g["alpha"])}
    for t in range(1, int(g["rounds"])):
        past = slice(max(t - T, 0), t)
        for i in range(int(g["N"])):
            residuals = g["y"][past.start + 1 : t + 1] - g["state_predictions"][i, past]
            beta = window_decoder(g["Z"][i, past], residuals, **settings)
            np.testing.assert_allclose(beta, g["local_betas"][t, i], rtol=1e-8, atol=1e-12)
