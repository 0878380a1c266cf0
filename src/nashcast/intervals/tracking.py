"""The compiled step of `Intervals`: half-widths from what is known, and what a new residual changes.

For each column (a target of some forecaster) and half-life h, a scale σ_h (a fading mean of absolute residuals) and
the last residuals in units of the scale they met. A candidate half-width is σ_h times their quantile at a level that is
corrected by the debt S = Σ (α - miss), with one of several gains; candidates are mixed by their recent pinball loss.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# Fading mean pinball losses remember about this many steps, and differences are taken this seriously.
FADING, SHARPNESS = 0.99, 5.0
# Debt at which the cubic term of the correction reaches 1, for misses owed and for misses too many: beyond it coverage
# comes before sharpness. Too many are forgiven more easily, since wide intervals cost more than narrow ones.
OWED, TOO_MANY = 3.0, 6.0
# Beyond the largest residual known, quantiles are taken to grow as a power of the level (a Student t has 1/df) …
TAIL = 0.3
# … but an interval never reaches beyond this multiple of the largest residual, nor a residual beyond so many scales.
REACH, LARGEST_SCORE = 1.2, 1000.0


@njit(cache=True)
def quantile(values, count, miss):
    """The number that a new value exceeds with probability `miss`, from `count` sorted ones; grows as miss → 0."""
    place = (1.0 - miss) * (count + 1) - 1.0
    if place >= count - 1:
        return values[count - 1] * (1.0 / ((count + 1) * miss)) ** TAIL
    if place <= 0.0:
        return values[0] * max(0.0, place + 1.0)
    i = int(place)
    return values[i] + (place - i) * (values[i + 1] - values[i])


@njit(cache=True)
def corrected(miss, gain, debt):
    """The level to aim at, for a nominal one and the misses still owed."""
    logit = np.log(miss / (1.0 - miss)) + gain * debt + (debt / (OWED if debt > 0.0 else TOO_MANY)) ** 3
    return 1.0 / (1.0 + np.exp(-min(max(logit, -500.0), 500.0)))


@njit(cache=True)
def fill_column(totals, sizes, ordered, count, debts, losses, size, largest, seen, misses, gains, candidates, widths):
    """candidates: (half-lives · gains, coverages).   widths: (coverages,), never falling as coverage grows."""
    H, G, C = len(totals), len(gains), len(misses)
    if seen == 0:
        widths[:] = np.inf
        return
    # The first residuals say little of how large they get.
    reach = largest * (REACH + 10.0 / seen)
    for c in range(C):
        best = np.inf
        for h in range(H):
            scale = totals[h] / sizes[h]
            for g in range(G):
                k = h * G + g
                candidates[k, c] = min(
                    scale * quantile(ordered[h], count, corrected(misses[c], gains[g], debts[c])), reach
                )
                best = min(best, losses[k, c])
        unit = size * misses[c]
        weight, total = 0.0, 0.0
        for k in range(H * G):
            w = 1.0 if unit <= 0.0 else np.exp(-SHARPNESS * (losses[k, c] - best) / unit)
            weight += w
            total += w * candidates[k, c]
        widths[c] = total / weight
        if c > 0:
            widths[c] = max(widths[c], widths[c - 1])


@njit(cache=True)
def insert(ordered, ring, count, place, value):
    """`value` takes the place of the oldest number in the ring once it is full; `ordered` stays sorted."""
    n = count
    if count == len(ring):
        old = ring[place]
        i = 0
        while ordered[i] != old:
            i += 1
        for j in range(i, count - 1):
            ordered[j] = ordered[j + 1]
        n -= 1
    ring[place] = value
    while n > 0 and ordered[n - 1] > value:
        ordered[n] = ordered[n - 1]
        n -= 1
    ordered[n] = value


@njit(cache=True, nogil=True)
def fill_widths(totals, sizes, ordered, counts, debts, losses, size, largest, seen, misses, gains, candidates, widths):
    """Half-widths (columns, coverages) of the intervals round the next forecasts."""
    for i in range(len(totals)):
        fill_column(
            totals[i], sizes[i], ordered[i], counts[i], debts[i], losses[i], size[i], largest[i], seen[i], misses,
            gains, candidates, widths[i],
        )  # fmt: skip


@njit(cache=True, nogil=True)
def learn(
    residuals, fades, totals, sizes, ordered, ring, counts, places, debts, losses, size, largest, seen, misses, gains,
    candidates, widths,
):  # fmt: skip
    """One residual for each column, NaN where the target is not known. Fills `widths` with those it met."""
    H, W = ring.shape[1], ring.shape[2]
    for i in range(len(residuals)):
        fill_column(
            totals[i], sizes[i], ordered[i], counts[i], debts[i], losses[i], size[i], largest[i], seen[i], misses,
            gains, candidates, widths[i],
        )  # fmt: skip
        a = abs(residuals[i])
        if not a < np.inf:
            continue
        if seen[i] > 0:
            for c in range(len(misses)):
                # An interval of no width that was right cannot be any narrower: nothing is owed for it.
                if a > 0.0 or widths[i, c] > 0.0:
                    debts[i, c] += misses[c] - (1.0 if a > widths[i, c] else 0.0)
                for k in range(len(candidates)):
                    over = a - candidates[k, c]
                    pinball = over * (1.0 - misses[c]) if over > 0.0 else -over * misses[c]
                    losses[i, k, c] = FADING * losses[i, k, c] + pinball
            size[i] = FADING * size[i] + a
            for h in range(H):
                scale = totals[i, h] / sizes[i, h]
                score = 0.0 if a == 0.0 else LARGEST_SCORE
                if a < LARGEST_SCORE * scale:
                    score = a / scale
                insert(ordered[i, h], ring[i, h], counts[i], places[i], score)
            counts[i] = min(counts[i] + 1, W)
            places[i] = (places[i] + 1) % W
        for h in range(H):
            totals[i, h] = fades[h] * totals[i, h] + a
            sizes[i, h] = fades[h] * sizes[i, h] + 1.0
        largest[i] = max(largest[i], a)
        seen[i] += 1


@njit(cache=True, nogil=True)
def learn_series(
    residuals, fades, totals, sizes, ordered, ring, counts, places, debts, losses, size, largest, seen, misses, gains,
    candidates, widths,
):  # fmt: skip
    """The same for a whole series, residuals (steps, columns) and widths (steps, columns, coverages)."""
    for t in range(len(residuals)):
        learn(
            residuals[t], fades, totals, sizes, ordered, ring, counts, places, debts, losses, size, largest, seen,
            misses, gains, candidates, widths[t],
        )  # fmt: skip
