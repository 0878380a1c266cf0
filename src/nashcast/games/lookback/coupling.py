"""The k×k matrix F that couples the agents at one step: its inverse, and whether a unique equilibrium exists.

An agent's discount enters F's rows and columns, so F may be badly scaled though the equilibrium is unique. Existence is
therefore judged by the condition number of F after its rows and columns were scaled, not by that of F itself. The
number of digits of the solution depends on both: over the steps of the game, about as many are lost as the spread of
the scales, which is the square root of F's own condition number.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from nashcast.errors import IllConditionedGame, SingularGame

# From this scaled condition number on, rounding alone can change the sign of the determinant.
SINGULAR = 0.1 / np.finfo(np.float64).eps
# From this one on, or from its square before scaling, fewer than three digits of the solution can be trusted.
ILL_CONDITIONED = 1e13
# Up to this growth of rounding a solution has nine digits. Beyond, games of few agents are solved in root form.
PRECISE = 1e6


class Condition(NamedTuple):
    """Condition numbers of F in the Frobenius norm, divided by k: 1 is best, infinite where F is singular.

    NaN where F is not finite.
    """

    scaled: float  # with scaled rows and columns
    plain: float


def invert(coupling: np.ndarray) -> tuple[np.ndarray, Condition]:
    """F⁻¹ and its condition numbers. coupling: F - I, the sum over agents.

    The scales are those of |F - I| + I, to which F's rounding is relative: an entry that cancels stays small. They are
    powers of two, so scaling does not round.
    """
    one = np.eye(len(coupling))
    size = np.abs(coupling) + one
    rows = _scale(size.max(axis=1))
    columns = _scale((size * rows[:, None]).max(axis=0))
    F = coupling + one
    scaled = F * rows[:, None] * columns
    try:
        inverse = np.linalg.inv(scaled)
    except np.linalg.LinAlgError:
        value = np.inf if np.isfinite(scaled).all() else np.nan
        return np.full_like(F, np.nan), Condition(value, value)
    condition = _condition(scaled, inverse)
    inverse = inverse * columns[:, None] * rows
    return inverse, Condition(condition, _condition(F, inverse))


def _condition(matrix: np.ndarray, inverse: np.ndarray) -> float:
    return sqrt(np.vdot(matrix, matrix)) * sqrt(np.vdot(inverse, inverse)) / len(matrix)


def _scale(size: np.ndarray) -> np.ndarray:
    """Powers of two that bring these numbers into [1/2, 1)."""
    return np.ldexp(1.0, -np.frexp(size)[1])


def growth(condition: Condition) -> float:
    """How much rounding grows over the steps of a game whose worst step has these condition numbers."""
    return float(np.maximum(condition.scaled, np.sqrt(condition.plain)))


def check_existence(step: int, condition: Condition) -> None:
    """Raise the error for the condition numbers of a step, if any."""
    scaled, plain = condition
    if scaled < ILL_CONDITIONED and plain < ILL_CONDITIONED**2:
        return
    if scaled >= SINGULAR:
        raise SingularGame(step, scaled)
    raise IllConditionedGame(step, growth(condition))
