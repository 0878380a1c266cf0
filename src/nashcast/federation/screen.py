"""Suspect labels: a target that moved far beyond anything usual is not learnt from until it is confirmed.

A running root mean square of the targets' changes says what is usual. A change of more than SUSPECT times that is
suspect: nothing is learnt from it, and the history keeps the last value, until CONFIRMED such labels in a row say that
the world has changed. Changes of more than CLIPPED times the usual are clipped to it where decoders learn from them.
"""

from __future__ import annotations

import numpy as np

SUSPECT, CLIPPED = 200.0, 20.0
CONFIRMED = 3
_MEMORY, _LARGEST_STEP = 1000.0, 8.0
# So many changes must be known before one can be suspect.
_FIRST = 16


class Screen:
    """count: suspect labels so far."""

    def __init__(self, y_dim: int):
        self._squares = np.zeros(y_dim)
        self._changes = 0
        self._in_a_row = 0
        self.count = 0

    def accept(self, target: np.ndarray, anchor: np.ndarray) -> bool:
        """Whether a label may be learnt from. anchor: the last target that was accepted."""
        change = np.abs(target - anchor)
        usual = np.sqrt(self._squares)
        beyond = self._changes >= _FIRST and bool((change > SUSPECT * usual).any())
        suspect = beyond and bool((usual > 0.0).all())
        self._in_a_row = self._in_a_row + 1 if suspect else 0
        if suspect and self._in_a_row < CONFIRMED:
            self.count += 1
            return False
        confirmed, self._in_a_row = self._in_a_row >= CONFIRMED, 0
        # A confirmed change is the new world's, not its usual change.
        if not confirmed:
            known = np.where(usual > 0.0, np.minimum(change, _LARGEST_STEP * usual), change)
            self._squares += (known * known - self._squares) / min(self._changes + 1, _MEMORY)
            self._changes += 1
        return True

    def clipped(self, changes: np.ndarray) -> np.ndarray:
        """Changes (y_dim, horizon) as decoders may learn from them."""
        if self._changes < _FIRST:
            return changes
        usual = CLIPPED * np.sqrt(self._squares)
        if not usual.all():
            usual[usual == 0.0] = np.inf
        far = usual[:, None]
        if changes.shape[1] > 1:  # over h steps a target moves √h times as far, if it moves at random
            far = far * np.sqrt(np.arange(1, changes.shape[1] + 1))
        return np.minimum(np.maximum(changes, -far), far)

    def save(self) -> dict[str, np.ndarray]:
        counts = np.array([self._changes, self._in_a_row, self.count])
        return {"squares": self._squares, "counts": counts}

    def restore(self, fields) -> None:
        self._squares = fields.take("squares", self._squares.shape, min=0.0)
        self._changes, self._in_a_row, self.count = fields.take("counts", (3,), dtype=np.int64, min=0).tolist()
