"""Reading a solved game's feedback rules out of the solver's memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nashcast.games.lookback.compiled.lanes.lane_algebra import DECODER, FEATURES, SIZE
from nashcast.games.lookback.compiled.lanes.lanes import LANES, address, first_row, number
from nashcast.games.lookback.compiled.memory import chunk_rows_of
from nashcast.games.lookback.compiled.plan import WIDEST, Plan, common_places, read_shape, rule_rows
from nashcast.games.lookback.problem import StepRule


class CompiledRule(NamedTuple):
    """Every agent's feedback rule at every step of the window, in the solver's own memory."""

    plan: Plan
    common: np.ndarray
    work: np.ndarray

    def step(self, t: int) -> StepRule:
        """The rule of step t, copied out."""
        plan = self.plan
        N, p, T = plan.shape.agents, plan.shape.y_dim, plan.shape.lookback
        back, stride = T - 1 - t, T * p
        k = (back + 1) * p
        at = common_places.py_func(T, p, 0)
        bases = self.common[at.bases : at.shifts].reshape(T, stride, stride)
        shifts = self.common[at.shifts : at.points].reshape(T, stride)
        gain, centre = np.empty(plan.agents[N, FEATURES]), np.zeros(plan.agents[N, DECODER])
        slope, offset = np.empty((N, k, p)), np.empty((N, p))
        _unpack((plan.header, plan.agents, plan.chunks), self.work, back, (gain, slope, offset, centre))
        gains = [block.reshape(-1, p) for block in np.split(gain, plan.agents[1:N, FEATURES])]
        centres = np.split(centre, plan.agents[1:N, DECODER])
        return StepRule(bases[back, :k, :k].copy(), shifts[back, :k].copy(), slope, offset, gains, centres)


@njit(cache=True)
def _unpack(plan, work, back, out):
    """Fill gain, slope, offset and centre of all agents. plan: its header, agents and chunks."""
    (header, agents, chunks), (gain, slope, offset, centre) = plan, out
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
        for f in range(agents[i, SIZE]):
            for a in range(p):
                gain[agents[i, FEATURES] + f * p + a] = number(rows, (rule.gain + f * p + a) * LANES + lane)
            if shape.has_prior:
                centre[agents[i, DECODER] + f] = number(rows, (rule.shift + f) * LANES + lane)
