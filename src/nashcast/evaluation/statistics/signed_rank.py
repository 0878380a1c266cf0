"""Wilcoxon's signed-rank test, exact with ties, and Holm's correction for testing several peers at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput


def average_ranks(values: np.ndarray) -> np.ndarray:
    """1 for the smallest; equal values share the mean of their places.

    >>> average_ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2.0)[places]


def signed_rank_p(differences: np.ndarray) -> float:
    r"""Two-sided p-value of the hypothesis that differences are symmetric round 0.

    The statistic is the sum of the ranks of $|d_i|$ over $d_i > 0$; zeros are left out. Its distribution is that of all
    $2^n$ choices of signs, counted exactly, ties included. 1 where all differences are 0. Infinite ones have a sign and
    share the highest ranks.
    """
    d = check.of_rank("differences", differences, ("streams",))
    if np.isnan(d).any():
        raise InvalidInput("differences", "NaN", "Leave out the streams without an error.")
    d = d[d != 0.0]
    if len(d) == 0:
        return 1.0
    # Twice the average ranks are integers, so sums of them can be counted.
    doubled = np.rint(2.0 * average_ranks(np.abs(d))).astype(np.int64)
    shares = np.zeros(int(doubled.sum()) + 1)
    shares[0] = 1.0
    for rank in doubled:
        shares[rank:] = (shares[rank:] + shares[: len(shares) - rank]) / 2.0
        shares[:rank] /= 2.0
    statistic = int(doubled[d > 0.0].sum())
    tail = min(shares[: statistic + 1].sum(), shares[statistic:].sum())
    return float(min(1.0, 2.0 * tail))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted so that rejecting where the result is below a level errs anywhere with at most that probability.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    if any(isnan(p) or not 0.0 <= p <= 1.0 for p in p_values):
        raise InvalidInput("p_values", repr(list(p_values)), "Pass probabilities.")
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    found, highest = [0.0] * len(p_values), 0.0
    for place, i in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[i]))
        found[i] = highest
    return found
