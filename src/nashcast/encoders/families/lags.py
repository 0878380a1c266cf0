"""Linear features of the last targets and the present input, or of raw inputs alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast.encoders.base import BuiltEncoder, Context, RowEncoder
from nashcast.encoders.families.rows import MOST_LAGS, Rows, other_targets
from nashcast.encoders.families.wide_inputs import WideInputs
from nashcast.validation import integer


@dataclass(frozen=True)
class Lags:
    """One, the last `lags` values of each target, the last two of the other targets, and the inputs.

    changes: whether to add the inputs' changes.
    """

    lags: int = 4
    changes: bool = False

    def __post_init__(self):
        integer("lags", self.lags, min=1, max=MOST_LAGS)

    def build(self, x_dim: int, y_dim: int) -> RowEncoder:
        return _BuiltLags(self, WideInputs(x_dim), y_dim)


class _BuiltLags(RowEncoder):
    def __init__(self, description: Lags, inputs: WideInputs, y_dim: int):
        self._lags, self._with_changes = description.lags, description.changes
        self._inputs, self._others = inputs, other_targets(y_dim)
        self.features = 1 + self._lags + 2 * (y_dim - 1) + inputs.count * (2 if self._with_changes else 1)

    def encode_rows(self, rows: Rows, state: None) -> tuple[np.ndarray, None]:
        features = np.empty((rows.count, rows.y_dim, self.features))
        features[:, :, 0] = 1.0
        at = 1 + self._lags
        features[:, :, 1:at] = rows.values(self._lags)
        if rows.y_dim > 1:
            for lag in range(2):
                features[:, :, at : at + rows.y_dim - 1] = rows.value(lag)[:, self._others]
                at += rows.y_dim - 1
        features[:, :, at : at + self._inputs.count] = self._inputs.values(rows)[:, None]
        if self._with_changes:
            features[:, :, at + self._inputs.count :] = self._inputs.changes(rows)[:, None]
        return features, None


@dataclass(frozen=True)
class Linear:
    """One, and the last `lags` raw inputs; every target has its own copy of them."""

    lags: int = 1

    def __post_init__(self):
        integer("lags", self.lags, min=1)

    def build(self, x_dim: int, y_dim: int) -> BuiltEncoder:
        return _BuiltLinear(x_dim, y_dim, self.lags)


class _BuiltLinear(BuiltEncoder):
    """State: the last inputs, (lags, x_dim). Features are block-diagonal: each target has its own coefficients."""

    def __init__(self, x_dim: int, y_dim: int, lags: int):
        self._past, self._y_dim = np.zeros((lags, x_dim)), y_dim
        self.features = y_dim * (1 + lags * x_dim)

    def start(self) -> np.ndarray:
        return self._past

    def advance(self, context: Context) -> np.ndarray:
        return np.vstack([context.state[1:], context.x])

    def encode(self, context: Context) -> np.ndarray:
        features = np.concatenate([np.ones(1), context.state.ravel()])[None]
        return features if self._y_dim == 1 else np.kron(np.eye(self._y_dim), features)
