"""The season: what the target was one season before the next step, harmonics, and the last values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast.encoders.base import RowEncoder
from nashcast.encoders.rows import MOST_LAGS, Rows
from nashcast.encoders.wide_inputs import WideInputs
from nashcast.validation import integer

_HARMONICS = np.arange(1, 5)


@dataclass(frozen=True)
class Seasonal:
    """The change to the value one season ago, four harmonics of the season, the last values, and the inputs.

    The season is found in the targets (see `Federation`), or given to the federation.
    """

    lags: int = 3

    def __post_init__(self):
        integer("lags", self.lags, min=1, max=MOST_LAGS)

    def build(self, x_dim: int, y_dim: int) -> RowEncoder:
        return _Built(self.lags, WideInputs(x_dim))


class _Built(RowEncoder):
    seasonal = True
    # What a strong ridge falls back to: what followed one season ago follows again. See `Bank`.
    leading_feature = True

    def __init__(self, lags: int, inputs: WideInputs):
        self._lags, self._inputs = lags, inputs
        self.features = 2 + lags + 2 * len(_HARMONICS) + inputs.count

    def encode_rows(self, rows: Rows, state: None) -> tuple[np.ndarray, None]:
        features = np.zeros((rows.count, rows.y_dim, self.features))
        features[:, :, 0], features[:, :, 1] = rows.seasonal_change(), 1.0
        at = 2 + self._lags
        for lag in range(self._lags):
            features[:, :, 2 + lag] = rows.value(lag)
        season = rows.span.season
        if season:
            angles = 2.0 * np.pi * rows.phase()[:, None, None] * _HARMONICS
            # Harmonics that a season of so few steps cannot hold are left out.
            held = season >= 2 * _HARMONICS
            waves = len(_HARMONICS)
            features[:, :, at : at + waves] = np.sin(angles) * held
            features[:, :, at + waves : at + 2 * waves] = np.cos(angles) * held
        features[:, :, at + 2 * len(_HARMONICS) :] = self._inputs.values(rows)[:, None]
        return features, None
