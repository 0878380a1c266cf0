"""What a federation says at a step, and what a label says of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nashcast.games.lookback.game import Equilibrium

# Forecasts of the next target by each member, (members, y_dim), or what computes them when they are asked for.
OwnForecasts = np.ndarray | Callable[[], np.ndarray]


class Forecast(NamedTuple):
    """What a federation says at one step, before its label is known."""

    forecast: np.ndarray  # (horizon, y_dim)
    weights: np.ndarray  # of each member, (members,), averaged over targets, for the next step
    own_forecasts: OwnForecasts
    absent: dict[int, str]  # members that sit the step out, and why
    distance: np.ndarray | None = None  # from the targets as agents expect it, (horizon, y_dim)
    played: bool = False  # whether the agents played a game in this step
    fell_back: str = ""  # why a game that was due left the greedy step standing, for some agents or for all
    game: Equilibrium | None = None  # the look-back game that was solved on the server

    @property
    def own(self) -> np.ndarray:
        """Each member's own forecast of the next target, (members, y_dim)."""
        return self.own_forecasts() if callable(self.own_forecasts) else self.own_forecasts


class Scored(NamedTuple):
    """Forecasts whose label came."""

    target: np.ndarray  # (y_dim,)
    forecasts: np.ndarray  # (horizon, y_dim), made 1 … horizon steps before it
    own_forecasts: OwnForecasts
    known: np.ndarray  # (horizon,)
    step: int = 0  # of the last forecast before it

    @property
    def own(self) -> np.ndarray:
        """The members' forecasts of it, (members, y_dim)."""
        return self.own_forecasts() if callable(self.own_forecasts) else self.own_forecasts
