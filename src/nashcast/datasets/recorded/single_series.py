"""A series that comes with another package: forecast the next value from the last ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashcast import validation as check
from nashcast.datasets.base import Stream
from nashcast.datasets.lagged import next_row


def check_options(lags: int, steps: int | None, warmup: int) -> None:
    check.integer("lags", lags, min=1)
    check.integer("warmup", warmup, min=2)
    if steps is not None:
        check.integer("steps", steps, min=1)


def series(
    name: str, values: np.ndarray, lags: int, steps: int | None, warmup: int, dates: Sequence[str] = ()
) -> Stream:
    """values: (rows, 1).   lags: rows known, 1 for the last alone.   warmup: rows that scale all, not scored."""
    check_options(lags, steps, warmup)
    return next_row(name, values, values, [lags], warmup=warmup, steps=steps, dates=dates)
