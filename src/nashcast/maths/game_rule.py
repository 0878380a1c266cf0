"""Reading a solved game's feedback rules out of the solver's memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashcast.maths.game_passes import chunk_rows_of
from nashcast.maths.game_plan import DECODER, FEATURES, WIDEST, Plan, common_places, read_shape, rule_rows
from nashcast.maths.lanes import LANES, address, first_row, number


class FeedbackRule(NamedTuple):
    """How every agent answers any state at any step of the window, in the solver's own memory."""

    plan: Plan
    weights: np.ndarray
    common: np.ndarray
    work: np.ndarray


class StepRule(NamedTuple):
    """All agents' rules at one step, in plain arrays.

    With W the agents' forecasts weighted by each step from the last of the window back to this one,
    ζ = carry · W + shift, and agent i plays β = centre_i - gain_i (slope_iᵀ ζ + offset_i).
    """

    carry: np.ndarray  # (k, k)
    shift: np.ndarray  # (k,)
    gain: np.ndarray  # flat: (features_i, y_dim) for each agent
    slope: np.ndarray  # (agents, k, y_dim)
    offset: np.ndarray  # (agents, y_dim)
    centre: np.ndarray  # flat: (features_i,) for each agent


def step_rule(rule: FeedbackRule, t: int) -> StepRule:
    """The rules of step t, copied out."""
    N, p, T = rule.plan.shape[:3]
    back, stride = T - 1 - t, T * p
    k = (back + 1) * p
    at = common_places.py_func(T, p, 0)
    bases = rule.common[at.bases : at.shifts].reshape(T, stride, stride)
    shifts = rule.common[at.shifts : at.points].reshape(T, stride)
    last = rule.plan.agents[N]
    step = StepRule(
        bases[back, :k, :k].copy(),
        shifts[back, :k].copy(),
        np.empty(last[FEATURES]),
        np.empty((N, k, p)),
        np.empty((N, p)),
        np.zeros(last[DECODER]),
    )
    _unpack(rule.plan.header, rule.plan.agents, rule.plan.chunks, rule.work, back, *step[2:])
    return step


@njit(cache=True)
def _unpack(header, agents, chunks, work, back, gain, slope, offset, centre):
    shape, rows = read_shape(address(header)), first_row(work)
    p, k = shape.y_dim, (back + 1) * shape.y_dim
    for i in range(shape.agents):
        chunk, lane = i // LANES, i % LANES
        first = chunk_rows_of(shape, address(chunks), chunk).rule
        rule = rule_rows(first, back, shape.lookback, p, chunks[chunk, WIDEST], shape.has_prior)
        for a in range(p):
            offset[i, a] = number(rows, (rule.offset + a) * LANES + lane)
            for r in range(k):
                slope[i, r, a] = number(rows, (rule.slope + r * p + a) * LANES + lane)
        for f in range(agents[i, 0]):
            for a in range(p):
                gain[agents[i, FEATURES] + f * p + a] = number(rows, (rule.gain + f * p + a) * LANES + lane)
            if shape.has_prior:
                centre[agents[i, DECODER] + f] = number(rows, (rule.shift + f) * LANES + lane)
