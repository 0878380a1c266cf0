"""Squared errors of the federation, of its agents, of persistence and of the agents without a game."""

from __future__ import annotations

from math import isnan, nan

import numpy as np

# Columns before those of the agents.
MIXTURE, PERSISTENCE, BESIDE = 0, 1, 2
FIRST_AGENT = 3


class Scores:
    """The last `window` errors, and sums since the first. NaN where there was no forecast.

    coverages: number of intervals per forecast; whether targets lay inside is stored with the errors.
    """

    def __init__(self, agents: int, window: int, coverages: int = 0):
        self._errors = FIRST_AGENT + agents
        self._recent = np.full((window, self._errors + coverages), np.nan)
        self._totals = np.zeros(FIRST_AGENT)
        self.count = 0

    def add(self, target: np.ndarray, forecasts: np.ndarray) -> tuple[float, float]:
        """forecasts: mixture, persistence, no game, each agent, then low and high of each coverage.

        (columns, y_dim), NaN where one is not known. Returns the mixture's squared error, and the share of targets in
        the last interval.
        """
        missed = forecasts[: self._errors] - target
        errors = np.einsum("ij,ij->i", missed, missed) / len(target)
        row = self._recent[self.count % len(self._recent)]
        row[: self._errors] = errors
        if len(row) > self._errors:
            bounds = forecasts[self._errors :].reshape(-1, 2, len(target))
            inside = (bounds[:, 0] <= target) & (target <= bounds[:, 1])
            # Until the first forecast is scored, intervals are infinite and carry no information.
            row[self._errors :] = np.where(np.isfinite(bounds).all(axis=(1, 2)), inside.mean(axis=1), np.nan)
        for i, error in enumerate(errors[:FIRST_AGENT].tolist()):
            if not isnan(error):
                self._totals[i] += error
        self.count += 1
        return float(errors[MIXTURE]), float(row[-1]) if len(row) > self._errors else nan

    def recent(self) -> np.ndarray:
        """Mean squared error of each column over the window; NaN where there is nothing."""
        return self._means()[: self._errors]

    def covered(self) -> np.ndarray:
        """Share of the targets in the window inside their intervals, (coverages,); NaN where there is nothing."""
        return self._means()[self._errors :]

    def _means(self) -> np.ndarray:
        rows = self._recent[: min(self.count, len(self._recent))]
        here = ~np.isnan(rows)
        counts = here.sum(axis=0)
        sums = np.where(here, rows, 0.0).sum(axis=0)
        return np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)

    def totals(self) -> np.ndarray:
        """Mean of the first columns since the first step."""
        if not self.count:
            return np.full(FIRST_AGENT, np.nan)
        means = self._totals / self.count
        if not self._totals[BESIDE]:  # no comparison without a game
            means[BESIDE] = np.nan
        return means

    def save(self) -> dict[str, np.ndarray]:
        return {"recent": self._recent, "totals": self._totals, "count": np.array(self.count)}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        kept, count = saved["recent"], int(saved["count"])
        oldest_first = np.roll(kept, -(count % len(kept)), axis=0) if count >= len(kept) else kept[:count]
        self._recent[:] = np.nan
        # The window may have another length than when it was saved.
        for place, row in zip(range(count - len(oldest_first), count), oldest_first, strict=True):
            self._recent[place % len(self._recent)] = row
        self._totals, self.count = saved["totals"].copy(), count
