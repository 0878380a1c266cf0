"""Limits on the size of numbers, so that sums and products of them stay finite."""

from __future__ import annotations

from typing import Any

import numpy as np

# Limit for an agent's numbers: sums and products of them are finite, so that no agent can make the hub's overflow.
LARGEST = 1e100
# A spread game whose sums are larger has no result: with such sums all agents' terms could become infinite.
WILD = 1e60


def tame(part: Any, largest: float = LARGEST) -> bool:
    """Whether every number in a message, or in a part of one, is at most this large in absolute value, and none is NaN.

    >>> tame((np.array([1.0, -1e99]), None)), tame((np.array([np.nan]),))
    (True, False)
    """
    if isinstance(part, tuple):
        return all(tame(each, largest) for each in part)
    return not isinstance(part, np.ndarray) or not part.size or bool(np.abs(part).max() <= largest)
