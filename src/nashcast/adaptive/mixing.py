"""Experts to one forecast: several rules weigh them, and a last rule weighs those rules and persistence."""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np
from numba import njit

from nashcast.adaptive.bernstein import fill_bernstein_weights, learn_gains
from nashcast.adaptive.compiled_scores import PRECISION, fill_weights, learn_scores
from nashcast.adaptive.decoding import FELL_BACK
from nashcast.adaptive.memory import BERNSTEIN, LEARNT, POLYNOMIAL, ROWS, RULES, SPEEDS, TOP
from nashcast.adaptive.plan import AGENTS
from nashcast.adaptive.polynomial import fill_polynomial_weights, learn_polynomial

MEMORY = np.array([memory for memory, _ in SPEEDS])
SCALE_MEMORY = np.array([scale for _, scale in SPEEDS])
TOP_MEMORY, TOP_SCALE_MEMORY = 0.998, 0.98
# Persistence; log scores and Bernstein's rule; polynomial weights of the experts; polynomial weights of all before.
TOP_LOG_PRIOR = np.log(np.array([0.3] + [0.4 / POLYNOMIAL] * POLYNOMIAL + [0.1, 0.2]))
BERNSTEIN_PERSISTENCE = 0.5
# Before so many labels nobody has learnt enough to be told from chance: the forecast is the last target.
FIRST_LABELS = 4
# An outside agent this many of its usual errors from the others, and further than the target ever moved, sits out.
FURTHEST_FORECAST = 6.0
JUDGED_AFTER = 20
ERROR_FADING = 0.95
_USUAL = 1


@njit(cache=True)
def bernstein_log_prior(plan):
    """The plan's, with half of all weight on persistence."""
    others = np.log((1.0 - BERNSTEIN_PERSISTENCE) / (1.0 - np.exp(plan.log_prior[0])))
    result = plan.log_prior + others
    result[0] = np.log(BERNSTEIN_PERSISTENCE)
    return result


@njit(cache=True)
def _admit(plan, memory, outside, here):
    """Take in the forecasts of the outside agents that are here, (agents, p); one that is plainly wrong sits out."""
    first, p = len(plan.agent) - len(outside), memory.targets.shape[1]
    for i in range(len(outside)):
        expert = first + i
        memory.awake[expert] = here[i]
        for k in range(p):
            memory.reach[k, expert] = 1.0
            now, most = memory.targets[memory.counts[ROWS] - 1, k], memory.largest[k]
            forecast = outside[i, k] if here[i] else now
            if abs(forecast - now) > most * (1.0 + 1e-9):
                memory.held[len(AGENTS) + i] = True
                if memory.counts[LEARNT] >= JUDGED_AFTER and _far_off(memory, k, expert, first, forecast):
                    memory.awake[expert] = False
                forecast = min(max(forecast, now - most), now + most)
            memory.forecasts[k, expert] = forecast


@njit(cache=True)
def _far_off(memory, k, expert, first, forecast):
    others = weight = 0.0
    for j in range(first):
        others += memory.last_weights[k, j] * memory.forecasts[k, j]
        weight += memory.last_weights[k, j]
    others = others / weight if weight > 0.0 else memory.forecasts[k, 0]
    own = memory.squares[_USUAL, k, expert] / max(1.0, memory.score_count[_USUAL, k])
    usual = sqrt(own + memory.error[0, k] / max(1.0, memory.error[1, k]))
    return abs(forecast - others) > FURTHEST_FORECAST * usual


@njit(cache=True)
def _fill_rule_weights(plan, memory, k, log_prior):
    for rule in range(RULES):
        weights = memory.rule_weights[rule, k]
        if rule == BERNSTEIN:
            bound = memory.gain_bound[k]
            fill_bernstein_weights(memory.gains[k], memory.gain_squares[k], bound, log_prior, memory.awake, weights)
        elif rule == POLYNOMIAL:
            bound = memory.regret_bound[k]
            fill_polynomial_weights(memory.regrets[k], memory.regret_squares[k], bound, memory.awake, weights)
        else:
            fill_weights(
                memory.score[rule, k], memory.squares[rule, k], memory.score_count[rule, k], plan.log_prior,
                memory.reach[k], memory.awake, PRECISION, weights,
            )  # fmt: skip


@njit(cache=True)
def _fill_rule_forecasts(memory, k):
    """What persistence, each rule, and all of these together by polynomial weights say."""
    said, shares, everyone = memory.rule_forecasts[k], memory.polynomial_weights[k], np.ones(1 + RULES, dtype=np.bool_)
    said[0] = memory.forecasts[k, 0]
    for rule in range(RULES):
        said[1 + rule] = 0.0
        for j in range(memory.forecasts.shape[1]):
            said[1 + rule] += memory.rule_weights[rule, k, j] * memory.forecasts[k, j]
    bound = memory.top_regret_bound[k]
    fill_polynomial_weights(memory.top_regrets[k], memory.top_regret_squares[k], bound, everyone, shares)
    said[TOP - 1] = 0.0
    for i in range(1 + RULES):
        said[TOP - 1] += shares[i] * said[i]


@njit(cache=True)
def mix(plan, memory, outside, here):
    """The federation's forecast, with the weights behind it. outside, here: see `_admit`."""
    _admit(plan, memory, outside, here)
    log_prior = bernstein_log_prior(plan)
    everyone, alike = np.ones(TOP, dtype=np.bool_), np.ones(TOP)
    for k in range(memory.targets.shape[1]):
        _fill_rule_weights(plan, memory, k, log_prior)
        _fill_rule_forecasts(memory, k)
        top, count, said = memory.top_weights[k], memory.top_count[k], memory.rule_forecasts[k]
        fill_weights(memory.top_score[k], memory.top_squares[k], count, TOP_LOG_PRIOR, alike, everyone, 0.0, top)
        if memory.counts[LEARNT] < FIRST_LABELS:
            top[:] = 0.0
            top[0] = 1.0
        forecast = 0.0
        for i in range(TOP):
            forecast += top[i] * said[i]
        shares, weights = memory.polynomial_weights[k], memory.weights[k]
        weights[:] = 0.0
        weights[0] = top[0] + top[TOP - 1] * shares[0]
        for rule in range(RULES):
            weights += (top[1 + rule] + top[TOP - 1] * shares[1 + rule]) * memory.rule_weights[rule, k]
        if not isfinite(forecast):
            forecast = said[0]
            weights[:] = 0.0
            weights[0] = 1.0
            memory.happened[FELL_BACK] += 1
        memory.forecast[k] = forecast


@njit(cache=True)
def learn_mixture(plan, memory, target):
    """What came: every rule learns how it should have weighed."""
    log_prior = bernstein_log_prior(plan)
    everyone, alike = np.ones(TOP, dtype=np.bool_), np.ones(TOP)
    learnt = memory.counts[LEARNT]
    for k in range(len(target)):
        y, said = target[k], memory.rule_forecasts[k]
        for rule in range(BERNSTEIN):
            memory.score_count[rule, k] = learn_scores(
                memory.score[rule, k], memory.squares[rule, k], memory.score_count[rule, k], memory.forecasts[k], y,
                said[1 + rule], memory.reach[k], memory.awake, MEMORY[rule], SCALE_MEMORY[rule], learnt,
            )  # fmt: skip
        memory.gain_bound[k] = learn_gains(
            memory.gains[k], memory.gain_squares[k], memory.gain_bound[k], log_prior, memory.forecasts[k], y,
            said[1 + BERNSTEIN], memory.awake,
        )  # fmt: skip
        memory.regret_bound[k] = learn_polynomial(
            memory.regrets[k], memory.regret_squares[k], memory.regret_bound[k], memory.forecasts[k], y,
            said[1 + POLYNOMIAL], memory.awake,
        )  # fmt: skip
        memory.top_regret_bound[k] = learn_polynomial(
            memory.top_regrets[k], memory.top_regret_squares[k], memory.top_regret_bound[k], said, y, said[TOP - 1],
            everyone,
        )  # fmt: skip
        if learnt < FIRST_LABELS:
            said = np.full(TOP, memory.forecasts[k, 0])
        memory.top_count[k] = learn_scores(
            memory.top_score[k], memory.top_squares[k], memory.top_count[k], said, y, memory.forecast[k], alike,
            everyone, TOP_MEMORY, TOP_SCALE_MEMORY, learnt,
        )  # fmt: skip
        memory.error[0, k] = ERROR_FADING * memory.error[0, k] + (memory.forecast[k] - y) ** 2
        memory.error[1, k] = ERROR_FADING * memory.error[1, k] + 1.0
    memory.counts[LEARNT] += 1
