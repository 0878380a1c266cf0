"""How large numbers may be: finite is not enough where others go on to add and multiply them."""

from __future__ import annotations

from typing import Any

import numpy as np

# What an agent's numbers may be in size: sums and products of them are finite, so that none can make the hub's not.
LARGEST = 1e100
# A spread game whose sums are larger has no result; with such sums everybody's terms could become infinite.
WILD = 1e60


def tame(part: Any, largest: float = LARGEST) -> bool:
    """Whether no number in a message, or in a part of one, is larger in size, or none at all.

    >>> tame((np.array([1.0, -1e99]), None)), tame((np.array([np.nan]),))
    (True, False)
    """
    if isinstance(part, tuple):
        return all(tame(each, largest) for each in part)
    return not isinstance(part, np.ndarray) or not part.size or bool(np.abs(part).max() <= largest)
