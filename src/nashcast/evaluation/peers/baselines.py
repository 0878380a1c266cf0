"""Simple forecasters, in every table for comparison; their settings are the same for every stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf, isfinite

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nashcast import validation as check
from nashcast.datasets import Stream
from nashcast.errors import InvalidInput
from nashcast.evaluation.peers import recursive_least_squares as least_squares

LONGEST_SEASON = 64
SEASON_WINDOW = 128
SMOOTHING = 0.5
HOLT_LEVEL, HOLT_TREND = 0.8, 0.2


def mse(forecasts: np.ndarray, targets: np.ndarray) -> float:
    """Mean squared error over steps and entries; infinite if it is not finite."""
    y = check.of_rank("targets", targets, ("steps", "y_dim"))
    predicted = check.shaped("forecasts", forecasts, y.shape, "(steps, y_dim)")
    with np.errstate(over="ignore", invalid="ignore"):
        error = float(np.mean((predicted - y) ** 2))
    return error if isfinite(error) else inf


def baselines(stream: Stream) -> dict[str, np.ndarray]:
    """The forecasts (steps, y_dim) of every baseline; row t uses start, inputs up to t and targets before t only."""
    inputs, known = _read(stream)
    return {name: _apply(rule, inputs, known) for name, rule in _RULES.items()}


def best_baseline(stream: Stream) -> tuple[str, float]:
    """The name and mean squared error of the best baseline in hindsight."""
    errors = {name: mse(forecasts, stream.targets) for name, forecasts in baselines(stream).items()}
    return min(errors.items(), key=lambda item: item[1])


def _read(stream: Stream) -> tuple[np.ndarray, np.ndarray]:
    """The inputs, and in row t the last target known when targets[t] is to be forecast."""
    if not isinstance(stream, Stream):
        raise InvalidInput("stream", check.describe(stream), "Pass a nashcast.datasets.Stream.")
    targets = check.of_rank("targets", stream.targets, ("steps", "y_dim"))
    check.finite("targets", targets)
    steps, y_dim = targets.shape
    if steps < 2:
        raise InvalidInput("targets", "1 step", "Pass a stream of at least 2 steps: a baseline learns from the past.")
    inputs = check.of_rank("inputs", stream.inputs, ("steps", "x_dim"))
    check.array("inputs", inputs, (steps, inputs.shape[1]), "(steps, x_dim)")
    start = check.array("start", stream.start, (y_dim,), "(y_dim,)")
    return inputs, np.vstack([start, targets[:-1]])


def persistence(inputs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The last target."""
    return known.copy()


def linear_extrapolation(inputs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The line through the last two targets."""
    return known + np.diff(known, axis=0, prepend=known[:1])


def seasonal_naive(inputs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The target one season ago; the season is the lag at which each target repeated itself best so far."""
    return _seasonal(known, LONGEST_SEASON, SEASON_WINDOW)


def exponential_smoothing(inputs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """A mean of all targets so far in which each counts half as much as the next."""
    return _holt(known, SMOOTHING, 0.0)


def holt_trend(inputs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Holt's linear trend: a smoothed level plus a smoothed slope."""
    return _holt(known, HOLT_LEVEL, HOLT_TREND)


def _seasonal(known: np.ndarray, longest: int, window: int) -> np.ndarray:
    steps, p = known.shape
    rows = np.arange(steps)
    errors = np.full((longest, steps, p), np.inf)
    for lag in range(1, min(longest, max(1, steps // 2)) + 1):
        squares = np.zeros((steps + window - 1, p))
        squares[window - 1 + lag :] = (known[lag:] - known[:-lag]) ** 2
        totals = sliding_window_view(squares, window, axis=0).sum(axis=-1)
        terms = np.maximum(1, rows + 1 - np.maximum(lag, rows + 1 - window))
        # A season is used only after two full periods.
        believed = lag <= np.maximum(1, (rows + 1) // 2)
        errors[lag - 1, believed] = (totals / terms[:, None])[believed]
    best = 1 + np.argmin(np.where(np.isnan(errors), np.inf, errors), axis=0)
    return np.take_along_axis(known, rows[:, None] + 1 - best, axis=0)


def _holt(known: np.ndarray, level_share: float, trend_share: float) -> np.ndarray:
    """Level and slope after each row; the level starts at the first row and the slope at 0."""
    forecasts = np.empty_like(known)
    level, slope = known[0], np.zeros(known.shape[1])
    forecasts[0] = level
    for t in range(1, len(known)):
        before = level
        level = level_share * known[t] + (1.0 - level_share) * (level + slope)
        slope = trend_share * (level - before) + (1.0 - trend_share) * slope
        forecasts[t] = level + slope
    return forecasts


Rule = Callable[[np.ndarray, np.ndarray], np.ndarray]

_RULES: dict[str, Rule] = {
    "persistence": persistence,
    "linear extrapolation": linear_extrapolation,
    "seasonal naive": seasonal_naive,
    "exponential smoothing": exponential_smoothing,
    "Holt trend": holt_trend,
    "RLS lags": least_squares.on_lags,
    "RLS increments": least_squares.on_increments,
    "RLS inputs": least_squares.on_inputs,
    "RLS quadratic": least_squares.on_quadratics,
    "RLS random features": least_squares.on_random_features,
}


def _apply(rule: Rule, inputs: np.ndarray, known: np.ndarray) -> np.ndarray:
    # Numbers whose squares overflow give non-finite forecasts and an infinite error, without a warning.
    with np.errstate(over="ignore", invalid="ignore"):
        return rule(inputs, known)


def _forecast(rule: Rule, stream: Stream) -> np.ndarray:
    return _apply(rule, *_read(stream))


BASELINES: dict[str, Callable[[Stream], np.ndarray]] = {name: partial(_forecast, rule) for name, rule in _RULES.items()}
