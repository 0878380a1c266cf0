"""Theorem 2 spread over its agents: each plays its own part, and only its terms of the sums leave it.

The agent's part is the solver's own code for a chunk with one agent; the server's part is its own code for the sums.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from nashcast.maths.game_passes import LARGEST_CONDITION, backward_part, forward_part, memory_of, scratch_of
from nashcast.maths.game_plan import common_places, plan_for_spread, read_shape
from nashcast.maths.game_sums import add_parts, point_from_forecasts, solve_sums
from nashcast.maths.lane_algebra import triangle
from nashcast.maths.lanes import address


class AgentPart:
    """One agent's part in one game: private memory, terms out, sums in."""

    def __init__(self, features, means, covariance, weights, targets, start, ridge, decay, noisy: bool):
        T, p, d = features.shape
        self._plan = plan_for_spread(d, p, T, noisy, covariance is not None)
        at = common_places.py_func(T, p, self._plan.shape.tensor_k)
        self._at, self._T, self._p, self._weights = at, T, p, weights
        flat = features.reshape(T, p * d)
        expected = flat if means is None else np.ascontiguousarray(means).reshape(T, p * d)
        spread = np.empty((1, 0)) if covariance is None else np.ascontiguousarray(covariance).reshape(T, -1)
        self.decoders = np.empty((T, d))
        self.forecasts = np.empty((T + 1, 1, p))
        self.forecasts[0] = start
        self._common = np.zeros(self._plan.common)
        self._arguments = (
            self._plan.header, self._plan.agents, self._plan.chunks, expected, flat, spread,
            np.ascontiguousarray(weights).reshape(T, 1), targets, np.array([decay]), np.array([ridge]),
            np.empty((1, 0)), self._common, np.empty(self._plan.work), self.decoders, self.forecasts,
        )  # fmt: skip

    def backward(self, back: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """This agent's terms of F - I, f and the noise tensor at one step back."""
        _agent_backward(*self._arguments, back)
        k, at = (back + 1) * self._p, self._at
        size = _tensor_size(self._plan.shape, back)
        coupling = self._common[at.coupling : at.coupling + k * k].reshape(k, k)
        tensor = self._common[at.tensor : at.tensor + size]
        return coupling.copy(), self._common[at.sum_f : at.sum_f + k].copy(), tensor.copy()

    def receive(self, back: int, carry: np.ndarray, shift: np.ndarray, tensor: np.ndarray) -> None:
        k, stride, at = (back + 1) * self._p, self._T * self._p, self._at
        bases = self._common[at.bases : at.shifts].reshape(self._T, stride, stride)
        bases[back, :k, :k] = carry
        self._common[at.shifts + back * stride : at.shifts + back * stride + k] = shift
        self._common[at.tensor : at.tensor + tensor.size] = tensor

    def weighted_forecasts(self, t: int) -> np.ndarray:
        """This agent's forecasts before step t, weighted by each step from the window's last back to t."""
        return np.outer(self._weights[t:][::-1], self.forecasts[t, 0]).ravel()

    def forward(self, t: int, point: np.ndarray) -> None:
        stride, at = self._T * self._p, self._at
        first = at.points + (self._T - 1 - t) * stride
        self._common[first : first + point.size] = point
        _agent_forward(*self._arguments, t)


def _tensor_size(shape, back: int) -> int:
    k = (back + 1) * shape.y_dim
    return triangle(k) * (triangle(k) + k) if shape.noisy and back < shape.lookback - 1 else 0


@njit(cache=True)
def _agent_backward(
    header, agents, chunks, means, features, covariance, weights, targets, decay, ridge, prior, common, work, decoders,
    states, back,
):  # fmt: skip
    memory = memory_of(
        header, agents, chunks, means, features, covariance, weights, targets, decay, ridge, prior, common, work,
        decoders, states,
    )  # fmt: skip
    shape = read_shape(address(header))
    backward_part(memory, back, 0)
    p, T = shape.y_dim, shape.lookback
    k, at, scratch = (back + 1) * p, common_places(T, p, shape.tensor_k), scratch_of(shape, 0)
    add_parts(memory.work, scratch.sum_F, 0, 1, k * k, memory.common, at.coupling)
    add_parts(memory.work, scratch.sum_f, 0, 1, k, memory.common, at.sum_f)
    if shape.noisy and back < T - 1:
        square, cross = triangle(k) ** 2, k * triangle(k)
        add_parts(memory.work, scratch.sum_tensor, 0, 1, square, memory.common, at.tensor)
        add_parts(memory.work, scratch.sum_cross, 0, 1, cross, memory.common, at.tensor + square)


@njit(cache=True)
def _agent_forward(
    header, agents, chunks, means, features, covariance, weights, targets, decay, ridge, prior, common, work, decoders,
    states, t,
):  # fmt: skip
    memory = memory_of(
        header, agents, chunks, means, features, covariance, weights, targets, decay, ridge, prior, common, work,
        decoders, states,
    )  # fmt: skip
    forward_part(memory, t, t + 1, 0)


class ServerPart:
    """The server's part in one spread game: sums of terms in, what all agents need out."""

    def __init__(self, lookback: int, y_dim: int):
        self._T, self._p = lookback, y_dim
        self._at = common_places.py_func(lookback, y_dim, 0)
        self._common = np.zeros(self._at.end)

    def solve(self, back: int, coupling: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Carry, shift and condition number of one step back, from the summed terms. Infinite where it is singular."""
        k, stride, at = (back + 1) * self._p, self._T * self._p, self._at
        self._common[at.coupling : at.coupling + k * k] = coupling.ravel()
        self._common[at.sum_f : at.sum_f + k] = offset
        condition = _solve(self._common, back, self._T, self._p)
        bases = self._common[at.bases : at.shifts].reshape(self._T, stride, stride)
        shift = self._common[at.shifts + back * stride : at.shifts + back * stride + k]
        return bases[back, :k, :k].copy(), shift.copy(), condition if condition < LARGEST_CONDITION else np.inf

    def point(self, t: int, forecasts: np.ndarray) -> np.ndarray:
        """ζ of step t from the agents' summed weighted forecasts."""
        at, first = self._at, self._at.points + (self._T - 1 - t) * self._T * self._p
        self._common[at.forecasts : at.forecasts + forecasts.size] = forecasts
        _point(self._common, self._T - 1 - t, self._T, self._p)
        return self._common[first : first + forecasts.size].copy()


@njit(cache=True)
def _solve(common, back, steps, p):
    return solve_sums(address(common), common_places(steps, p, 0), back, steps, p)


@njit(cache=True)
def _point(common, back, steps, p):
    point_from_forecasts(address(common), common_places(steps, p, 0), back, steps, p)
