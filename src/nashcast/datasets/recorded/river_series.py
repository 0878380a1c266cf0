"""Series that come with the package river: forecast the next value from the last ones."""

from __future__ import annotations

import numpy as np

from nashcast.datasets.base import Stream
from nashcast.datasets.lagged import WARMUP, next_row
from nashcast.datasets.recorded.single_series import check_options, series
from nashcast.errors import InvalidInput
from nashcast.extras import needed


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


def sp500(lags: int = 1, steps: int | None = None, warmup: int = WARMUP) -> Stream:
    """Forecast tomorrow's mean return of ten large American stocks from today's ten, in per cent, 2013 to 2018.

    lags: days of each stock known.   warmup: days whose mean and standard deviation scale all, not scored.
    """
    records = _records("SP500Stocks", lags, steps, warmup)
    returns = np.array([list(x.values()) for x, _ in records], dtype=np.float64)
    whole = np.mean(returns, axis=1, keepdims=True)
    return next_row("S&P 500", returns, whole, [lags] * returns.shape[1], warmup=warmup, steps=steps)


def approval(lags: int = 1, steps: int | None = None, warmup: int = WARMUP) -> Stream:
    """Forecast tomorrow's approval of a president by one model from today's, and from five polls, 2017 to 2019.

    lags: days of each known.   warmup: days whose mean and standard deviation scale all, not scored.
    """
    records = _records("TrumpApproval", lags, steps, warmup)
    targets = np.array([[y] for _, y in records], dtype=np.float64)
    polls = [[value for name, value in x.items() if name != "ordinal_date"] for x, _ in records]
    inputs = np.hstack([np.array(polls, dtype=np.float64), targets])
    return next_row("approval", inputs, targets, [lags] * inputs.shape[1], warmup=warmup, steps=steps)


def _series(name: str, dataset: str, lags: int, steps: int | None, warmup: int) -> Stream:
    records = _records(dataset, lags, steps, warmup)
    values = np.array([[value] for _, value in records], dtype=np.float64)
    dates = [next(iter(when.values())).isoformat() for when, _ in records]
    return series(name, values, lags, steps, warmup, dates)


def _records(dataset: str, lags: int, steps: int | None, warmup: int) -> list:
    """The rows of a dataset, after checking the options."""
    check_options(lags, steps, warmup)
    datasets = needed("river.datasets", "river", "river")
    if not hasattr(datasets, dataset):
        raise InvalidInput("stream", f"river without {dataset}", "Install a newer one: pip install -U river.")
    return list(getattr(datasets, dataset)())
