"""Five agents of different kinds on a series that drifts and then breaks: one look-back game over its last steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast import seeds
from nashcast.agents.decoders import window_decoder
from nashcast.games.moments.features import echo_moments, relu_moments
from nashcast.mixing.mixture_weights import mixture_weights

STEPS, BREAK, CLIENT_WINDOW = 60, 45, 5


class Agent(NamedTuple):
    """One agent's features over the whole series, and what is known of their randomness over the game's window."""

    name: str
    features: np.ndarray  # (steps, 1, features) as drawn
    means: np.ndarray  # (lookback, 1, features)
    covariance: np.ndarray | None  # (lookback, 1, 1, features, features)


class DriftingGame(NamedTuple):
    """The agents, the arguments of `solve_game` for the last steps, and the series behind it."""

    names: list[str]
    series: np.ndarray
    features: list[np.ndarray]
    means: list[np.ndarray]
    covariance: list[np.ndarray | None]
    weights: np.ndarray
    targets: np.ndarray
    start: np.ndarray
    ridge: float
    decay: float
    greedy: np.ndarray  # the mixture's forecasts of the targets at the time, before the game

    def arguments(self) -> tuple:
        return self.features, self.weights, self.targets, self.start

    def settings(self) -> dict:
        return {"ridge": self.ridge, "decay": self.decay, "means": self.means, "covariance": self.covariance}


def drifting_series() -> np.ndarray:
    """A rising wave whose level jumps and whose trend turns at the break."""
    t = np.arange(STEPS + 1)
    late = np.maximum(t - BREAK, 0)
    return np.sin(2 * np.pi * t / 12) + 0.03 * t - 0.11 * late + 0.6 * (late > 0)


def drifting_game(seed: int = 2024, lookback: int = 4, ridge: float = 1.0, decay: float = 0.2) -> DriftingGame:
    y = drifting_series()
    agents = _agents(y, seed, lookback)
    forecasts = np.stack([_greedy(agent.features, y, ridge, decay) for agent in agents], axis=1)
    weights = np.array([mixture_weights(forecasts[t][None], y[t : t + 1], ridge=1.0) for t in range(STEPS)])
    window = slice(STEPS - lookback, STEPS)
    return DriftingGame(
        [agent.name for agent in agents],
        y,
        [np.ascontiguousarray(agent.features[window]) for agent in agents],
        [agent.means for agent in agents],
        [agent.covariance for agent in agents],
        weights[window],
        y[window.start + 1 :, None],
        y[window.start : window.start + 1],
        ridge,
        decay,
        (weights[window] * forecasts[window.start + 1 :]).sum(axis=1),
    )


def _agents(y, seed, lookback) -> list[Agent]:
    last = np.concatenate([y[:1], y[:-1]])
    lags = np.stack([y, last], axis=1)[:STEPS]
    ones = np.ones((STEPS, 1))

    def certain(name, columns):
        Z = columns[:, None, :]
        return Agent(name, Z, Z[-lookback:], None)

    agents = [
        certain("trend", (y - last)[:STEPS, None]),
        certain("linear lags", np.hstack([lags, ones])),
        certain("quadratic lags", np.hstack([lags, lags**2, lags[:, :1] * lags[:, 1:]])),
    ]
    rng = seeds.generator(seed, "agent", "random features")
    noise, a = 0.1, lags @ rng.standard_normal((2, 1)) + rng.standard_normal(3)
    Z = np.maximum(a + noise * rng.standard_normal((STEPS, 3)), 0.0)[:, None, :]
    agents.append(Agent("random features", Z, *relu_moments(a[-lookback:, None, :], noise)))

    rng = seeds.generator(seed, "agent", "echo state")
    drive = (lags @ rng.standard_normal((2, 1)) + rng.standard_normal(6))[:, None, :]
    recurrent = rng.standard_normal((1, 1))
    Z = np.zeros((STEPS, 1, 6))
    for t in range(STEPS):
        v = drive[t] + recurrent @ (Z[t - 1] if t else np.zeros((1, 6))) + noise * rng.standard_normal(6)
        Z[t] = np.clip(v / 6 + 0.5, 0, 1)
    paths = seeds.generator(seed, "moments", "echo state")
    moments = echo_moments(drive[-lookback:], recurrent, Z[-lookback], noise, rng=paths)
    agents.append(Agent("echo state", Z, *moments))
    return agents


def _greedy(Z, y, ridge, decay) -> np.ndarray:
    """One agent's forecasts of y_0 … y_STEPS, each from a decoder fitted to its last steps alone."""
    forecasts = np.empty(STEPS + 1)
    forecasts[0] = y[0]
    for t in range(STEPS):
        past = slice(max(0, t - CLIENT_WINDOW), t)
        step = np.zeros(Z.shape[2])
        if t > 0:
            residuals = (y[1 : STEPS + 1][past] - forecasts[:STEPS][past])[:, None]
            step = window_decoder(Z[past], residuals, ridge=ridge, decay=decay)
        forecasts[t + 1] = forecasts[t] + Z[t, 0] @ step
    return forecasts
