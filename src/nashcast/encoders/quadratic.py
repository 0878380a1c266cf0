"""Products of two of the last targets and inputs: nonlinear vector autoregression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast.encoders.base import RowEncoder
from nashcast.encoders.rows import Rows, for_each_target, other_targets
from nashcast.encoders.wide_inputs import WideInputs
from nashcast.validation import integer


@dataclass(frozen=True)
class Quadratic:
    """One, up to `factors` numbers, and all their products of two.

    The numbers are the last two values of the target, then the other targets, then inputs, as far as they reach.
    """

    factors: int = 5

    def __post_init__(self):
        integer("factors", self.factors, min=2, max=16)

    def build(self, x_dim: int, y_dim: int) -> RowEncoder:
        return _Built(self.factors, WideInputs(x_dim), y_dim)


class _Built(RowEncoder):
    def __init__(self, factors: int, inputs: WideInputs, y_dim: int):
        self._inputs = inputs
        self._others = other_targets(y_dim)[:, : factors - 2]
        self._used = min(inputs.count, factors - 2 - self._others.shape[1])
        count = 2 + self._others.shape[1] + self._used
        self._left, self._right = np.triu_indices(count)
        self.features = 1 + count + len(self._left)

    def encode_rows(self, rows: Rows, state: None) -> tuple[np.ndarray, None]:
        parts = [rows.value(0)[:, :, None], rows.value(1)[:, :, None]]
        if self._others.shape[1]:
            parts.append(rows.value(0)[:, self._others])
        if self._used:
            parts.append(for_each_target(self._inputs.values(rows)[:, : self._used], rows.y_dim))
        factors = np.concatenate(parts, axis=2)
        products = factors[:, :, self._left] * factors[:, :, self._right]
        return np.concatenate([np.ones((rows.count, rows.y_dim, 1)), factors, products], axis=2), None
