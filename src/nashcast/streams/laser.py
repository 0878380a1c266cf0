"""The Santa Fe competition's laser, as the package reservoirpy carries it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.maths import check
from nashcast.streams.base import Stream
from nashcast.streams.lagged import WARMUP, next_row


def laser(lags: int = 3, steps: int | None = 2000, warmup: int = WARMUP) -> Stream:
    """Intensity of a far-infrared laser in a chaotic state, sampled evenly (data set A of the Santa Fe competition).

    lags: samples known, 1 for the last alone.   warmup: samples whose mean and deviation scale all, not scored.
    """
    check.whole("lags", lags, least=1)
    check.whole("warmup", warmup, least=2)
    if steps is not None:
        check.whole("steps", steps, least=1)
    found = find_spec("reservoirpy")
    if found is None or not found.submodule_search_locations:
        raise InvalidInput("stream", "no package reservoirpy", "Install it: pip install 'nashcast[peers]'.")
    path = Path(next(iter(found.submodule_search_locations))) / "datasets" / "santafe_laser.npy"
    if not path.is_file():
        raise InvalidInput("stream", "reservoirpy without santafe_laser.npy", "Install version 0.4 of it.")
    values = np.load(path, allow_pickle=False).astype(np.float64).reshape(-1, 1)
    return next_row("laser", values, values, [lags], warmup=warmup, steps=steps)
