"""The paper's Periodic Signal: four values, repeated."""

from __future__ import annotations

import numpy as np

from nashcast import validation as check
from nashcast.datasets.base import Stream


def periodic(steps: int = 200) -> Stream:
    """The cycle of 5, 6, 12, 20, scaled to [-0.9, 0.9] and begun at its second value; the input is the last value."""
    R = check.integer("steps", steps, min=1)
    cycle = np.array([6.0, 12.0, 20.0, 5.0])
    y = np.resize(-0.9 + 1.8 * (cycle - 5.0) / 15.0, R + 1)[:, None]
    return Stream("periodic", y[:-1], y[1:], y[0])
