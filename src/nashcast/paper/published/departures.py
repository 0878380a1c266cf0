"""The published code's deviations from the theorem, as switches; see `published_game`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Departures(NamedTuple):
    """The published code's deviations; all are on by default."""

    printed: bool = True
    scrambled: bool = True
    reshaped: bool = True  # the mixture's forecasts are reshaped, not transposed
    detached: bool = True  # agents do not carry the synchronised forecast into their next step


class Sampler(NamedTuple):
    """Sampling of an echo state's expectations; samples = 0 if all moments are known."""

    samples: int
    drive: np.ndarray  # A x_t + b over the window, (lookback, agents, y_dim, features)
    recurrent: np.ndarray  # (agents, y_dim, y_dim)
    noise: float
