"""Inputs as the families of standardised rows see them: all, or a fixed random projection where there are many."""

from __future__ import annotations

import numpy as np

from nashcast import seeds
from nashcast.encoders.families.rows import Rows

# More inputs than this are projected at random to this many.
MOST_INPUTS = 24


class WideInputs:
    """x_dim: numbers in an input.   count: how many numbers the features are made of."""

    def __init__(self, x_dim: int):
        self.count = min(x_dim, MOST_INPUTS)
        self._projection = None
        if x_dim > MOST_INPUTS:
            rng = seeds.generator(x_dim, "wide inputs")
            self._projection = rng.standard_normal((x_dim, MOST_INPUTS)) / np.sqrt(x_dim)

    def values(self, rows: Rows) -> np.ndarray:
        """(rows, count)"""
        return rows.inputs if self._projection is None else rows.inputs @ self._projection

    def changes(self, rows: Rows) -> np.ndarray:
        return rows.input_changes if self._projection is None else rows.input_changes @ self._projection
