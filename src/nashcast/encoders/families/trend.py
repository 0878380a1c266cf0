"""Trend: the last changes of the targets and inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast.encoders.base import RowEncoder
from nashcast.encoders.families.rows import MOST_LAGS, Rows, other_targets
from nashcast.encoders.families.wide_inputs import WideInputs
from nashcast.validation import integer


@dataclass(frozen=True)
class Trend:
    """The last `lags` changes of each target, the last change of the other targets, and the inputs' changes."""

    lags: int = 4

    def __post_init__(self):
        integer("lags", self.lags, min=1, max=MOST_LAGS)

    def build(self, x_dim: int, y_dim: int) -> RowEncoder:
        return _Built(self.lags, WideInputs(x_dim), y_dim)


class _Built(RowEncoder):
    # The limit of a strong ridge: the last change repeats. See `Bank`.
    leading_feature = True

    def __init__(self, lags: int, inputs: WideInputs, y_dim: int):
        self._lags, self._inputs, self._others = lags, inputs, other_targets(y_dim)
        self.features = lags + y_dim - 1 + inputs.count

    def encode_rows(self, rows: Rows, state: None) -> tuple[np.ndarray, None]:
        features = np.empty((rows.count, rows.y_dim, self.features))
        others = self._lags + rows.y_dim - 1
        features[:, :, : self._lags] = rows.changes(self._lags)
        if rows.y_dim > 1:
            features[:, :, self._lags : others] = rows.change(0)[:, self._others]
        features[:, :, others:] = self._inputs.changes(rows)[:, None]
        return features, None
