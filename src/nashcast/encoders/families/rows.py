"""Standardised rows of a stream's history, one or many: the input of the built-in encoder families."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

# Standardised numbers are clipped to this many spreads from the mean, so that one outlier does not dominate.
LARGEST_SCORE = 16.0
# How many targets before a row are available as lags.
MOST_LAGS = 8


class _Scales(NamedTuple):
    mean: np.ndarray
    spread: np.ndarray
    change: np.ndarray


class Scales(_Scales):
    """Mean, spread and usual change of each column; 0 where a spread or change is not known yet.

    Scales change seldom and are divided by at every step, so their inverses are computed once.
    """

    @cached_property
    def inverse_spread(self) -> np.ndarray:
        return inverse(self.spread)

    @cached_property
    def inverse_change(self) -> np.ndarray:
        return inverse(self.change)

    @cached_property
    def inverse_both(self) -> np.ndarray:
        """The two, (2, 1, columns)."""
        return np.stack([self.inverse_spread, self.inverse_change])[:, None]

    @staticmethod
    def unknown(columns: int) -> Scales:
        return Scales(np.zeros(columns), np.zeros(columns), np.zeros(columns))

    @staticmethod
    def of(rows: np.ndarray) -> Scales:
        """Measured over rows (n, columns), n ≥ 1."""
        # Relative to the newest row, so that no digits are lost when values are far from 0.
        shifted = rows - rows[-1]
        mean = shifted.mean(axis=0)
        spread = np.sqrt(((shifted - mean) ** 2).mean(axis=0))
        changes = np.diff(shifted, axis=0)
        change = np.sqrt((changes**2).sum(axis=0) / max(1, len(changes)))
        return Scales(rows[-1] + mean, spread, change)

    def take(self, columns: np.ndarray) -> Scales:
        return Scales(self.mean[columns], self.spread[columns], self.change[columns])


def inverse(scale: np.ndarray) -> np.ndarray:
    """1 / scale, and 0 where the scale is 0."""
    if np.count_nonzero(scale) == scale.size:
        return 1.0 / scale
    return np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)


class Rows:
    """Rows first … last - 1 of a history, in standardised units.

    targets, inputs: arrays of the whole history; at least MOST_LAGS + 1 rows precede `first`.
    """

    def __init__(self, targets, inputs, target_scales: Scales, input_scales: Scales, span: Span):
        first, last = span.first, span.last
        self.span, self.count, self.y_dim = span, last - first, targets.shape[1]
        self._targets = targets
        self.size = target_scales.inverse_change  # 1 / usual change of each target
        # Values and changes share one array, so that they are standardised and clipped together.
        self._values, self._changes = _standardised(targets[first - MOST_LAGS - 1 : last], target_scales)
        self.inputs, self.input_changes = _standardised(inputs[first - 1 : last], input_scales)

    def value(self, lag: int) -> np.ndarray:
        """The targets `lag` rows before each row, (rows, y_dim), in spreads from their mean."""
        return self._values[MOST_LAGS - lag : MOST_LAGS - lag + self.count]

    def change(self, lag: int) -> np.ndarray:
        """The change of the targets into the row `lag` rows before, in usual changes."""
        return self._changes[MOST_LAGS - lag : MOST_LAGS - lag + self.count]

    def values(self, lags: int) -> np.ndarray:
        """`value` at lags 0 … lags - 1, (rows, y_dim, lags)."""
        return _lagged(self._values, self.count, lags)

    def changes(self, lags: int) -> np.ndarray:
        """`change` at lags 0 … lags - 1, (rows, y_dim, lags)."""
        return _lagged(self._changes, self.count, lags)

    @cached_property
    def seasonal_change(self) -> np.ndarray:
        """The value one season before the next target, relative to the present one; 0 where that is not known."""
        first, last, known_from, _, season = self.span
        if season < 1:
            return np.zeros((self.count, self.y_dim))
        begin = first + 1 - season
        if begin >= known_from:
            return clipped((self._targets[begin : last + 1 - season] - self._targets[first:last]) * self.size)
        rows = np.arange(begin, last + 1 - season)
        before = self._targets[np.maximum(rows, 0)] - self._targets[first:last]
        return np.where((rows >= known_from)[:, None], clipped(before * self.size), 0.0)

    def season_places(self) -> np.ndarray:
        """The place of each row in the season, 0 … season - 1. There must be a season."""
        return (self.span.first_step + np.arange(self.count)) % self.span.season

    def unit_before(self, before: Rows) -> np.ndarray:
        """The usual change by which other rows were standardised, in units of the present one; 0 if unknown."""
        return np.divide(self.size, before.size, out=np.zeros_like(self.size), where=before.size > 0.0)

    def take(self, columns: np.ndarray | None) -> Rows:
        """The same rows with some of the inputs only; all of them for None."""
        if columns is None:
            return self
        part = object.__new__(Rows)
        part.__dict__.update(self.__dict__)
        part.inputs, part.input_changes = self.inputs[:, columns], self.input_changes[:, columns]
        return part


class Span(NamedTuple):
    """Which rows of a history: first … last - 1."""

    first: int
    last: int
    known_from: int  # the first row of the stream; those before it repeat it
    first_step: int  # the step of row `first`
    season: int  # its length, 0 if there is none


def clipped(scores: np.ndarray) -> np.ndarray:
    """Scores, clipped to LARGEST_SCORE."""
    return np.minimum(np.maximum(scores, -LARGEST_SCORE), LARGEST_SCORE)


def _standardised(window: np.ndarray, scales: Scales) -> np.ndarray:
    """Values and changes of the rows of a window after its first one, (2, rows, columns), in standardised units."""
    scores = np.empty((2, len(window) - 1, window.shape[1]))
    np.subtract(window[1:], scales.mean, out=scores[0])
    np.subtract(window[1:], window[:-1], out=scores[1])
    scores *= scales.inverse_both
    np.maximum(scores, -LARGEST_SCORE, out=scores)
    return np.minimum(scores, LARGEST_SCORE, out=scores)


def _lagged(window: np.ndarray, count: int, lags: int) -> np.ndarray:
    """The last `lags` rows of a window before each of `count` rows, the newest first, (count, columns, lags)."""
    newest, oldest = MOST_LAGS, MOST_LAGS - lags
    if count == 1:  # the same as below, without the cost of a sliding window
        return window[newest:oldest:-1].T[None]
    windows = np.lib.stride_tricks.sliding_window_view(window, 1 + MOST_LAGS, axis=0)
    return windows[:, :, newest:oldest:-1]


def other_targets(y_dim: int) -> np.ndarray:
    """For each target the places of the others, (y_dim, y_dim - 1)."""
    places = [[j for j in range(y_dim) if j != k] for k in range(y_dim)]
    return np.array(places, dtype=np.int64).reshape(y_dim, y_dim - 1)
