"""Random ReLU features of the last targets and the present input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast import seeds
from nashcast.encoders.base import RowEncoder
from nashcast.encoders.families.rows import Rows
from nashcast.encoders.families.wide_inputs import WideInputs
from nashcast.validation import integer


@dataclass(frozen=True)
class RandomLags:
    """One, the last value, and `hidden` random ReLU features of the last two targets and the inputs.

    seed: for the weights, which are drawn once.
    """

    hidden: int = 24
    seed: int = 0

    def __post_init__(self):
        integer("hidden", self.hidden, min=1)
        seeds.key(self.seed)

    def build(self, x_dim: int, y_dim: int) -> RowEncoder:
        return _Built(self, WideInputs(x_dim), y_dim)


class _Built(RowEncoder):
    def __init__(self, description: RandomLags, inputs: WideInputs, y_dim: int):
        rng = seeds.generator(description.seed, "random lags")
        seen = 2 * y_dim + inputs.count
        self._inputs = inputs
        self._weights = rng.standard_normal((seen, description.hidden)) / np.sqrt(seen)
        self._bias = rng.standard_normal(description.hidden)
        self.features = 2 + description.hidden

    def encode_rows(self, rows: Rows, state: None) -> tuple[np.ndarray, None]:
        seen = np.concatenate([rows.value(0), rows.value(1), self._inputs.values(rows)], axis=1)
        features = np.empty((rows.count, rows.y_dim, self.features))
        features[:, :, 0], features[:, :, 1] = 1.0, rows.value(0)
        features[:, :, 2:] = np.maximum(seen @ self._weights + self._bias, 0.0)[:, None]
        return features, None
