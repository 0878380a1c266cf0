"""Products of two of the last targets and inputs: nonlinear vector autoregression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast.encoders.base import RowEncoder
from nashcast.encoders.families.rows import Rows, other_targets
from nashcast.encoders.families.wide_inputs import WideInputs
from nashcast.validation import integer


@dataclass(frozen=True)
class Quadratic:
    """One, up to `factors` numbers, and all products of two of them.

    The numbers are the last two values of the target, then the other targets, then inputs, up to `factors`.
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
        features = np.empty((rows.count, rows.y_dim, self.features))
        inputs = 3 + self._others.shape[1]
        products = inputs + self._used
        features[:, :, 0] = 1.0
        features[:, :, 1:3] = rows.values(2)
        if inputs > 3:
            features[:, :, 3:inputs] = rows.value(0)[:, self._others]
        if self._used:
            features[:, :, inputs:products] = self._inputs.values(rows)[:, None, : self._used]
        factors = features[:, :, 1:products]
        features[:, :, products:] = factors.take(self._left, axis=2) * factors.take(self._right, axis=2)
        return features, None
