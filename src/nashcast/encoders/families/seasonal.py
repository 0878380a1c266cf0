"""The season: the target one season before the next step, harmonics, and the last values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nashcast.encoders.base import RowEncoder
from nashcast.encoders.families.rows import MOST_LAGS, Rows
from nashcast.encoders.families.wide_inputs import WideInputs
from nashcast.validation import integer

_HARMONICS = np.arange(1, 5)


@dataclass(frozen=True)
class Seasonal:
    """The change to the value one season ago, four harmonics of the season, the last values, and the inputs.

    The season is estimated from the targets (see `Federation`), or given to the federation.
    """

    lags: int = 3

    def __post_init__(self):
        integer("lags", self.lags, min=1, max=MOST_LAGS)

    def build(self, x_dim: int, y_dim: int) -> RowEncoder:
        return _Built(self.lags, WideInputs(x_dim))


class _Built(RowEncoder):
    seasonal = True
    # The limit of a strong ridge: the change of one season ago repeats. See `Bank`.
    leading_feature = True

    def __init__(self, lags: int, inputs: WideInputs):
        self._lags, self._inputs = lags, inputs
        self.features = 2 + lags + 2 * len(_HARMONICS) + inputs.count

    def encode_rows(self, rows: Rows, state: None) -> tuple[np.ndarray, None]:
        features = np.empty((rows.count, rows.y_dim, self.features))
        waves = 2 + self._lags
        inputs = waves + 2 * len(_HARMONICS)
        features[:, :, 0], features[:, :, 1] = rows.seasonal_change, 1.0
        features[:, :, 2:waves] = rows.values(self._lags)
        season = rows.span.season
        features[:, :, waves:inputs] = _waves(season)[rows.season_places()][:, None] if season else 0.0
        features[:, :, inputs:] = self._inputs.values(rows)[:, None]
        return features, None


@lru_cache(maxsize=16)
def _waves(season: int) -> np.ndarray:
    """Sines and cosines of the harmonics at each place of a season, (season, 2 · harmonics)."""
    angles = 2.0 * np.pi * (np.arange(season) / season)[:, None] * _HARMONICS
    # Harmonics beyond the Nyquist frequency of a short season are left out.
    resolved = season >= 2 * _HARMONICS
    return np.concatenate([np.sin(angles) * resolved, np.cos(angles) * resolved], axis=1)
