"""A game solved in root form (`root_form`), twice: the difference shows how many digits there are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.errors import IllConditionedGame, SingularGame
from nashcast.games.lookback import root_form
from nashcast.games.lookback.coupling import SINGULAR
from nashcast.games.lookback.problem import NOTHING, Problem, Solution, StateRule, layout_each
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

    rules, pivots, decoders, states = _solve_in_order(game, kernels)
    worst = int(np.argmax(np.where(np.isnan(pivots), np.inf, pivots)))
    if pivots[worst] >= SINGULAR:
        raise SingularGame(worst, float(pivots[worst]))
    _, _, again, states_again = _solve_in_order(_reversed(game), kernels)
    blocks = np.split(again, np.cumsum(game.layout.sizes[::-1])[:-1], axis=1)[::-1]
    apart = max(_difference(decoders, np.concatenate(blocks, axis=1)), _difference(states, states_again[:, ::-1]))
    if not apart <= DIGITS:  # NaN where numbers overflow
        raise IllConditionedGame(worst, float(apart / np.finfo(np.float64).eps))
    return Solution(decoders, states, pivots, Rules(game.layout.decoders, rules), 1.0)


def _solve_in_order(game: Problem, kernels):
    layout = game.layout
    T, N, p = len(game.targets), layout.agents, layout.y_dim
    rules, pivots = kernels.solve_rules(
        RootGame(
            layout.sizes, layout.features, layout.covariance, layout.decoders, game.means, game.covariance, game.prior,
            np.ascontiguousarray(game.weights), np.ascontiguousarray(game.targets), game.ridge, game.decay,
        )
    )  # fmt: skip
    states = np.empty((T + 1, N, p))
    states[0] = game.start
    return rules, pivots, kernels.play_rules(rules, game.features, layout.features, layout.sizes, states), states


def _reversed(game: Problem) -> Problem:
    """The same game with its agents in reverse: other rounding, the same equilibrium."""
    layout = game.layout
    noisy = np.diff(layout.covariance)[::-1] > 0

    def blocks(rows: np.ndarray, starts: np.ndarray) -> np.ndarray:
        return np.concatenate(np.split(rows, starts[1:-1], axis=1)[::-1], axis=1) if rows.size else NOTHING

    return game._replace(
        layout=layout_each(tuple(int(d) for d in layout.sizes[::-1]), layout.y_dim, tuple(bool(v) for v in noisy)),
        features=blocks(game.features, layout.features),
        means=blocks(game.means, layout.features),
        covariance=blocks(game.covariance, layout.covariance),
        prior=blocks(game.prior, layout.decoders),
        weights=game.weights[:, ::-1],
        start=game.start[::-1],
        ridge=game.ridge[::-1].copy(),
        decay=game.decay[::-1].copy(),
    )


def _difference(one: np.ndarray, other: np.ndarray) -> float:
    """As a share of the largest entry."""
    largest = np.abs(one).max() if one.size else 0.0
    return float(np.abs(one - other).max() / largest) if largest > 0.0 else 0.0
