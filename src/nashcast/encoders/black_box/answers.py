"""Answers of a black box, read as forecasts: one or several steps ahead, as numbers, quantiles or samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.encoders.base import ForecastSet, Quantiles
from nashcast.errors import InvalidInput

# Quantile levels taken from samples; the lowest and the highest of SHOWN are experts beside the mean.
SAMPLE_LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
SHOWN = (0.1, 0.9)


def checked_levels(name: str, levels: Sequence[float]) -> tuple[float, ...]:
    """Quantile levels in ascending order, with 0.5 or levels on both sides of it."""
    if isinstance(levels, str) or not isinstance(levels, Sequence | np.ndarray):
        raise InvalidInput(name, check.describe(levels), "Pass a list of levels, for example (0.1, 0.5, 0.9).")
    found = tuple(check.number(f"{name}[{i}]", level, above=0.0) for i, level in enumerate(levels))
    if list(found) != sorted(set(found)) or (found and found[-1] >= 1.0):
        raise InvalidInput(name, f"{found}", "Pass different levels between 0 and 1 in ascending order.")
    if found and not found[0] <= 0.5 <= found[-1]:
        raise InvalidInput(name, f"{found}", "Pass 0.5, the median, or levels on both sides of it.")
    return found


class AnswerShape:
    """How to read an answer.   name: the black box's in messages.   y_dim: numbers in a target.

    horizon: how many steps it forecasts; None for 1 or as many as it is asked for.
    levels: quantile levels, the last axis of the answer.   samples: whether the first axis of the answer is samples.
    """

    def __init__(
        self,
        name: str,
        y_dim: int,
        horizon: int | None = None,
        levels: tuple[float, ...] = (),
        samples: bool = False,
    ):
        self._name, self._y_dim, self._horizon = name, y_dim, horizon
        self._levels, self._samples = levels, samples
        self.levels = SAMPLE_LEVELS if samples else levels  # levels of the quantiles that `read` gives
        # The forecast, and the lowest and the highest quantile as further experts.
        self.forecasts = 3 if samples or len(levels) > 1 else 1

    def read(self, answer: Any, horizon: int, skip: int = 0, length: int | None = None) -> ForecastSet:
        """Forecasts of `horizon` steps; NaN after the end of the answer.

        skip: steps of the answer that are over.   length: how many steps it was asked for, if not `horizon`.
        """
        values = np.array(check.numbers(self._name, answer, "numbers"))
        steps = (length or horizon, 1) if self._horizon is None else (self._horizon,)
        for h in steps:
            found = self._arranged(values, h)
            if found is not None:
                return self._set(_cut(found, horizon, skip))
        wanted = " or ".join(self._wanted(h) for h in steps)
        raise InvalidInput(self._name, f"an answer of shape {check.shape_text(values.shape)}", f"Return {wanted}.")

    def _arranged(self, values: np.ndarray, h: int) -> np.ndarray | None:
        """The answer as (h, y_dim, numbers for each), or None if it has another shape."""
        p, K = self._y_dim, len(self._levels)
        if self._samples:
            if values.ndim < 1 or values.shape[0] < 1:
                return None
            values = np.moveaxis(values, 0, -1)
            K = values.shape[-1]
        elif not K:
            values, K = values[..., None], 1
        shapes: list[tuple[int, ...]] = [(h, p, K)]
        if p == 1:
            shapes.append((h, K))
        if h == 1:
            shapes.append((p, K))
        if h == p == 1:
            shapes.append((K,))
        return values.reshape(h, p, K) if values.shape in shapes else None

    def _wanted(self, h: int) -> str:
        shape: list[Any] = [h] if self._y_dim == 1 else [h, self._y_dim]
        if self._samples:
            return f"samples of shape {check.shape_text(('samples', *shape))}"
        if self._levels:
            return f"quantiles of shape {check.shape_text((*shape, len(self._levels)))}"
        return (
            f"{h} forecast{'s' if h > 1 else ''}"
            if self._y_dim == 1
            else f"forecasts of shape {check.shape_text(tuple(shape))}"
        )

    def _set(self, values: np.ndarray) -> ForecastSet:
        """values: (horizon, y_dim, numbers for each)."""
        if self._samples:
            quantiles = np.moveaxis(np.quantile(values, SAMPLE_LEVELS, axis=-1), 0, -1)
            low, high = (quantiles[..., SAMPLE_LEVELS.index(level)] for level in SHOWN)
            mean = values.mean(axis=-1)
            return ForecastSet(np.stack([mean, low, high]), Quantiles(SAMPLE_LEVELS, quantiles))
        if not self._levels:
            return ForecastSet(values[None, ..., 0])
        return quantile_forecasts(self._levels, values)


def quantile_forecasts(levels: tuple[float, ...], values: np.ndarray) -> ForecastSet:
    """values: (horizon, y_dim, levels). The median is the forecast, the outermost quantiles are further ones."""
    values = np.sort(values, axis=-1)
    above = int(np.searchsorted(levels, 0.5))
    if levels[above] == 0.5:
        median = values[..., above]
    else:
        share = (0.5 - levels[above - 1]) / (levels[above] - levels[above - 1])
        median = (1.0 - share) * values[..., above - 1] + share * values[..., above]
    forecasts = [median] if len(levels) == 1 else [median, values[..., 0], values[..., -1]]
    return ForecastSet(np.stack(forecasts), Quantiles(levels, values))


def _cut(values: np.ndarray, horizon: int, skip: int) -> np.ndarray:
    """From `skip` on, `horizon` steps; NaN where there are none."""
    found = np.full((horizon, *values.shape[1:]), np.nan)
    rest = values[skip : skip + horizon]
    found[: len(rest)] = rest
    return found
