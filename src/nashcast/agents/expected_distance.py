"""The distance of the next targets from the forecasts that agents expect, by the quantiles they give."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import NormalDist

import numpy as np

from nashcast.encoders.base import Quantiles

# Mean absolute deviation of a standard normal.
_NORMAL = 0.7978845608028654


def distance(quantiles: Quantiles) -> np.ndarray:
    """The mean distance from the median if the outermost quantiles are those of a normal, (horizon, y_dim).

    >>> distance(Quantiles((0.1, 0.5, 0.9), np.array([[[-1.2815515, 0.0, 1.2815515]]]))).round(4)
    array([[0.7979]])
    """
    normal, (low, *_, high) = NormalDist(), quantiles.levels
    width = quantiles.values[..., -1] - quantiles.values[..., 0]
    return width * (_NORMAL / (normal.inv_cdf(high) - normal.inv_cdf(low)))


def expected_distance(quantiles: Iterable[Quantiles]) -> np.ndarray | None:
    """The geometric mean of several agents' distances, (horizon, y_dim), NaN where there is none; None without agents.

    An agent that expects 0 is left out. The geometric mean keeps proportions between steps for any units of the agents:
    an agent that is always five times too wide changes the mean by a constant factor.
    """
    return mean_distance([distance(each) for each in quantiles])


def mean_distance(found: Sequence[np.ndarray]) -> np.ndarray | None:
    """The geometric mean of distances (horizon, y_dim), NaN where none is above 0; None for an empty list."""
    if not found:
        return None
    sizes = np.stack(found)
    known = sizes > 0.0
    logs = np.log(np.where(known, sizes, 1.0))
    count = known.sum(axis=0)
    return np.where(count > 0, np.exp(logs.sum(axis=0) / np.maximum(count, 1)), np.nan)
