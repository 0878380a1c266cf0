"""What a federation keeps of past steps, and what a replay of a series returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Record(NamedTuple):
    """One step of the history."""

    step: int
    forecast: np.ndarray  # of the next target, (y_dim,)
    weights: np.ndarray  # of each member
    target: np.ndarray | None


class Replay(NamedTuple):
    """A whole series forecast step by step. Row t belongs to the forecast of targets[t]."""

    forecasts: np.ndarray  # (steps, y_dim)
    weights: np.ndarray  # (steps, members)
    agents: np.ndarray  # each member's own forecasts, (steps, members, y_dim)
    mse: float  # mean over steps and targets
    fallbacks: int = 0  # steps whose game was due but could not be played, so that the greedy step stood
