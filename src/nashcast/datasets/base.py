"""A recorded series: inputs, the target of each, and the target before the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Stream(NamedTuple):
    """Row t of inputs is known when row t of targets is to be forecast.

    offset, unit: a target in its own units is offset + unit · the value here.   dates: the targets' dates, if any.
    input_names: the column that each number of an input comes from, if any; lags of a column share its name.
    owners: the places of the inputs that each owner sees, if the inputs belong to several.
    """

    name: str
    inputs: np.ndarray  # (steps, x_dim)
    targets: np.ndarray  # (steps, y_dim)
    start: np.ndarray  # (y_dim,), the target before the first
    offset: np.ndarray | float = 0.0
    unit: np.ndarray | float = 1.0
    dates: tuple[str, ...] = ()
    input_names: tuple[str, ...] = ()
    owners: Mapping[str, tuple[int, ...]] = {}

    def in_units(self, values: np.ndarray) -> np.ndarray:
        """Targets or forecasts (…, y_dim) in the units they were recorded in."""
        return self.offset + self.unit * np.asarray(values)

    @property
    def persistence(self) -> np.ndarray:
        """Forecasts (steps, y_dim) that repeat the last target."""
        return np.vstack([self.start, self.targets[:-1]])

    @property
    def persistence_mse(self) -> float:
        """The mean squared error of persistence, averaged over steps and coordinates."""
        return float(np.mean((self.targets - self.persistence) ** 2))
