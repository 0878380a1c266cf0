"""What each learner sees of a row of the history, standardised: one agent, one target, one row at a time."""

from __future__ import annotations

from math import cos, pi, sin, tanh

from numba import njit

from nashcast.adaptive.memory import CHANGE, MEAN, OFFSET, SEASON, SPREAD
from nashcast.adaptive.plan import (
    CHANGES,
    ECHO,
    FACTORS,
    HARMONICS,
    HIDDEN,
    LAGS,
    LINEAR,
    MOST_INPUTS,
    QUADRATIC,
    RANDOM,
    SEASONAL,
    SEASONAL_LAGS,
    TREND,
)

# A number this many spreads from its mean is seen no further: a wild one must not be all that is learnt.
FURTHEST = 16.0


@njit(cache=True)
def _bounded(number):
    return min(max(number, -FURTHEST), FURTHEST)


@njit(cache=True)
def value_at(memory, row, k):
    """Target k of a row, standardised; rows before the first are like it."""
    spread = memory.target_scales[SPREAD, k]
    if not spread > 0.0:
        return 0.0
    return _bounded((memory.targets[max(row, 0), k] - memory.target_scales[MEAN, k]) / spread)


@njit(cache=True)
def change_at(memory, row, k):
    """How target k changed towards a row, in sizes of a usual change."""
    size = memory.target_scales[CHANGE, k]
    if row < 1 or not size > 0.0:
        return 0.0
    return _bounded((memory.targets[row, k] - memory.targets[row - 1, k]) / size)


@njit(cache=True)
def _input_value(memory, row, j):
    spread = memory.input_scales[SPREAD, j]
    return _bounded((memory.inputs[row, j] - memory.input_scales[MEAN, j]) / spread) if spread > 0.0 else 0.0


@njit(cache=True)
def _input_change(memory, row, j):
    size = memory.input_scales[CHANGE, j]
    if row < 1 or not size > 0.0:
        return 0.0
    return _bounded((memory.inputs[row, j] - memory.inputs[row - 1, j]) / size)


@njit(cache=True)
def read_inputs(plan, memory, row, values, changes):
    """The row's inputs as the agents see them, and how they changed; both filled, (inputs seen,)."""
    q = memory.inputs.shape[1]
    if q <= MOST_INPUTS:
        for j in range(q):
            values[j], changes[j] = _input_value(memory, row, j), _input_change(memory, row, j)
        return
    values[:] = 0.0
    changes[:] = 0.0
    for j in range(q):
        value, change = _input_value(memory, row, j), _input_change(memory, row, j)
        for i in range(MOST_INPUTS):
            values[i] += plan.projection[i, j] * value
            changes[i] += plan.projection[i, j] * change


@njit(cache=True)
def advance_echo(plan, memory, row, values, echo, result):
    """The echo state one row on: `echo` before it, `result` after it."""
    p, q = memory.targets.shape[1], len(values)
    for f in range(HIDDEN):
        total = plan.echo_bias[f]
        for k in range(p):
            total += plan.echo_weights[k, f] * value_at(memory, row, k)
        for j in range(q):
            total += plan.echo_weights[p + j, f] * values[j]
        for g in range(HIDDEN):
            total += plan.echo_recurrent[g, f] * echo[g]
        result[f] = tanh(total)


@njit(cache=True)
def fill_features(plan, memory, agent, row, k, values, changes, echo, out):
    """Agent's features for target k of a row, into `out`. values, changes: of `read_inputs`; echo: at this row."""
    if agent == TREND:
        _fill_trend(memory, row, k, changes, out)
    elif agent == LINEAR:
        _fill_linear(memory, row, k, values, out)
    elif agent == SEASONAL:
        _fill_seasonal(memory, row, k, values, out)
    elif agent == QUADRATIC:
        _fill_quadratic(memory, row, k, values, out)
    elif agent == RANDOM:
        _fill_random(plan, memory, row, k, values, out)
    elif agent == ECHO:
        out[0], out[1] = 1.0, value_at(memory, row, k)
        for f in range(HIDDEN):
            out[2 + f] = echo[f]


@njit(cache=True)
def _fill_trend(memory, row, k, changes, out):
    at = 0
    for lag in range(CHANGES):
        out[at] = change_at(memory, row - lag, k)
        at += 1
    for other in range(memory.targets.shape[1]):
        if other != k:
            out[at] = change_at(memory, row, other)
            at += 1
    for j in range(len(changes)):
        out[at + j] = changes[j]


@njit(cache=True)
def _fill_linear(memory, row, k, values, out):
    out[0], at = 1.0, 1
    for lag in range(LAGS):
        out[at] = value_at(memory, row - lag, k)
        at += 1
    for other in range(memory.targets.shape[1]):
        if other != k:
            out[at], out[at + 1] = value_at(memory, row, other), value_at(memory, row - 1, other)
            at += 2
    for j in range(len(values)):
        out[at + j] = values[j]


@njit(cache=True)
def _fill_seasonal(memory, row, k, values, out):
    m, size = memory.counts[SEASON], memory.target_scales[CHANGE, k]
    before = row + 1 - m
    out[0] = 0.0
    if m > 0 and before >= 0 and size > 0.0:
        out[0] = _bounded((memory.targets[before, k] - memory.targets[row, k]) / size)
    out[1], at = 1.0, 2
    for lag in range(SEASONAL_LAGS):
        out[at] = value_at(memory, row - lag, k)
        at += 1
    for h in range(1, HARMONICS + 1):
        out[at] = out[at + 1] = 0.0
        if m >= 2 * h:
            angle = 2.0 * pi * h * ((memory.counts[OFFSET] + row) % m) / m
            out[at], out[at + 1] = sin(angle), cos(angle)
        at += 2
    for j in range(len(values)):
        out[at + j] = values[j]


@njit(cache=True)
def _fill_quadratic(memory, row, k, values, out):
    out[1], out[2], n = value_at(memory, row, k), value_at(memory, row - 1, k), 2
    for other in range(memory.targets.shape[1]):
        if other != k and n < FACTORS:
            out[1 + n] = value_at(memory, row, other)
            n += 1
    for j in range(len(values)):
        if n < FACTORS:
            out[1 + n] = values[j]
            n += 1
    out[0], at = 1.0, 1 + n
    for i in range(1, 1 + n):
        for j in range(i, 1 + n):
            out[at] = out[i] * out[j]
            at += 1


@njit(cache=True)
def _fill_random(plan, memory, row, k, values, out):
    p, q = memory.targets.shape[1], len(values)
    out[0], out[1] = 1.0, value_at(memory, row, k)
    for f in range(HIDDEN):
        total = plan.random_bias[f]
        for j in range(p):
            total += plan.random_weights[j, f] * value_at(memory, row, j)
            total += plan.random_weights[p + j, f] * value_at(memory, row - 1, j)
        for j in range(q):
            total += plan.random_weights[2 * p + j, f] * values[j]
        out[2 + f] = max(total, 0.0)
