r"""Geometric mean of error ratios over streams, with a bootstrap interval that resamples the streams."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput

RESAMPLES, LEVEL = 10_000, 0.95


class RatioInterval(NamedTuple):
    """mean: geometric.   low, high: ends of the percentile interval."""

    mean: float
    low: float
    high: float


def geometric_mean_interval(
    ratios: np.ndarray, *, generator: np.random.Generator, resamples: int = RESAMPLES, level: float = LEVEL
) -> RatioInterval:
    r"""$\exp(\frac1n\sum\log r_i)$, and the percentile interval of the same over resamples of the streams.

    ratios: $r_i > 0$, one for each stream; infinite where the denominator is 0. The interval treats the streams as
    independent draws from the streams one cares about; streams that resemble each other make it too narrow.

    >>> geometric_mean_interval(np.array([0.5, 2.0]), generator=np.random.default_rng(0)).mean
    1.0
    """
    values = check.of_rank("ratios", ratios, ("streams",))
    if len(values) == 0 or not (values > 0.0).all():
        raise InvalidInput("ratios", check.describe(ratios), "Pass a positive number for each of at least one stream.")
    check.integer("resamples", resamples, min=1)
    if not 0.0 < level < 1.0:
        raise InvalidInput("level", repr(level), "Pass a number between 0 and 1.")
    logs = np.log(values)
    drawn = generator.integers(len(logs), size=(resamples, len(logs)))
    means = np.sort(logs[drawn].mean(axis=1))
    # Order statistics and no interpolation: an infinite ratio in a few resamples must not make the ends NaN.
    rank = int(np.floor((1.0 - level) / 2.0 * resamples + 1e-9))
    low, high = means[rank], means[resamples - 1 - rank]
    return RatioInterval(float(np.exp(logs.mean())), float(np.exp(low)), float(np.exp(high)))
