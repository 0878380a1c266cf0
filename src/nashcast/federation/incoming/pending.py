"""Forecasts of the last rows that wait for their labels, by step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.agents.joint.joint_blocks import REMEMBERED
from nashcast.federation.members import Mixture


class Past(NamedTuple):
    """The forecasts of one target that were made 1 … horizon steps before it."""

    experts: np.ndarray  # (y_dim, horizon, experts)
    leverage: np.ndarray  # (y_dim, horizon, experts)
    awake: np.ndarray  # (horizon, experts)
    forecasts: np.ndarray  # the federation's, (horizon, y_dim)
    mixture: Mixture  # the one behind the forecast made one step before


class Said(NamedTuple):
    """All forecasts made at one step, before any label."""

    experts: np.ndarray  # (y_dim, horizon, experts)
    leverage: np.ndarray  # (y_dim, experts)
    awake: np.ndarray  # (experts,)
    forecasts: np.ndarray  # (horizon, y_dim)
    weights: np.ndarray  # the experts' in the forecast of the next target, (y_dim, experts)
    shares: np.ndarray  # the agents' in the joint experts of the next target, (variants, agents, y_dim)

    @property
    def mixture(self) -> Mixture:
        return Mixture(self.weights, self.experts[..., 0, :], self.awake, self.shares)


class Pending:
    """The last REMEMBERED rows; a label that comes later than that is not learnt from.

    shares: shape of the agents' parts of the joint experts, (variants, agents).
    """

    def __init__(self, y_dim: int, horizon: int, experts: int, shares: tuple[int, int]):
        self._stored = Said(
            np.zeros((REMEMBERED, y_dim, horizon, experts)), np.zeros((REMEMBERED, y_dim, experts)),
            np.zeros((REMEMBERED, experts), dtype=bool), np.zeros((REMEMBERED, horizon, y_dim)),
            np.zeros((REMEMBERED, y_dim, experts)), np.zeros((REMEMBERED, *shares, y_dim)),
        )  # fmt: skip
        self._horizons = np.arange(horizon)

    def add(self, step: int, row: Said) -> None:
        place = step % REMEMBERED
        for stored, value in zip(self._stored, row, strict=True):
            stored[place] = value

    def take(self, steps: np.ndarray) -> Past:
        """steps: (horizon,): the forecast of horizon h was made at steps[h - 1]."""
        experts, leverage, awake, forecasts, _, _ = self._stored
        places, horizons = steps % REMEMBERED, self._horizons
        first = int(places[0])
        mixture = Said(*(stored[first] for stored in self._stored)).mixture
        if len(steps) == 1:  # the same as below, without copies
            at = slice(first, first + 1)
            return Past(experts[first], leverage[at].swapaxes(0, 1), awake[at], forecasts[first], mixture)
        return Past(
            experts[places, :, horizons].swapaxes(0, 1), leverage[places].swapaxes(0, 1), awake[places],
            forecasts[places, horizons], mixture,
        )  # fmt: skip

    def save(self) -> dict[str, np.ndarray]:
        return self._stored._asdict()

    def restore(self, fields) -> None:
        self._stored = Said(
            *(fields.take(name, stored.shape, dtype=stored.dtype) for name, stored in self._stored._asdict().items())
        )
