"""Labels that moved far beyond the usual change are not learnt from until later ones confirm them.

The usual change is a running root mean square of the targets' changes. Beyond DOUBTFUL times that, a label is accepted
(forecasts start from it), but it is learnt from only if the next label is nearer to it than to the one before it; if
not, it was a spike and is removed from the history. Beyond SUSPECT times, it is not accepted: the history keeps the
last value until CONFIRMED such labels in a row (one fewer at the beginning) confirm a change of level.
Changes of more than CLIPPED times the usual are clipped to it where decoders learn from them.
"""

from __future__ import annotations

from enum import Enum
from math import sqrt
from typing import NamedTuple

import numpy as np

SUSPECT, DOUBTFUL, CLIPPED = 200.0, 25.0, 20.0
CONFIRMED = 3
_MEMORY, _LARGEST_STEP = 1000.0, 8.0
# With fewer known changes than this, the thresholds grow by the square of the ratio.
_FIRST = 16
# The number of changes that must be known before a label can be doubtful or suspect.
_FEWEST = 2


class Verdict(Enum):
    ACCEPTED = "accepted"
    DOUBTFUL = "doubtful"
    SUSPECT = "suspect"


class Doubt(NamedTuple):
    """A label that waits for the next one to confirm it."""

    step: int
    value: np.ndarray
    before: np.ndarray  # the target before it


class Screen:
    """count: suspect labels and spikes so far.   doubt: the doubtful label that is not confirmed yet, if any.

    Targets are few, and for few numbers lists are faster than arrays.
    """

    def __init__(self, y_dim: int):
        self._squares = [0.0] * y_dim
        self._usual = [0.0] * y_dim  # roots of the squares
        self._changes = 0
        self._in_a_row = 0
        self.count = 0
        self.doubt: Doubt | None = None

    def judge(self, target: np.ndarray, anchor: np.ndarray) -> Verdict:
        """Whether a label may be learnt from. anchor: the last target that was accepted."""
        change = _distances(target, anchor)
        beyond = self._beyond(change)
        self._in_a_row = self._in_a_row + 1 if beyond > SUSPECT else 0
        if 0 < self._in_a_row < (CONFIRMED if self._changes >= _FIRST else CONFIRMED - 1):
            self.count += 1
            return Verdict.SUSPECT
        if self._in_a_row:  # a confirmed change of level is no usual change
            self._in_a_row = 0
            return Verdict.ACCEPTED
        if beyond > DOUBTFUL:
            return Verdict.DOUBTFUL
        self._learn(change)
        return Verdict.ACCEPTED

    def accept_late(self, target: np.ndarray, anchor: np.ndarray) -> bool:
        """Whether a late label may be learnt from, since no later label will confirm it."""
        change = _distances(target, anchor)
        if self._beyond(change) > SUSPECT:
            self.count += 1
            return False
        self._learn(change)
        return True

    def is_spike(self, doubt: Doubt, target: np.ndarray) -> bool:
        """Whether the label after a doubtful one is nearer to the target before both."""
        back, on = (self._largest(_distances(target, value)) for value in (doubt.before, doubt.value))
        spike = back < on
        self.count += spike
        return spike

    def clipped(self, changes: np.ndarray) -> np.ndarray:
        """Changes (y_dim, horizon) as decoders may learn from them."""
        if self._changes < _FIRST:
            return changes
        far = np.array([CLIPPED * usual if usual > 0.0 else np.inf for usual in self._usual])[:, None]
        if changes.shape[1] > 1:  # over h steps a random walk moves √h times as far
            far = far * np.sqrt(np.arange(1, changes.shape[1] + 1))
        return np.minimum(np.maximum(changes, -far), far)

    def _largest(self, change: list[float]) -> float:
        """The largest change in units of the usual change; targets that never moved are left out."""
        return max(one / usual if usual > 0.0 else 0.0 for one, usual in zip(change, self._usual, strict=True))

    def _beyond(self, change: list[float]) -> float:
        """The same, reduced where few changes are known."""
        if self._changes < _FEWEST:
            return 0.0
        return self._largest(change) * min(1.0, self._changes / _FIRST) ** 2

    def _learn(self, change: list[float]) -> None:
        count = min(self._changes + 1, _MEMORY)
        for k, usual in enumerate(self._usual):
            known = min(change[k], _LARGEST_STEP * usual) if usual > 0.0 else change[k]
            self._squares[k] += (known * known - self._squares[k]) / count
            self._usual[k] = sqrt(self._squares[k])
        self._changes += 1

    def save(self) -> dict[str, np.ndarray]:
        nothing = np.zeros(len(self._squares))
        step, value, before = self.doubt or Doubt(-1, nothing, nothing)
        counts = np.array([self._changes, self._in_a_row, self.count])
        squares = np.array(self._squares)
        return {"squares": squares, "counts": counts, "doubt": np.stack([value, before]), "step": np.array(step)}

    def restore(self, fields) -> None:
        self._squares = fields.take("squares", (len(self._squares),), min=0.0).tolist()
        self._usual = [sqrt(square) for square in self._squares]
        self._changes, self._in_a_row, self.count = fields.take("counts", (3,), dtype=np.int64, min=0).tolist()
        step = int(fields.take("step", (), dtype=np.int64, min=-1))
        value, before = fields.take("doubt", (2, len(self._squares)))
        self.doubt = None if step < 0 else Doubt(step, value, before)


def _distances(target: np.ndarray, other: np.ndarray) -> list[float]:
    return [abs(one - two) for one, two in zip(target.tolist(), other.tolist(), strict=True)]
