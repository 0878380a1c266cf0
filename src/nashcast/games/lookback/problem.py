"""A look-back game in arrays. Agents may have different feature sizes, so their numbers are stored in flat rows.

A flat row contains the numbers of one step: agent after agent, each agent's block in C order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, Protocol

import numpy as np

# A missing covariance or prior.
NOTHING = np.empty((1, 0))
# Layouts are cached, since a federation plays many games of the same shape; for large games only the last.
FEW_AGENTS = 10_000


class Group(NamedTuple):
    """Agents of one feature size whose features are all random or all deterministic: their indices and columns."""

    agents: np.ndarray | slice
    number: int  # of agents
    size: int  # d
    features: np.ndarray | slice
    covariance: np.ndarray | slice | None  # None: their features are deterministic
    decoders: np.ndarray | slice


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each agent's numbers start in a flat row; the last entry of each array is the row's length.

    sizes: features of each agent, (agents,).   y_dim: numbers in a target.
    features: blocks (y_dim, size).   covariance: blocks (y_dim, y_dim, size, size), empty for deterministic features.
    decoders: blocks (size,).
    """

    sizes: np.ndarray
    y_dim: int
    features: np.ndarray
    covariance: np.ndarray
    decoders: np.ndarray

    @property
    def agents(self) -> int:
        return len(self.sizes)

    @cached_property
    def noisy(self) -> bool:
        """Whether any agent's features are random."""
        return bool(self.covariance[-1])

    @cached_property
    def groups(self) -> list[Group]:
        """The agents in groups that can be stacked."""
        random = np.diff(self.covariance) > 0
        kinds = sorted({(int(d), bool(r)) for d, r in zip(self.sizes, random, strict=True)})
        if len(kinds) == 1:
            every = slice(None)
            return [Group(every, self.agents, kinds[0][0], every, every if kinds[0][1] else None, every)]
        return [self._group(d, r, np.flatnonzero((self.sizes == d) & (random == r))) for d, r in kinds]

    def _group(self, d: int, random: bool, agents: np.ndarray) -> Group:
        def columns(starts: np.ndarray, length: int) -> np.ndarray:
            return (starts[agents][:, None] + np.arange(length)).ravel()

        p = self.y_dim
        spread = columns(self.covariance, (p * d) ** 2) if random else None
        return Group(agents, len(agents), d, columns(self.features, p * d), spread, columns(self.decoders, d))


class Problem(NamedTuple):
    """A look-back game; T is the look-back, N the number of agents."""

    layout: Layout
    features: np.ndarray  # Z as drawn, T flat rows
    means: np.ndarray  # E[Z], T flat rows; the same array if no feature is random
    covariance: np.ndarray  # T flat rows, or NOTHING
    prior: np.ndarray  # β̄, T flat rows, or NOTHING
    weights: np.ndarray  # w, (T, N)
    targets: np.ndarray  # y_{t+1}, (T, y_dim)
    start: np.ndarray  # Ŷ_0, (N, y_dim)
    ridge: np.ndarray  # γ, (N,)
    decay: np.ndarray  # α, (N,)


class StepRule(NamedTuple):
    """All agents' feedback rules at one step, in plain arrays; k = (steps left) · y_dim.

    With W the agents' forecasts weighted by each step from the last of the window back to this one,
    ζ = carry · W + shift, and agent i plays β = centre_i - gain_i (slope_iᵀ ζ + offset_i).
    """

    carry: np.ndarray  # (k, k)
    shift: np.ndarray  # g, (k,)
    slope: np.ndarray  # u, (N, k, y_dim)
    offset: np.ndarray  # s, (N, y_dim)
    gain: list[np.ndarray]  # e, (size_i, y_dim) for each agent
    centre: list[np.ndarray]  # d, (size_i,) for each agent


class StateRule(NamedTuple):
    """All agents' feedback rules at one step, over all forecasts: agent i plays β = matrix_i · [Ŷ; 1]."""

    matrices: list[np.ndarray]  # (size_i, N · y_dim + 1) for each agent


class FeedbackRule(Protocol):
    """Every agent's feedback rule at every step of the window."""

    def step(self, t: int) -> StepRule | StateRule:
        """The rule of step t in plain arrays."""
        ...


class Solution(NamedTuple):
    """A solved game, played from its start; decoders in flat rows, otherwise as in `Equilibrium`."""

    decoders: np.ndarray
    forecasts: np.ndarray
    conditions: np.ndarray
    rule: FeedbackRule
    growth: float  # the largest growth of rounding, as `coupling.growth` estimates it


def layout_alike(agents: int, size: int, y_dim: int, noisy: bool) -> Layout:
    """The layout of agents with equal feature sizes."""
    return (_small_alike if agents <= FEW_AGENTS else _large_alike)(agents, size, y_dim, noisy)


def layout_each(sizes: tuple[int, ...], y_dim: int, noisy: tuple[bool, ...]) -> Layout:
    """The layout of agents of the given feature sizes; noisy: whether each has a covariance."""
    return (_small_each if len(sizes) <= FEW_AGENTS else _large_each)(sizes, y_dim, noisy)


def _alike(agents: int, size: int, y_dim: int, noisy: bool) -> Layout:
    return _layout(np.full(agents, size), y_dim, np.full(agents, int(noisy)))


def _each(sizes: tuple[int, ...], y_dim: int, noisy: tuple[bool, ...]) -> Layout:
    return _layout(np.array(sizes), y_dim, np.array(noisy, dtype=np.int64))


_small_alike, _large_alike = lru_cache(maxsize=32)(_alike), lru_cache(maxsize=1)(_alike)
_small_each, _large_each = lru_cache(maxsize=32)(_each), lru_cache(maxsize=1)(_each)


def _layout(sizes: np.ndarray, y_dim: int, noisy: np.ndarray) -> Layout:
    def starts(lengths: np.ndarray) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(lengths)])

    return Layout(sizes, y_dim, starts(y_dim * sizes), starts((y_dim * sizes) ** 2 * noisy), starts(sizes))
