"""A game solved twice in root form (`root_form`): the difference shows how many digits are correct."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.errors import IllConditionedGame, SingularGame
from nashcast.games.lookback import root_form
from nashcast.games.lookback.coupling import SINGULAR
from nashcast.games.lookback.problem import Problem, Solution, StateRule
from nashcast.games.lookback.root_form import RootGame

# Unknowns of one step's system; a step of a game of 16 agents has 304 of them and takes some 10 ms in NumPy.
LARGEST_SYSTEM = 600
# Two solutions that differ by more than this share of their largest entry have no three digits in common.
DIGITS = 1e-3


class Rules(NamedTuple):
    """Feedback rules over all forecasts."""

    layout_starts: np.ndarray  # where each agent's decoder starts
    matrices: np.ndarray  # (lookback, all features, agents · y_dim + 1)

    def step(self, t: int) -> StateRule:
        """The rule of step t, one matrix for each agent."""
        return StateRule(np.split(self.matrices[t], self.layout_starts[1:-1]))


def fits(game: Problem) -> bool:
    """Whether the game is small enough for its root form."""
    n = game.layout.agents * game.layout.y_dim
    return n + game.layout.agents * (n + 1 + game.layout.y_dim) <= LARGEST_SYSTEM


def solve(game: Problem, compiled: bool) -> Solution:
    """`reference.solve` in root form. Raises `SingularGame`, or `IllConditionedGame` where digits are missing."""
    kernels = root_form
    if compiled:
        from nashcast.games.lookback.compiled import root_form as kernels

    layout, T = game.layout, len(game.targets)
    states = np.empty((T + 1, layout.agents, layout.y_dim))
    states[0] = game.start
    arrays = RootGame(
        layout.sizes, layout.features, layout.covariance, layout.decoders, game.means, game.covariance, game.prior,
        np.ascontiguousarray(game.weights), np.ascontiguousarray(game.targets), game.ridge, game.decay,
    )  # fmt: skip
    rules, pivots, decoders, apart = kernels.solve_twice(arrays, game.features, states)
    worst = int(np.argmax(np.where(np.isnan(pivots), 0.0, pivots)))
    if not np.isfinite(apart) or np.isnan(pivots).any():  # numbers overflow
        raise IllConditionedGame(worst, np.nan)
    if apart > DIGITS:
        # Pivots alone are not conclusive: badly scaled systems have small ones too.
        if pivots[worst] >= SINGULAR:
            raise SingularGame(worst, float(pivots[worst]))
        raise IllConditionedGame(worst, float(apart / np.finfo(np.float64).eps))
    return Solution(decoders, states, pivots, Rules(layout.decoders, rules), 1.0)
