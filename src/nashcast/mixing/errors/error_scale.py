r"""The usual size of the experts' errors in each column, and the errors of a step bounded by it.

Every rule learns from bounded errors, so that no single number can outweigh all earlier steps. The size of
a step is the root mean square of the awake experts' errors $|e_k|$, each counted as at most `SPREAD` times their
median, so that fewer than half of the experts cannot move it. The usual size s is the running root mean square of these
sizes; a step counts as at most `LIMIT` times the usual size. If s exceeds `LIMIT` times the median of the last `WINDOW`
sizes, it was learnt from outliers, for instance from a wrong first target, and restarts at `RESTART` times that median.
Then

1. a step whose median error exceeds `COMMON` s, such as one with a wrong target, is shrunk as a whole to the usual
   size: the order of the experts remains, and experts that all missed by the same amount gain nothing on each other;
2. a single error that exceeds `CLIP` s is clipped to it.

Steps without such an outlier are left exactly as they are. Regret bounds hold for the bounded errors
$\tilde e_k$, i.e. for experts that forecast $y + \tilde e_k$. An error of `HUGE` or more, or one that is not finite,
counts as that of a sleeping expert.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LIMIT = 8.0
RESTART = 2.0
COMMON = 4.0
CLIP = 20.0
SPREAD = 4.0
FIRST = 4  # steps before which no size counts as unusual
MEMORY = 200  # steps that the usual size is averaged over
WINDOW = 25
HUGE = 1e140  # errors from here on are not squared


class ErrorScale(NamedTuple):
    """The usual error size of each column."""

    squares: np.ndarray  # s², (columns,); 0 until an expert has made an error
    steps: np.ndarray  # steps with an error so far, (columns,)
    recent: np.ndarray  # squared sizes of the last WINDOW of them, (columns, WINDOW)


class Errors(NamedTuple):
    """The bounded errors of one step."""

    values: np.ndarray  # forecast minus target, bounded, 0 where asleep, (columns, experts)
    awake: np.ndarray  # (columns, experts); nowhere in a column without a label
    complete: bool  # whether all are awake in all columns
    usual: np.ndarray  # s² after this step, (columns,)
    revised: np.ndarray  # whether s was found wrong in this step and restarted, (columns,)
    outlying: np.ndarray  # whether an error of the step was shrunk or clipped, (columns,)
    shrunk: np.ndarray  # whether the whole step was, (columns,)


def init(columns: int) -> ErrorScale:
    """The state before any step."""
    return ErrorScale(np.zeros(columns), np.zeros(columns, dtype=np.int64), np.zeros((columns, WINDOW)))


def observe(
    scale: ErrorScale,
    forecasts: np.ndarray,
    target: np.ndarray,
    awake: np.ndarray | None = None,
    labelled: np.ndarray | None = None,
) -> Errors:
    """The errors of one step, bounded; updates `scale` in place.

    forecasts: (columns, experts), ignored where an expert is asleep.   target: (columns,), ignored without a label.
    awake: bool, (columns, experts) or (experts,); all if left out.   labelled: bool, (columns,); all if left out.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        e = forecasts - target[:, None]
        ordered = np.abs(e)
        here = ordered < HUGE  # False where not finite
    if awake is not None:
        here &= awake
    if labelled is not None:
        here &= labelled[:, None]
    complete = np.count_nonzero(here) == here.size
    if not complete:
        e = np.where(here, e, 0.0)
        ordered = np.abs(e)
    ordered.sort(axis=1)
    median, revised = _update(scale, ordered)
    s2 = scale.squares.copy()
    usual = np.sqrt(s2)
    limit = CLIP * usual
    shrunk = median > COMMON * usual
    largest = ordered[:, -1]
    if np.count_nonzero(shrunk):
        factor = np.divide(usual, median, out=np.ones_like(usual), where=shrunk)
        e = e * factor[:, None]
        largest = largest * factor
    clipped = largest > limit
    if np.count_nonzero(clipped):
        e = np.clip(e, -limit[:, None], limit[:, None])
    return Errors(e, here, complete, s2, revised, shrunk | clipped, shrunk)


def _update(scale: ErrorScale, ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Adds the sorted error sizes of a step; returns their medians over experts with an error, and `revised`."""
    s2, steps, recent = scale
    columns, K = ordered.shape
    rows, place = np.arange(columns), steps % WINDOW
    if np.count_nonzero(ordered) == ordered.size:  # most steps; the same as below
        counted, known, median = K, True, ordered[:, K - 1 - K // 2]
    else:
        # Experts without an error come first.
        counted = np.add.reduce(ordered > 0.0, axis=1)
        known = counted > 0
        median = ordered[rows, K - 1 - counted // 2]
        counted = np.maximum(counted, 1)
    bounded = np.minimum(ordered, SPREAD * median[:, None])
    size = np.vecdot(bounded, bounded)
    size /= counted
    recent[rows, place] = size if known is True else np.where(known, size, recent[rows, place])
    steps += known
    moved = np.where(steps > FIRST, np.minimum(size, LIMIT**2 * s2), size)
    moved -= s2
    moved /= np.minimum(np.maximum(steps, 1), MEMORY)
    np.add(s2, moved, out=s2, where=known)
    # The median of the last sizes is below s² / LIMIT² if more than half of them are.
    revised = np.add.reduce(recent < (s2 / LIMIT**2)[:, None], axis=1) > WINDOW // 2
    if np.count_nonzero(revised):
        revised &= known & (steps >= WINDOW)
        middle = np.partition(recent[revised], WINDOW // 2, axis=1)[:, WINDOW // 2]
        s2[revised] = RESTART**2 * middle
        steps[revised] = WINDOW
    return median, revised
