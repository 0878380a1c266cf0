"""The Santa Fe competition's laser, as the package reservoirpy carries it."""

from __future__ import annotations

import numpy as np

from nashcast.streams.base import Stream
from nashcast.streams.lagged import WARMUP
from nashcast.streams.package_files import packaged
from nashcast.streams.single_series import series


def laser(lags: int = 3, steps: int | None = 2000, warmup: int = WARMUP) -> Stream:
    """Intensity of a far-infrared laser in a chaotic state, sampled evenly (data set A of the Santa Fe competition).

    lags: samples known, 1 for the last alone.   warmup: samples whose mean and deviation scale all, not scored.
    """
    path = packaged("reservoirpy", "datasets/santafe_laser.npy", "peers")
    values = np.load(path, allow_pickle=False).astype(np.float64).reshape(-1, 1)
    return series("laser", values, lags, steps, warmup)
