"""Wild labels among the very first ones, found once enough are known to say what is usual.

Before that nothing can be refused, and a label a thousand times too large would fill every memory. So after FIRST steps
the beginning is looked at once; if labels stand out, the federation begins again without them.
"""

from __future__ import annotations

import numpy as np

# Steps after which the beginning is judged, and how many usual changes a label must stand out by.
FIRST, WILD = 16, 1000.0
# The share of changes, the smallest ones, that says what is usual.
_USUAL_SHARE = 0.75


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
