"""The season, found in how a target's changes repeat themselves, unless it was given."""

from __future__ import annotations

import numpy as np
from numba import njit

from nashcast.adaptive.memory import ROWS, SEASON, STEP
from nashcast.adaptive.plan import LONGEST_SEASON

FADING = 0.999
LEAST_CORRELATION = 0.1
# A season and its multiples repeat alike: the shortest peak that comes this close to the best one is taken, in height
# over 0 and over the valley before it. Short lags go together without being seasons, but have no valley before them.
NEARLY, STEEP = 0.75, 0.6
# How much better another season must repeat than the present one.
BETTER, MUCH_BETTER = 0.9, 1.1
# It is looked for at each of so many first steps, and then once in so many.
EVERY_STEP, SELDOM = 256, 16
_ROUNDING = 1e-9


@njit(cache=True)
def add_change(memory):
    """Take in the newest row's change: its products with itself and with those before it."""
    last = memory.counts[ROWS] - 1
    for k in range(memory.targets.shape[1]):
        change = memory.targets[last, k] - memory.targets[last - 1, k]
        for lag in range(LONGEST_SEASON + 2):
            memory.products[k, lag] *= FADING
            if last - lag >= 1:
                before = memory.targets[last - lag, k] - memory.targets[last - lag - 1, k]
                memory.products[k, lag] += change * before


@njit(cache=True)
def _correlation(products, lag):
    """Of changes that far apart, averaged over targets."""
    total = 0.0
    for k in range(len(products)):
        if products[k, 0] > 0.0:
            total += products[k, lag] / products[k, 0]
    return total / len(products)


@njit(cache=True)
def _fill_peaks(products, longest, peaks, heights):
    """Of every lag that is a peak its correlation, and how far that is above the lowest at a shorter lag; else 0."""
    lowest = before = _correlation(products, 1)
    now = _correlation(products, 2)
    for lag in range(2, longest + 1):
        after = _correlation(products, lag + 1)
        if now > before and now >= after and now > LEAST_CORRELATION + _ROUNDING:
            peaks[lag], heights[lag] = now, now - lowest
        lowest = min(lowest, now)
        before, now = now, after


@njit(cache=True)
def find_season(plan, memory):
    """The season to go on with: it has been seen twice, and is not left for one that is hardly better. 0: none."""
    if plan.season > 0:
        return plan.season
    present, products = memory.counts[SEASON], memory.products
    if memory.counts[STEP] > EVERY_STEP and memory.counts[STEP] % SELDOM > 0:
        return present
    longest = min(LONGEST_SEASON, (memory.counts[ROWS] - 1) // 2)
    peaks, heights = np.zeros(LONGEST_SEASON + 1), np.zeros(LONGEST_SEASON + 1)
    _fill_peaks(products, longest, peaks, heights)
    best = heights.argmax()
    found = best
    for lag in range(2, best):
        if peaks[lag] > NEARLY * peaks[best] and heights[lag] > STEEP * heights[best]:
            found = lag
            break
    if 0 < present <= longest and found != present:
        height = _correlation(products, present)
        rival = _correlation(products, found) if found > 0 else 0.0
        longer_or_weaker = found == 0 or found > present or height > MUCH_BETTER * rival
        steep = heights[present] == 0.0 or heights[present] > STEEP * heights[found]
        if height > BETTER * rival and height > 0.5 * LEAST_CORRELATION and longer_or_weaker and steep:
            return present
    return found
