"""The published code's random encoders: weights and noise in its drawing order, and the encoding of a whole series."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from nashcast.encoders.base import BuiltEncoder, Context, Noise
from nashcast.encoders.echo_state import path_normals
from nashcast.games.moments.features import (
    ACTIVATIONS,
    EchoParameters,
    Moments,
    drawn_steps,
    relu_moments,
    sample_echo_moments,
)
from nashcast.paper.published.torch_normals import TorchNormals

SAMPLES = 100  # the paper's number of Monte Carlo samples


class Draws(NamedTuple):
    """The draws of one run. recurrent is empty for random features."""

    inputs: np.ndarray  # A, (agents, y_dim, x_dim)
    recurrent: np.ndarray  # B, (agents, y_dim, y_dim)
    bias: np.ndarray  # b, (agents, y_dim, features)
    noise: np.ndarray  # W_t, (steps, agents, features)


@lru_cache(maxsize=64)
def draw(model: str, seed: int, agents: int, x_dim: int, y_dim: int, features: int, steps: int) -> Draws:
    """For each agent A, for echo states B, then b; one unused number per agent; then the steps' noise."""
    normals = TorchNormals(seed)
    A, B, b = [], [], []
    for _ in range(agents):
        A.append(normals.draw(y_dim, x_dim))
        if model == "esn":
            B.append(normals.draw(y_dim, y_dim))
        b.append(normals.draw(y_dim, features))
    normals.draw(agents, 1)
    W = normals.draw_rows(steps * agents, features).reshape(steps, agents, features)
    return Draws(np.array(A), np.array(B), np.array(b), W)


class Encoded(BuiltEncoder):
    """An encoded series, which can be replayed from its start any number of times."""

    moments_by_step = True

    def __init__(self, series: np.ndarray, moments: Moments | None = None, echo: EchoParameters | None = None):
        self.series, self._moments, self._echo = series, moments, echo
        self.features = series.shape[2]

    def build(self, x_dim: int, y_dim: int) -> Encoded:
        return self

    def encode(self, context: Context) -> np.ndarray:
        return self.series[context.noise.step]

    def encode_series(self, inputs: np.ndarray, state: None, key: int, first_step: int) -> tuple[np.ndarray, None]:
        return self.series[first_step : first_step + len(inputs)], None

    def moments(self, inputs: np.ndarray, features: np.ndarray, noise: Noise) -> Moments | None:
        # An agent asks for the moments of the steps before step t with the noise of step -1 - t, and a replay for those
        # of the whole series with the noise of step -1.
        steps = len(inputs)
        last = steps if noise.step == -1 else -1 - noise.step
        if self._echo is not None and noise.step != -1:
            echo = self._echo._replace(drive=self._echo.drive[last - steps : last])
            drawn = drawn_steps(echo.activation, steps)
            normals = path_normals(noise, echo.samples, steps, self.features, drawn)
            return sample_echo_moments(echo, features[0], normals)
        if self._moments is None:
            return None
        return Moments(*(part[last - steps : last] for part in self._moments))

    def echo(self, inputs: np.ndarray) -> EchoParameters | None:
        return self._echo


def random_features(draws: Draws, inputs: np.ndarray, noise: float) -> list[Encoded]:
    """Z_t = ReLU(A x_t + b + σW_t), one for each agent."""
    encoders = []
    for i in range(len(draws.inputs)):
        a = _drive(draws, inputs, i)
        Z = np.maximum(a + noise * draws.noise[:, i, None, :], 0.0)
        encoders.append(Encoded(Z, relu_moments(a, noise)))
    return encoders


def echo_states(draws: Draws, inputs: np.ndarray, noise: float, activation: str) -> list[Encoded]:
    """Z_t = h(A x_t + B Z_{t-1} + b + σW_t), one for each agent."""
    encoders = []
    for i in range(len(draws.inputs)):
        a, B, W = _drive(draws, inputs, i), draws.recurrent[i], draws.noise[:, i]
        Z, state = np.empty_like(a), np.zeros_like(draws.bias[i])
        for t in range(len(inputs)):
            v = a[t] + B @ state + noise * W[t]
            state = ACTIVATIONS[activation].apply(v)
            Z[t] = state
        sigma = np.full(len(B), noise)
        encoders.append(Encoded(Z, echo=EchoParameters(a, B, sigma, SAMPLES, activation, 1.0)))
    return encoders


def _drive(draws: Draws, inputs: np.ndarray, agent: int) -> np.ndarray:
    """A x_t + b, (steps, y_dim, features)."""
    return (inputs @ draws.inputs[agent].T)[:, :, None] + draws.bias[agent]
