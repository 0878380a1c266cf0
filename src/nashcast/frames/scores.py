"""Scores of forecasts and of quantiles, by their definitions; NaN counts as missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput

# Levels whose mean pinball loss, doubled, is reported as the CRPS.
CRPS_LEVELS = np.arange(1, 20) / 20


def pinball(targets: np.ndarray, quantiles: np.ndarray, levels: Sequence[float] | np.ndarray) -> np.ndarray:
    r"""Pinball losses $\max(\tau(y - q), (\tau - 1)(y - q))$, the shape of `quantiles`.

    targets: any shape.   quantiles: the same with the levels last.   levels: τ, between 0 and 1.
    """
    tau = np.asarray(levels, dtype=np.float64)
    over = np.asarray(targets)[..., None] - quantiles
    return np.maximum(tau * over, (tau - 1.0) * over)


def crps(targets: np.ndarray, quantiles: np.ndarray, levels: Sequence[float] | np.ndarray) -> np.ndarray:
    """The continuous ranked probability score, as twice the mean pinball loss over evenly spaced levels.

    >>> round(float(crps(np.array(1.0), np.zeros(19), np.arange(1, 20) / 20)), 3)
    1.0
    """
    return 2.0 * pinball(targets, quantiles, levels).mean(axis=-1)


def naive_scale(targets: np.ndarray, season: int) -> np.ndarray:
    """Mean absolute change over a season, for each target, (y_dim,): the denominator of MASE.

    targets: (rows, y_dim). NaN if the targets never change over a season: MASE is not defined then.
    """
    season = max(1, season)
    if len(targets) <= season:
        return np.full(targets.shape[1], np.nan)
    scale = mean(np.abs(targets[season:] - targets[:-season]), axis=0)
    return np.where(scale > 0.0, scale, np.nan)


def mean(values: np.ndarray, axis: int | tuple[int, ...] | None = None) -> np.ndarray:
    """The mean of the known values, NaN if there are none."""
    known = np.isfinite(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    return np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)


def checked_levels(levels: Sequence[float]) -> np.ndarray:
    """Levels of quantiles, between 0 and 1."""
    found = np.atleast_1d(check.numbers("levels", levels, "(levels,)"))
    if found.ndim != 1 or not len(found) or not ((found > 0.0) & (found < 1.0)).all():
        raise InvalidInput("levels", check.describe(levels), "Pass numbers between 0 and 1, such as (0.1, 0.5, 0.9).")
    return found


def quantiles(middle: np.ndarray, halves: np.ndarray, coverages: Sequence[float], levels: np.ndarray) -> np.ndarray:
    """Quantiles round forecasts from the half-widths of central intervals, (…, levels).

    middle: (…,).   halves: (coverages, …).   A level between two coverages is interpolated in normal quantiles, as is
    one beyond the widest; the median is the forecast.
    """
    order = np.argsort(coverages)
    known = np.concatenate([[0.0], _normal_quantile(0.5 + 0.5 * np.asarray(coverages)[order])])
    wanted = np.abs(_normal_quantile(levels))
    places = np.clip(np.searchsorted(known, wanted), 1, len(known) - 1)
    low, high = known[places - 1], known[places]
    share = (wanted - low) / (high - low)
    widths = np.concatenate([np.zeros((1, *np.shape(middle))), np.asarray(halves)[order]])
    with np.errstate(invalid="ignore"):
        half = widths[places - 1] + (widths[places] - widths[places - 1]) * _beside(share, middle)
        half = np.where(_beside(share, middle) == 1.0, widths[places], half)
        half = np.where(_beside(wanted, middle) < 1e-12, 0.0, half)
        return np.moveaxis(middle + _beside(np.sign(levels - 0.5), middle) * half, 0, -1)


def _beside(values: np.ndarray, middle: np.ndarray) -> np.ndarray:
    return np.asarray(values).reshape(-1, *[1] * np.ndim(middle))


def _normal_quantile(levels: np.ndarray) -> np.ndarray:
    from statistics import NormalDist

    return np.array([NormalDist().inv_cdf(float(level)) for level in levels])
