"""The forecast of a federation at a step, and its score once the label is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nashcast.games.lookback.game import Equilibrium

# Forecasts of the next target by each member, (members, y_dim), or a function that computes them on demand.
OwnForecasts = np.ndarray | Callable[[], np.ndarray]


class Forecast(NamedTuple):
    """The output of a federation at one step, before its label is known."""

    forecast: np.ndarray  # (horizon, y_dim)
    weights: np.ndarray  # per member, (members,), averaged over targets, in the forecast of the next target
    own_forecasts: OwnForecasts
    absent: dict[int, str]  # members without a forecast at this step, and why
    distance: np.ndarray | None = None  # distance to the targets that agents expect, (horizon, y_dim)
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
    step: int = 0  # step of the last forecast before it

    @property
    def own(self) -> np.ndarray:
        """The members' forecasts of it, (members, y_dim)."""
        return self.own_forecasts() if callable(self.own_forecasts) else self.own_forecasts
