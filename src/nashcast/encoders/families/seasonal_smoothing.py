"""Exponential smoothing of level and season, without trend, at several pairs of rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nashcast.encoders.base import BuiltForecaster, Context
from nashcast.errors import InvalidInput
from nashcast.short_repr import short_repr
from nashcast.validation import describe

RATES = ((0.1, 0.1), (0.1, 0.4), (0.3, 0.1), (0.3, 0.4), (0.6, 0.1), (0.6, 0.4), (0.9, 0.2))
# Targets from which level and season are smoothed anew when the season changes.
_RESTART = 512


@dataclass(frozen=True)
class SeasonalSmoothing:
    """One forecast for each pair of rates (level, season). Without a season it smooths the level."""

    rates: tuple[tuple[float, float], ...] = RATES

    __repr__ = short_repr

    def __post_init__(self):
        rates = np.asarray(self.rates, dtype=float)
        if rates.ndim != 2 or rates.shape[1] != 2 or not ((rates > 0.0) & (rates <= 1.0)).all():
            raise InvalidInput("rates", describe(self.rates), "Pass pairs of numbers above 0 and at most 1.")

    def build(self, x_dim: int, y_dim: int) -> BuiltForecaster:
        return _Built(np.array(self.rates), y_dim)


class _Built(BuiltForecaster):
    """State: level (rates, y_dim), season (places, rates, y_dim), from the next target's place on, number of places.

    Without a season there is one place, and their number is 0.
    """

    past_targets = _RESTART
    calibrated = True
    accepts_missing = True

    def __init__(self, rates: np.ndarray, y_dim: int):
        self._level_rate, self._season_rate = rates[:, :1], rates[:, 1:]
        self.forecasts = len(rates)
        self._y_dim = y_dim

    def start(self) -> tuple[np.ndarray, np.ndarray, int]:
        shape = (self.forecasts, self._y_dim)
        return np.zeros(shape), np.zeros((1, *shape)), -1

    def advance(self, context: Context) -> tuple[np.ndarray, np.ndarray, int]:
        level, season, length = context.state
        if length != context.season:
            return self._restart(context.targets, context.season)
        return self._smooth(level, season, length, context.targets[-1])

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        level, season, length = context.state
        # The first place of `season` is that of the next target.
        if horizon == 1:
            return (level + season[0])[:, None]
        places = np.arange(horizon) % max(length, 1)
        return (level + season[places]).transpose(1, 0, 2)

    def _restart(self, targets: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray, int]:
        shape = (self.forecasts, self._y_dim)
        level, season = np.broadcast_to(targets[0], shape), np.zeros((1, *shape))
        if length:
            known = targets[: 2 * length]
            mean = known.mean(axis=0)
            pattern = np.stack([known[k::length].mean(axis=0) if k < len(known) else mean for k in range(length)])
            level, season = np.broadcast_to(mean, shape), np.repeat((pattern - mean)[:, None], shape[0], axis=1)
        state = (level, season, length)
        for target in targets:
            state = self._smooth(*state, target)
        return state

    def _smooth(self, level, season, length, target) -> tuple[np.ndarray, np.ndarray, int]:
        if not length:
            return level + self._level_rate * (target - level), season, 0
        now = season[0]
        smoothed = level + self._level_rate * (target - now - level)
        newest = now + self._season_rate * (target - smoothed - now)
        return smoothed, np.concatenate([season[1:], newest[None]]), length
