"""Long memories: every learner's features and what they should have explained, in standardised units.

Scales are revised at every step of the beginning and then each time the stream has doubled, if they have moved. Then
features mean something else, so all memories are learnt again from the rows that are kept; so is the seasonal agent's
when the season changes.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit

from nashcast.adaptive.features import advance_echo, fill_features, read_inputs
from nashcast.adaptive.memory import BEFORE, CAPACITY, CHANGE, MEAN, NEXT_REVISION, OFFSET, ROWS, SEASON, SPREAD, STEP
from nashcast.adaptive.plan import ECHO, HIDDEN, KEPT, LEARNERS, MOST_INPUTS, SEASONAL
from nashcast.adaptive.seasons import add_change, find_season
from nashcast.experiments.paper.kernels.ridge import fade, remember_row

# Every step up to this one, then at 1.5 times and at powers of two.
EVERY_STEP = 8
# Later than this, scales are left as they are unless one has moved by so much.
SETTLED, SHIFT, RATIO = 64, 0.5, 1.5
NOTHING_AGAIN, SEASON_AGAIN, ALL_AGAIN = range(3)


@njit(cache=True)
def learn_row(plan, memory, row, only):
    """Take in what a row's features should have explained; they stand in `memory.previous`. only: an agent, or 0."""
    for learner in range(LEARNERS):
        if only > 0 and learner + 1 != only:
            continue
        d = plan.sizes[learner]
        for k in range(memory.targets.shape[1]):
            size = memory.target_scales[CHANGE, k]
            if not size > 0.0:
                continue
            response = (memory.targets[row + 1, k] - memory.targets[row, k]) / size
            features = memory.previous[learner, k, :d]
            for m in range(len(plan.forgetting)):
                gram, cross = memory.gram[learner, m, k], memory.cross[learner, m, k, :d]
                fade(gram, cross, plan.forgetting[m])
                remember_row(gram, cross, features, response)


@njit(cache=True)
def relearn(plan, memory, only):
    """All memories (or one agent's) again, from the rows that are kept. only: an agent, or 0 for all."""
    last = memory.counts[ROWS] - 1
    first = max(last - KEPT, 0 if memory.counts[OFFSET] == 0 else BEFORE)
    q = min(memory.inputs.shape[1], MOST_INPUTS)
    values, changes, advanced = np.zeros(q), np.zeros(q), np.zeros(HIDDEN)
    for learner in range(LEARNERS):
        if only == 0 or learner + 1 == only:
            memory.gram[learner] = 0.0
            memory.cross[learner] = 0.0
    if only == 0:
        memory.echo[:] = 0.0
    for row in range(first, last):
        read_inputs(plan, memory, row, values, changes)
        if only == 0 or only == ECHO:
            advance_echo(plan, memory, row, values, memory.echo, advanced)
            memory.echo[:] = advanced
        for learner in range(LEARNERS):
            if only == 0 or learner + 1 == only:
                for k in range(memory.targets.shape[1]):
                    out = memory.previous[learner, k]
                    fill_features(plan, memory, learner + 1, row, k, values, changes, memory.echo, out)
        if memory.taught[row]:
            learn_row(plan, memory, row, only)


@njit(cache=True)
def _measure(rows, last, scales):
    """Mean, spread and size of a change of each column over rows 0 … last; returns whether one has moved by much."""
    moved = False
    for k in range(rows.shape[1]):
        mean = spread = change = 0.0
        # Relative to the newest row, so that a far-away zero costs no digits.
        for row in range(last + 1):
            mean += rows[row, k] - rows[last, k]
        mean = rows[last, k] + mean / (last + 1)
        for row in range(last + 1):
            spread += (rows[row, k] - mean) ** 2
            if row > 0:
                change += (rows[row, k] - rows[row - 1, k]) ** 2
        spread, change = sqrt(spread / (last + 1)), sqrt(change / max(1, last))
        held = SHIFT * scales[SPREAD, k]
        near = abs(mean - scales[MEAN, k]) <= held and spread <= RATIO * scales[SPREAD, k]
        near = near and RATIO * spread >= scales[SPREAD, k] and change <= RATIO * scales[CHANGE, k]
        moved = moved or not (near and RATIO * change >= scales[CHANGE, k])
        scales[MEAN, k], scales[SPREAD, k], scales[CHANGE, k] = mean, spread, change
    return moved


@njit(cache=True)
def revise_scales(memory):
    """Measure again what is usual, at its time. Returns whether features now mean something else."""
    step, last = memory.counts[STEP], memory.counts[ROWS] - 1
    if step > EVERY_STEP and step != memory.counts[NEXT_REVISION]:
        return False
    if step >= EVERY_STEP:
        memory.counts[NEXT_REVISION] = 2 * step if step >= 2 * EVERY_STEP else step + EVERY_STEP // 2
    first = max(last - KEPT, 0)
    before_y, before_x = memory.target_scales.copy(), memory.input_scales.copy()
    moved = _measure(memory.targets[first:], last - first, memory.target_scales)
    # The newest row's input is not known yet.
    moved = (_measure(memory.inputs[first:], last - 1 - first, memory.input_scales) if last > first else False) or moved
    if step > SETTLED and not moved:
        memory.target_scales[:] = before_y
        memory.input_scales[:] = before_x
        return False
    return True


@njit(cache=True)
def append_row(plan, memory, target, known):
    """A row ends: what was asked is `target`, a label if `known`. Returns what is to be learnt again now: see below."""
    last = memory.counts[ROWS] - 1
    memory.previous[:] = memory.features
    memory.echo[:] = memory.next_echo
    if last + 1 == CAPACITY:
        kept = KEPT + BEFORE
        for rows in (memory.targets, memory.inputs):
            rows[:kept] = rows[CAPACITY - kept :].copy()
        memory.taught[:kept] = memory.taught[CAPACITY - kept :].copy()
        memory.counts[ROWS] = kept
        memory.counts[OFFSET] += CAPACITY - kept
        last = kept - 1
    memory.targets[last + 1] = target
    memory.taught[last] = known
    memory.counts[ROWS] += 1
    memory.counts[STEP] += 1
    for k in range(len(target)):
        memory.largest[k] = max(memory.largest[k], abs(target[k] - memory.targets[last, k]) if known else 0.0)
    for level in range(len(plan.levels)):
        memory.mean_counts[level] = plan.levels[level] * memory.mean_counts[level] + 1.0
        memory.means[level] += (target - memory.means[level]) / memory.mean_counts[level]
    add_change(memory)
    season = find_season(plan, memory)
    changed = season != memory.counts[SEASON]
    memory.counts[SEASON] = season
    if revise_scales(memory):
        return ALL_AGAIN
    return SEASON_AGAIN if changed else NOTHING_AGAIN


def bring_up_to_date(plan, memory, again, known):
    """All memories take in the last row, or are learnt again."""
    if again == ALL_AGAIN:
        relearn(plan, memory, 0)
        return
    if known:
        learn_row(plan, memory, memory.counts[ROWS] - 2, 0)
    if again == SEASON_AGAIN:
        relearn(plan, memory, SEASONAL)
