"""Forecasts whose labels are still to come: of the last rows, by step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.agents.joint_blocks import REMEMBERED


class Past(NamedTuple):
    """The forecasts of one target that were made 1 … horizon steps before it."""

    anchors: np.ndarray  # where the target stood then, (y_dim, horizon)
    experts: np.ndarray  # (y_dim, horizon, experts)
    leverage: np.ndarray  # (y_dim, horizon, experts)
    awake: np.ndarray  # (horizon, experts)
    forecasts: np.ndarray  # of the federation, (horizon, y_dim)
    own: np.ndarray  # each member's own of the next target, (members, y_dim), made one step before it
    without: np.ndarray  # the federation's without each member, likewise


class Said(NamedTuple):
    """All that was said at one step, before any label."""

    experts: np.ndarray  # (y_dim, horizon, experts)
    leverage: np.ndarray  # (y_dim, experts)
    awake: np.ndarray  # (experts,)
    forecasts: np.ndarray  # (horizon, y_dim)
    own: np.ndarray  # (members, y_dim)
    without: np.ndarray  # (members, y_dim)


class Pending:
    """The last REMEMBERED rows; a label that comes later than that is too late to teach."""

    def __init__(self, y_dim: int, horizon: int, experts: int, members: int):
        self._anchors = np.zeros((REMEMBERED, y_dim))
        self._experts = np.zeros((REMEMBERED, y_dim, horizon, experts))
        self._leverage = np.zeros((REMEMBERED, y_dim, experts))
        self._awake = np.zeros((REMEMBERED, experts), dtype=bool)
        self._forecasts = np.zeros((REMEMBERED, horizon, y_dim))
        self._own = np.zeros((REMEMBERED, members, y_dim))
        self._without = np.zeros((REMEMBERED, members, y_dim))
        self._steps = np.full(REMEMBERED, -1)

    def add(self, step: int, anchor: np.ndarray, said: Said) -> None:
        place = step % REMEMBERED
        self._steps[place], self._anchors[place] = step, anchor
        for name, value in said._asdict().items():
            getattr(self, f"_{name}")[place] = value

    def holds(self, steps: np.ndarray) -> np.ndarray:
        """Which of the steps are remembered."""
        return (steps >= 0) & (self._steps[steps % REMEMBERED] == steps)

    def take(self, steps: np.ndarray) -> Past:
        """steps: (horizon,): the forecast of horizon h was made at steps[h - 1]."""
        places, horizons = steps % REMEMBERED, np.arange(len(steps))
        experts = self._experts[places, :, horizons]  # (horizon, y_dim, experts)
        return Past(
            self._anchors[places].T, experts.swapaxes(0, 1), self._leverage[places].swapaxes(0, 1),
            self._awake[places], self._forecasts[places, horizons], self._own[places[0]], self._without[places[0]],
        )  # fmt: skip

    def save(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, f"_{name}") for name in _STATE} | {"awake": self._awake, "steps": self._steps}

    def restore(self, fields) -> None:
        for name in _STATE:
            setattr(self, f"_{name}", fields.take(name, getattr(self, f"_{name}").shape))
        self._awake = fields.take("awake", self._awake.shape, dtype=bool)
        self._steps = fields.take("steps", self._steps.shape, dtype=np.int64, min=-1)


_STATE = ("anchors", "experts", "leverage", "forecasts", "own", "without")
