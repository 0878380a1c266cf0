"""What a compiled replay of a whole series needs of one agent of Algorithm 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.games.moments.features import EchoParameters, Moments


class ReplayPart(NamedTuple):
    """An agent's part in a compiled replay."""

    features: np.ndarray  # (steps, y_dim, features)
    moments: Moments | None
    echo: EchoParameters | None
    relative: bool
    ridge: float
    decay: float
    window: int
    forgetting: float  # 0: learn from the window
