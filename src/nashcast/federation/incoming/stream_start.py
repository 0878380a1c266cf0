"""How a stream begins: inputs that wait for the first target, and wild labels among the first ones.

Before enough labels are known to say what is usual, none can be refused, and one that is a thousand times too large
would fill every memory. So after FIRST steps the beginning is looked at once; if labels stand out, it is learnt again
without them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from nashcast.federation.forecast import Scored
    from nashcast.federation.loop import Loop

# Steps after which the beginning is judged, and how many usual changes a label must stand out by.
FIRST, WILD = 16, 1000.0
# The share of changes, the smallest ones, that says what is usual.
_USUAL_SHARE = 0.75
# Inputs that came before the first known target; older ones are not forecast from once it is known.
MOST_WAITING = 200


class Row(NamedTuple):
    """One input: its numbers, and the objects (texts, pictures) that came with it."""

    x: np.ndarray
    objects: Mapping[str, Any]


class Waiting:
    """Inputs before the first known target.   steps: how many there were."""

    def __init__(self):
        self._rows: deque[Row] = deque(maxlen=MOST_WAITING)
        self.steps = 0

    def add(self, row: Row) -> None:
        self._rows.append(row)
        self.steps += 1

    def since(self, step: int) -> list[Row]:
        """Those of step `step` and later, if they are all remembered."""
        missed = self.steps - step
        return list(self._rows)[len(self._rows) - missed :] if 0 < missed <= len(self._rows) else []


def spikes(targets: np.ndarray) -> np.ndarray:
    """Which of the first targets (steps, y_dim), oldest first, stand out from both neighbours; (steps,).

    The first target does so if the second and the third are near each other. Where most changes are 0, none does.

    >>> spikes(np.array([1.0, 1.2, 9e9, 1.1, 1.3, 1.2])[:, None])
    array([False, False,  True, False, False, False])
    """
    steps = len(targets)
    changes = np.abs(np.diff(targets, axis=0))
    smallest = np.sort(changes, axis=0)[: max(1, int(_USUAL_SHARE * len(changes)))]
    usual = np.sqrt((smallest**2).mean(axis=0))
    wild = ((changes > WILD * usual) & (usual > 0.0)).any(axis=1)
    before, after = np.zeros(steps, dtype=bool), np.zeros(steps, dtype=bool)
    before[0], before[1:], after[:-1] = not wild[1:2].any(), wild, wild
    return before & after


def begin_again(
    loop: Loop, objects: list[Mapping[str, Any]], new_loop: Callable[[np.ndarray, int], Loop]
) -> tuple[Loop, list[Scored]] | None:
    """After FIRST steps: a loop that learnt them without wild labels, and what it scored; None if there are none.

    objects: that came with the last inputs.   new_loop: makes one of its first target and first step.
    """
    targets, labelled, inputs, times = loop.history.beginning()
    wild = np.zeros(len(targets), dtype=bool)
    wild[labelled] = spikes(targets[labelled])
    if not wild.any():
        return None
    first = int(np.argmax(labelled & ~wild))
    again, scored = new_loop(targets[first], loop.history.step - FIRST + first), []
    again.count_suspects(int(wild.sum()))
    missing: list[Mapping[str, Any]] = [{}] * (FIRST - len(objects))
    came_with = [*missing, *objects]
    for t in range(first, FIRST):
        again.forecast(inputs[t], times[t], came_with[t])
        known = labelled[t + 1] and not wild[t + 1]
        scored += again.learn(targets[t + 1] if known else None)
    return again, scored
