"""How a stream begins: inputs that wait for the first target, and outliers among the first labels.

Before enough labels are known to estimate the usual change, none can be refused, and one that is a thousand times too
large would dominate every memory. So after FIRST steps the beginning is checked once; if labels are outlying, it is
learnt again without them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from nashcast.federation.forecast import Scored
    from nashcast.federation.loop import Loop

# Steps after which the beginning is checked, and the distance of an outlier from its neighbours, in usual changes.
FIRST, OUTLYING = 16, 1000.0
# The usual change is the root mean square of this share of the changes, the smallest ones.
_USUAL_SHARE = 0.75
# How many inputs before the first known target are stored; older ones are not forecast from once it is known.
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
        """Those of step `step` and later, if all are still stored."""
        missed = self.steps - step
        return list(self._rows)[len(self._rows) - missed :] if 0 < missed <= len(self._rows) else []


def spikes(targets: np.ndarray) -> np.ndarray:
    """Which of the first targets (steps, y_dim), oldest first, are far from both neighbours; (steps,).

    The first target does so if the second and the third are near each other. Where most changes are 0, none does.

    >>> spikes(np.array([1.0, 1.2, 9e9, 1.1, 1.3, 1.2])[:, None])
    array([False, False,  True, False, False, False])
    """
    steps = len(targets)
    changes = np.abs(np.diff(targets, axis=0))
    smallest = np.sort(changes, axis=0)[: max(1, int(_USUAL_SHARE * len(changes)))]
    usual = np.sqrt((smallest**2).mean(axis=0))
    outlying = ((changes > OUTLYING * usual) & (usual > 0.0)).any(axis=1)
    before, after = np.zeros(steps, dtype=bool), np.zeros(steps, dtype=bool)
    before[0], before[1:], after[:-1] = not outlying[1:2].any(), outlying, outlying
    return before & after


def begin_again(
    loop: Loop, objects: list[Mapping[str, Any]], new_loop: Callable[[np.ndarray, int], Loop]
) -> tuple[Loop, list[Scored]] | None:
    """After FIRST steps: a loop that learnt them without outliers, and what it scored; None if there are none.

    objects: those that came with the last inputs.   new_loop: makes a loop from its first target and first step.
    """
    targets, labelled, inputs, times = loop.history.beginning()
    outlying = np.zeros(len(targets), dtype=bool)
    outlying[labelled] = spikes(targets[labelled])
    if not outlying.any():
        return None
    first = int(np.argmax(labelled & ~outlying))
    again, scored = new_loop(targets[first], loop.history.step - FIRST + first), []
    again.count_suspects(int(outlying.sum()))
    missing: list[Mapping[str, Any]] = [{}] * (FIRST - len(objects))
    came_with = [*missing, *objects]
    for t in range(first, FIRST):
        again.forecast(inputs[t], times[t], came_with[t])
        known = labelled[t + 1] and not outlying[t + 1]
        scored += again.learn(targets[t + 1] if known else None)
    return again, scored
