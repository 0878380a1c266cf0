"""Bounds around each forecast. The one place of the service that knows how they are made."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Protocol

import numpy as np

# Errors that the bounds are the quantiles of; fewer than FEWEST say too little to bound anything.
REMEMBERED, FEWEST = 500, 20


class Bounds(Protocol):
    """What the service asks of them. What `save` gives goes to disk, so it is arrays by name."""

    def bounds(self, forecast: np.ndarray) -> np.ndarray:
        """Lower and upper bounds for each coverage, (coverages, 2, y_dim); NaN while nothing can be said."""
        ...

    def learn(self, forecast: np.ndarray, target: np.ndarray) -> None: ...

    def save(self) -> dict[str, np.ndarray]: ...

    def restore(self, saved: dict[str, np.ndarray]) -> None: ...


class RecentErrors:
    """Quantiles of the last absolute errors, for each number of the target by itself."""

    def __init__(self, y_dim: int, coverages: Sequence[float]):
        self._coverages = tuple(coverages)
        self._errors = np.empty((0, y_dim))

    def bounds(self, forecast: np.ndarray) -> np.ndarray:
        if len(self._errors) < FEWEST:
            return np.full((len(self._coverages), 2, len(forecast)), np.nan)
        # The finite-sample rank: with n errors, the ⌈(n + 1) c⌉-th smallest.
        n = len(self._errors)
        ranks = [min(ceil((n + 1) * coverage), n) - 1 for coverage in self._coverages]
        widths = np.partition(self._errors, ranks, axis=0)[ranks]
        found = np.empty((len(ranks), 2, len(forecast)))
        found[:, 0], found[:, 1] = forecast - widths, forecast + widths
        return found

    def learn(self, forecast: np.ndarray, target: np.ndarray) -> None:
        kept = self._errors[-(REMEMBERED - 1) :]
        self._errors = np.concatenate([kept, np.abs(target - forecast)[None]])

    def save(self) -> dict[str, np.ndarray]:
        return {"errors": self._errors}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        self._errors = saved["errors"].copy()


def make_bounds(y_dim: int, coverages: Sequence[float]) -> Bounds:
    return RecentErrors(y_dim, coverages)
