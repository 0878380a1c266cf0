"""Statsforecast's automatic models, one series at a time.

A model is fitted to the last WINDOW targets, first when there are FIRST, then whenever their number has grown by the
factor GROWTH and at least every `most` steps. In between the fitted model is carried forward over the new targets
(`forward`), so every forecast uses all that is known. Until the first fit the last target is the forecast.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from nashcast.evaluation.method import Maker, Method, Problem, one

WINDOW, FIRST, GROWTH = 500, 30, 1.5
SEASONS = (1, 7, 12, 24)
FAILURES = (ValueError, ZeroDivisionError, FloatingPointError, IndexError, np.linalg.LinAlgError)


class Refitted:
    """One target. make: a model of statsforecast.   most: steps between two fits at most."""

    def __init__(self, make: Callable[[], Any], most: int, start: float):
        self._make, self._most = make, most
        self._values, self._next_fit, self._model = [start], FIRST, None

    def forecast(self) -> float:
        """Of the next target: the last one where the model cannot be fitted or has no finite forecast."""
        last = self._values[-1]
        if len(self._values) < FIRST:
            return last
        window = np.array(self._values[-WINDOW:])
        if window.min() == window.max():
            return last  # its fits divide by the spread
        with warnings.catch_warnings(), suppress(*FAILURES):
            warnings.simplefilter("ignore")
            if self._model is None or len(self._values) >= self._next_fit:
                self._next_fit = min(int(len(self._values) * GROWTH), len(self._values) + self._most)
                self._model = self._make().fit(window)
            said = float(self._model.forward(window, 1)["mean"][0])
            return said if np.isfinite(said) else last
        return last

    def learn(self, value: float) -> None:
        self._values.append(value)


class Automatic:
    """A model of statsforecast, which sees the targets alone."""

    def __init__(self, make: Callable[[], Any], most: int, problem: Problem, seed: int):
        self._series = [Refitted(make, most, float(value)) for value in problem.start]

    def predict_one(self, x: np.ndarray) -> list[float]:
        return [each.forecast() for each in self._series]

    def learn_one(self, x: np.ndarray, y: np.ndarray) -> None:
        for each, value in zip(self._series, y, strict=True):
            each.learn(float(value))


def _ets(season: int):
    from statsforecast.models import AutoETS

    return AutoETS(season_length=season)


def _theta(season: int):
    from statsforecast.models import AutoTheta

    return AutoTheta(season_length=season)


def _arima():
    from statsforecast.models import AutoARIMA

    # Bounded: at most 30 models, with up to 3 terms of each kind, by conditional sums of squares.
    return AutoARIMA(season_length=1, max_p=3, max_q=3, nmodels=30, approximation=True)


SEASONAL: Mapping[str, Callable[[int], Any]] = {"AutoETS": _ets, "AutoTheta": _theta}


def methods() -> list[Method]:
    found = []
    for name, make in SEASONAL.items():
        choices: dict[str, Maker] = {
            f"season {season}": partial(Automatic, partial(make, season), 200) for season in SEASONS
        }
        found.append(Method(f"statsforecast {name}", "statsforecast", choices, package="statsforecast"))
    arima = one(partial(Automatic, _arima, 500))
    return [*found, Method("statsforecast AutoARIMA", "statsforecast", arima, package="statsforecast")]
