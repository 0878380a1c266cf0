"""Series that come with the package river: forecast the next value from the last ones."""

from __future__ import annotations

import numpy as np

from nashcast.maths import check
from nashcast.streams.base import Stream
from nashcast.streams.extras import needed
from nashcast.streams.lagged import WARMUP, next_row


def water_flow(lags: int = 3, steps: int | None = None, warmup: int = WARMUP) -> Stream:
    """Litres per second through a branch of a pipeline, by the hour, with four anomalous segments (Tecnojest).

    lags: hours known, 1 for the last alone.   warmup: hours whose mean and standard deviation scale all, not scored.
    """
    return _series("water flow", "WaterFlow", lags, steps, warmup)


def airline_passengers(lags: int = 12, steps: int | None = None, warmup: int = 24) -> Stream:
    """International airline passengers by the month, 1949 to 1960, in thousands (Box and Jenkins).

    lags: months known, 1 for the last alone.   warmup: months whose mean and standard deviation scale all, not scored.
    """
    return _series("airline passengers", "AirlinePassengers", lags, steps, warmup)


def _series(name: str, dataset: str, lags: int, steps: int | None, warmup: int) -> Stream:
    check.whole("lags", lags, least=1)
    check.whole("warmup", warmup, least=2)
    if steps is not None:
        check.whole("steps", steps, least=1)
    records = list(getattr(needed("river.datasets", "river", "river"), dataset)())
    values = np.array([[value] for _, value in records], dtype=np.float64)
    dates = [next(iter(when.values())).isoformat() for when, _ in records]
    return next_row(name, values, values, [lags], warmup=warmup, steps=steps, dates=dates)
