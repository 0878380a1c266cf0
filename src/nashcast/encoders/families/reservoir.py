"""A reservoir: a random recurrent network driven by the last targets and inputs (an echo state network)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast import seeds
from nashcast.encoders.base import Context, RowEncoder
from nashcast.encoders.families.rows import Rows
from nashcast.encoders.families.wide_inputs import WideInputs
from nashcast.validation import integer, number


@dataclass(frozen=True)
class Reservoir:
    """One, the last value, and the state of `hidden` tanh units.

    seed: for the weights, which are drawn once.   spectral_radius: that of the recurrent weights.
    """

    hidden: int = 24
    seed: int = 0
    spectral_radius: float = 0.9

    def __post_init__(self):
        integer("hidden", self.hidden, min=1)
        number("spectral_radius", self.spectral_radius, above=0.0)
        seeds.key(self.seed)

    def build(self, x_dim: int, y_dim: int) -> RowEncoder:
        return _Built(self, WideInputs(x_dim), y_dim)


class _Built(RowEncoder):
    """State: the units after the last row, (hidden,)."""

    def __init__(self, description: Reservoir, inputs: WideInputs, y_dim: int):
        rng = seeds.generator(description.seed, "reservoir")
        hidden, seen = description.hidden, y_dim + inputs.count
        self._inputs = inputs
        self._weights = rng.standard_normal((seen, hidden)) / np.sqrt(seen)
        recurrent = rng.standard_normal((hidden, hidden))
        self._recurrent = recurrent * (description.spectral_radius / np.abs(np.linalg.eigvals(recurrent)).max())
        self._bias = 0.5 * rng.standard_normal(hidden)
        self.features = 2 + hidden

    def start(self) -> np.ndarray:
        return np.zeros(len(self._bias))

    def advance(self, context: Context) -> np.ndarray:
        assert context.rows is not None
        return np.tanh(self._drive(context.rows)[0] + context.state @ self._recurrent)

    def encode(self, context: Context) -> np.ndarray:
        assert context.rows is not None
        return self._features(context.rows, context.state[None])[0]

    def encode_rows(self, rows: Rows, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        drive, states = self._drive(rows), np.empty((rows.count, len(self._bias)))
        for t in range(rows.count):
            state = states[t] = np.tanh(drive[t] + state @ self._recurrent)
        return self._features(rows, states), state

    def _drive(self, rows: Rows) -> np.ndarray:
        return np.concatenate([rows.value(0), self._inputs.values(rows)], axis=1) @ self._weights + self._bias

    def _features(self, rows: Rows, states: np.ndarray) -> np.ndarray:
        features = np.empty((rows.count, rows.y_dim, self.features))
        features[:, :, 0], features[:, :, 1] = 1.0, rows.value(0)
        features[:, :, 2:] = states[:, None]
        return features
