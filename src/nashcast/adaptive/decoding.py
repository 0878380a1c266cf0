"""Each variant's forecast: ridge on its memory, a little less sure the less it has seen of the kind."""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np
from numba import njit

from nashcast.adaptive.memory import CHANGE, ROWS, STEP
from nashcast.adaptive.one_step_game import mixture_pull
from nashcast.adaptive.plan import LEARNERS, PERSISTENCE
from nashcast.games.lookback.compiled import cholesky as positive

# Beyond this leverage a decoder is shrunk towards its centre: it speaks of what it has not seen.
TRUSTED_LEVERAGE = 5.0
# A game's correction this many times an agent's usual error is held back.
FURTHEST_CORRECTION = 3.0
FIRST_GAME = 5
# Places in `happened`.
FELL_BACK, PLAYED, HELD = range(3)
# Which of the rules by log score keeps the errors that "usual" refers to.
USUAL = 1


@njit(cache=True)
def _leverage(lower, row, d, scratch):
    total = 0.0
    for f in range(d):
        value = row[f]
        for g in range(f):
            value -= lower[f, g] * scratch[g]
        scratch[f] = value / lower[f, f]
        total += scratch[f] * scratch[f]
    return total


@njit(cache=True)
def decode(gram, cross, d, ridge, centre, row, last_row, lower, decoder, scratch):
    r"""A variant's change of the target: zᵀβ, its leverage, and what β says of the last row.

    β minimises $\sum \lambda^{age}(r - z^\top\beta)^2 + \rho d\,\|\beta - c\|^2$, c = (centre, 0, …). The leverage
    $h = z^\top(\sum\lambda^{age}zz^\top + \rho d I)^{-1}z$ is how far z is from the rows that β was learnt from; beyond
    TRUSTED_LEVERAGE, β - c counts that much less. Returns (change, h, recalled), or (0, 0, 0) if nothing can be solved.
    """
    for f in range(d):
        decoder[f] = cross[f]
        for g in range(f + 1):
            lower[f, g] = gram[f, g]
        lower[f, f] += ridge * d
    decoder[0] += ridge * d * centre
    if not positive.factor(lower, d):
        return 0.0, 0.0, 0.0
    positive.solve(lower, decoder, d)
    leverage = _leverage(lower, row, d, scratch)
    share = 1.0 / max(1.0, leverage / TRUSTED_LEVERAGE)
    change, recalled = row[0] * centre * (1.0 - share), 0.0
    for f in range(d):
        change += share * row[f] * decoder[f]
        recalled += last_row[f] * decoder[f]
    return change, leverage, recalled


@njit(cache=True)
def _set(memory, k, expert, forecast, leverage):
    """An expert's forecast, no further from the last target than that ever moved. Returns whether it was held back."""
    now, most = memory.targets[memory.counts[ROWS] - 1, k], memory.largest[k]
    cut = not abs(forecast - now) <= most * (1.0 + 1e-9)
    if cut:
        if not isfinite(forecast):
            forecast = now
        forecast = min(max(forecast, now - most), now + most)
    memory.forecasts[k, expert] = forecast
    memory.reach[k, expert] = 1.0 + leverage
    return cut


@njit(cache=True)
def fill_forecasts(plan, memory):
    """Every expert of the federation's own, for every target."""
    last, p, top = memory.counts[ROWS] - 1, memory.targets.shape[1], memory.gram.shape[3]
    lower, decoder, scratch = np.empty((top, top)), np.empty(top), np.empty(top)
    variants = len(plan.variants)
    recalled = np.zeros(variants)
    held = memory.held
    held[:] = False
    memory.happened[:] = 0
    first = 1 + len(plan.levels)
    for k in range(p):
        now, size = memory.targets[last, k], memory.target_scales[CHANGE, k]
        memory.forecasts[k, 0], memory.reach[k, 0] = now, 1.0
        for level in range(len(plan.levels)):
            held[PERSISTENCE] |= _set(memory, k, 1 + level, memory.means[level, k], 0.0)
        for v in range(variants):
            learner, m = plan.variants[v]
            change = leverage = recalled[v] = 0.0
            if size > 0.0:
                change, leverage, recalled[v] = decode(
                    memory.gram[learner, m, k], memory.cross[learner, m, k], plan.sizes[learner], plan.ridge[v],
                    plan.centre[v], memory.features[learner, k], memory.previous[learner, k], lower, decoder, scratch,
                )  # fmt: skip
            held[learner + 1] |= _set(memory, k, first + v, now + size * change, leverage)
        for game in range(len(plan.games)):
            _play(plan, memory, k, game, first, recalled)


@njit(cache=True)
def _play(plan, memory, k, game, first, recalled):
    """The variants of one game, corrected by it: what the last target taught the mixture of their memories."""
    last, size, players = memory.counts[ROWS] - 1, memory.target_scales[CHANGE, k], plan.games[game]
    weights, lengths, own = np.zeros(LEARNERS), np.zeros(LEARNERS), np.zeros(LEARNERS)
    playing = memory.counts[STEP] >= FIRST_GAME and size > 0.0 and memory.taught[last - 1]
    pull = 0.0
    if playing:
        for expert in range(len(plan.agent)):
            if 0 < plan.agent[expert] <= LEARNERS:
                weights[plan.agent[expert] - 1] += memory.last_weights[k, expert]
        total = weights.sum()
        weights = weights / total if total > 0.0 else np.full(LEARNERS, 1.0 / LEARNERS)
        for i in range(LEARNERS):
            own[i] = recalled[players[i]]
            for f in range(plan.sizes[i]):
                lengths[i] += memory.previous[i, k, f] ** 2
        change = (memory.targets[last, k] - memory.targets[last - 1, k]) / size
        pull = mixture_pull(weights, own, lengths, change, plan.game_ridge[game])
        memory.happened[PLAYED] += 1
    for i in range(LEARNERS):
        player = first + players[i]
        expert = first + len(plan.variants) + game * LEARNERS + i
        forecast, leverage = memory.forecasts[k, player], memory.reach[k, player] - 1.0
        if playing:
            overlap = 0.0
            for f in range(plan.sizes[i]):
                overlap += memory.previous[i, k, f] * memory.features[i, k, f]
            correction = size * weights[i] * overlap / plan.game_ridge[game] * pull
            correction /= max(1.0, leverage / TRUSTED_LEVERAGE)
            usual = memory.squares[USUAL, k, player] / max(1.0, memory.score_count[USUAL, k])
            if abs(correction) <= FURTHEST_CORRECTION * sqrt(usual):
                forecast += correction
            else:
                memory.happened[HELD] += 1
        memory.held[i + 1] |= _set(memory, k, expert, forecast, leverage)
