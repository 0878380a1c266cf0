"""Squared errors of the federation, of its agents, of persistence and of the agents without a game."""

from __future__ import annotations

from math import isnan

import numpy as np

# Columns before those of the agents.
MIXTURE, PERSISTENCE, BESIDE = 0, 1, 2
FIRST_AGENT = 3


class Scores:
    """The last `window` errors, and sums since the first. NaN where somebody made no forecast."""

    def __init__(self, agents: int, window: int):
        self._recent = np.full((window, FIRST_AGENT + agents), np.nan)
        self._totals = np.zeros(FIRST_AGENT)
        self.count = 0

    def add(self, target: np.ndarray, forecasts: np.ndarray) -> None:
        """forecasts: of the mixture, persistence, no game, and the agents, (columns, y_dim)."""
        missed = forecasts - target
        errors = np.einsum("ij,ij->i", missed, missed) / len(target)
        self._recent[self.count % len(self._recent)] = errors
        for i, error in enumerate(errors[:FIRST_AGENT].tolist()):
            if not isnan(error):
                self._totals[i] += error
        self.count += 1

    def recent(self) -> np.ndarray:
        """Mean of each column over the window; NaN where there is nothing."""
        rows = self._recent[: min(self.count, len(self._recent))]
        here = ~np.isnan(rows)
        counts = here.sum(axis=0)
        sums = np.where(here, rows, 0.0).sum(axis=0)
        return np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)

    def totals(self) -> np.ndarray:
        """Mean of the first columns since the first step."""
        return self._totals / self.count if self.count else np.full(FIRST_AGENT, np.nan)

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
