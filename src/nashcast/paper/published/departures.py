"""What the published code does otherwise than the theorem, as switches; see `published_game`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Departures(NamedTuple):
    """What the published code does otherwise; its own way by default."""

    printed: bool = True
    scrambled: bool = True
    reshaped: bool = True  # the mixture's forecasts are reshaped, not transposed
    detached: bool = True  # agents do not carry the synchronised forecast into their next step


class Sampler(NamedTuple):
    """How an echo state's expectations are sampled; samples = 0 where all moments are known."""

    samples: int
    drive: np.ndarray  # A x_t + b over the window, (lookback, agents, y_dim, features)
    recurrent: np.ndarray  # (agents, y_dim, y_dim)
    noise: float
