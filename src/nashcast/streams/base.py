"""A recorded series: inputs, what each is to forecast, and the target before the first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Stream(NamedTuple):
    """Row t of inputs is known when row t of targets is to be forecast."""

    name: str
    inputs: np.ndarray  # (steps, x_dim)
    targets: np.ndarray  # (steps, y_dim)
    start: np.ndarray  # (y_dim,), the target before the first
