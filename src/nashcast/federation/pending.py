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
        self._steps = np.full(REMEMBERED, -1)
        self._anchors = np.zeros((REMEMBERED, y_dim))
        self._said = Said(
            np.zeros((REMEMBERED, y_dim, horizon, experts)), np.zeros((REMEMBERED, y_dim, experts)),
            np.zeros((REMEMBERED, experts), dtype=bool), np.zeros((REMEMBERED, horizon, y_dim)),
            np.zeros((REMEMBERED, members, y_dim)), np.zeros((REMEMBERED, members, y_dim)),
        )  # fmt: skip

    def add(self, step: int, anchor: np.ndarray, said: Said) -> None:
        place = step % REMEMBERED
        self._steps[place], self._anchors[place] = step, anchor
        for kept, value in zip(self._said, said, strict=True):
            kept[place] = value

    def holds(self, steps: np.ndarray) -> np.ndarray:
        """Which of the steps are remembered."""
        return (steps >= 0) & (self._steps[steps % REMEMBERED] == steps)

    def take(self, steps: np.ndarray) -> Past:
        """steps: (horizon,): the forecast of horizon h was made at steps[h - 1]."""
        experts, leverage, awake, forecasts, own, without = self._said
        places, horizons = steps % REMEMBERED, np.arange(len(steps))
        if len(steps) == 1:  # the same as below, without copies
            at = slice(places[0], places[0] + 1)
            return Past(
                self._anchors[at].T, experts[at.start], leverage[at].swapaxes(0, 1), awake[at], forecasts[at.start],
                own[at.start], without[at.start],
            )  # fmt: skip
        return Past(
            self._anchors[places].T, experts[places, :, horizons].swapaxes(0, 1), leverage[places].swapaxes(0, 1),
            awake[places], forecasts[places, horizons], own[places[0]], without[places[0]],
        )  # fmt: skip

    def save(self) -> dict[str, np.ndarray]:
        return {**self._said._asdict(), "anchors": self._anchors, "steps": self._steps}

    def restore(self, fields) -> None:
        self._said = Said(
            *(fields.take(name, kept.shape, dtype=kept.dtype) for name, kept in self._said._asdict().items())
        )
        self._anchors = fields.take("anchors", self._anchors.shape)
        self._steps = fields.take("steps", self._steps.shape, dtype=np.int64, min=-1)
