"""The Santa Fe competition's laser, from the package reservoirpy."""

from __future__ import annotations

import numpy as np

from nashcast.datasets.base import Stream
from nashcast.datasets.files.package_files import packaged
from nashcast.datasets.lagged import WARMUP
from nashcast.datasets.recorded.single_series import series


def laser(lags: int = 3, steps: int | None = 2000, warmup: int = WARMUP) -> Stream:
    """Intensity of a far-infrared laser in a chaotic state, sampled evenly (data set A of the Santa Fe competition).

    lags: samples known, 1 for the last alone.   warmup: samples whose mean and deviation scale all, not scored.
    """
    path = packaged("reservoirpy", "datasets/santafe_laser.npy", "peers")
    values = np.load(path, allow_pickle=False).astype(np.float64).reshape(-1, 1)
    return series("laser", values, lags, steps, warmup)
