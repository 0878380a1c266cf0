"""Mean ranks of several methods over streams: Friedman's test, and Nemenyi's critical difference (Demšar 2006)."""

from __future__ import annotations

from math import erf, pi, sqrt
from typing import NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.evaluation.statistics.signed_rank import average_ranks
from nashcast.evaluation.statistics.significance import incomplete_beta

LEVEL = 0.05
# Points of the integral; half their range in standard deviations.
_POINTS, _REACH = 4001, 10.0


class MeanRanks(NamedTuple):
    """ranks: (methods,), 1 is best.   p: of Friedman's test, in the form of Iman and Davenport, that none differs.

    critical_difference: mean ranks closer than this are not told apart at LEVEL, all pairs tested at once.
    """

    ranks: np.ndarray
    p: float
    critical_difference: float


def mean_ranks(errors: np.ndarray, level: float = LEVEL) -> MeanRanks:
    """errors: (streams, methods), smaller is better, infinite where a method failed; equal ones share their ranks."""
    errors = check.of_rank("errors", errors, ("streams", "methods"))
    streams, methods = errors.shape
    if streams < 2 or methods < 2 or np.isnan(errors).any():
        raise InvalidInput(
            "errors",
            check.describe(errors),
            "Pass at least two streams and two methods, and no NaN: inf for a failure.",
        )
    ranks = np.array([average_ranks(row) for row in errors])
    return MeanRanks(ranks.mean(axis=0), _friedman_p(ranks), nemenyi(streams, methods, level))


def nemenyi(streams: int, methods: int, level: float = LEVEL) -> float:
    r"""$q\sqrt{k(k+1)/(6N)}$ with $q\sqrt2$ the upper quantile of the range of $k$ standard normal variables."""
    return studentised_range(level, methods) / sqrt(2.0) * sqrt(methods * (methods + 1) / (6.0 * streams))


def studentised_range(level: float, count: int) -> float:
    """The range of so many standard normal variables exceeds it with this probability, by bisection."""
    if not 0.0 < level < 1.0:
        raise InvalidInput("level", repr(level), "Pass a number between 0 and 1.")
    z = np.linspace(-_REACH, _REACH, _POINTS)
    density = np.exp(-z * z / 2.0) / sqrt(2.0 * pi)
    below = np.array([_normal(x) for x in z])

    def chance(reach: float) -> float:
        """That the range is at most this: all others lie no further below the highest, which lies at z."""
        others = below - np.array([_normal(x - reach) for x in z])
        return float(count * np.sum(density * others ** (count - 1)) * (z[1] - z[0]))

    low, high = 0.0, 2.0 * _REACH
    while high - low > 1e-9:
        middle = (low + high) / 2.0
        low, high = (middle, high) if chance(middle) < 1.0 - level else (low, middle)
    return (low + high) / 2.0


def _normal(x: float) -> float:
    return (1.0 + erf(x / sqrt(2.0))) / 2.0


def _friedman_p(ranks: np.ndarray) -> float:
    """With the correction for ties; Iman and Davenport's F of k - 1 and (k - 1)(N - 1) degrees of freedom."""
    N, k = ranks.shape
    between = N * ((ranks.mean(axis=0) - (k + 1) / 2.0) ** 2).sum()
    total = ((ranks - (k + 1) / 2.0) ** 2).sum()
    rest = total - between
    if between <= 1e-12 * N * k:
        return 1.0
    if rest <= 1e-12 * N * k:
        return 0.0  # the same order on every stream
    F = (N - 1) * between / rest
    first, second = k - 1, (k - 1) * (N - 1)
    return incomplete_beta(second / 2.0, first / 2.0, second / (second + first * F))
