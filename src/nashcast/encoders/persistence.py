"""Persistence: no features, so the agent's forecast does not change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast.encoders.base import BuiltEncoder, Context


@dataclass(frozen=True)
class Persistence:
    """No features at all. Between games the agent repeats its last forecast; anchored, it repeats the last target."""

    def build(self, x_dim: int, y_dim: int) -> _Built:
        return _Built(y_dim)


class _Built(BuiltEncoder):
    features = 0

    def __init__(self, y_dim: int):
        self._nothing = np.zeros((y_dim, 0))

    def encode(self, context: Context) -> np.ndarray:
        return self._nothing
