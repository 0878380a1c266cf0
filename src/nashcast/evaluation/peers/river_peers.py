"""River's forecasters and regressors, one model for each target."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nashcast.evaluation.method import Maker, Method, Problem
from nashcast.evaluation.peers.model_inputs import Past


class Forecasting:
    """A model of river.time_series: it uses the targets only."""

    def __init__(self, make: Callable[[], Any], problem: Problem, seed: int):
        self._models = [make() for _ in range(problem.y_dim)]
        self._last = problem.start
        for model, value in zip(self._models, problem.start, strict=True):
            model.learn_one(float(value))

    def predict_one(self, x: np.ndarray) -> list[float]:
        return [self._forecast(model, last) for model, last in zip(self._models, self._last, strict=True)]

    def learn_one(self, x: np.ndarray, y: np.ndarray) -> None:
        for model, value in zip(self._models, y, strict=True):
            model.learn_one(float(value))
        self._last = y

    def _forecast(self, model, last: float) -> float:
        try:
            return float(model.forecast(horizon=1)[0])
        except IndexError:  # it has not seen enough yet
            return float(last)


class Regressing:
    """A regressor on the inputs and the last targets.   change: whether it forecasts the target's change."""

    def __init__(self, make: Callable[[int], Any], change: bool, problem: Problem, seed: int):
        self._models = [make(seed + k) for k in range(problem.y_dim)]
        self._past, self._change = Past(problem), change

    def predict_one(self, x: np.ndarray) -> np.ndarray:
        features = self._named(x)
        forecast = np.array([float(model.predict_one(features) or 0.0) for model in self._models])
        return forecast + self._past.last if self._change else forecast

    def learn_one(self, x: np.ndarray, y: np.ndarray) -> None:
        features, aim = self._named(x), y - self._past.last if self._change else y
        for model, value in zip(self._models, aim, strict=True):
            model.learn_one(features, float(value))
        self._past.push(x, y)

    def _named(self, x: np.ndarray) -> dict[str, float]:
        named = {f"f{i}": float(value) for i, value in enumerate(self._past.features(x))}
        return {**named, "one": 1.0}


def _snarimax(p: int, d: int, q: int):
    from river import time_series

    return time_series.SNARIMAX(p=p, d=d, q=q)


def _holt_winters(alpha: float, beta: float | None, season: int):
    from river import time_series

    gamma = {"gamma": 0.1, "seasonality": season} if season else {}
    return time_series.HoltWinters(alpha=alpha, beta=beta, **gamma)


def _bayesian(smoothing: float | None, seed: int):
    from river import linear_model

    return linear_model.BayesianLinearRegression(smoothing=smoothing)


def _neighbours(count: int, seed: int):
    from river import neighbors

    return neighbors.KNNRegressor(n_neighbors=count, engine=neighbors.LazySearch(window_size=500))


def _forest(seed: int):
    from river import forest

    return forest.ARFRegressor(n_models=10, seed=seed)


def _both(name: str, make: Callable[[int], Any]) -> dict[str, Maker]:
    """The level of the target, and its change."""
    comma = ", " if name else ""
    return {
        f"{name}{comma}level": partial(Regressing, make, False),
        f"{name}{comma}change": partial(Regressing, make, True),
    }


def methods() -> list[Method]:
    orders = ((4, 0, 0), (12, 0, 0), (4, 1, 0), (2, 1, 2))
    smooth = ((0.3, None, 0), (0.8, None, 0), (0.3, 0.1, 0), (0.8, 0.1, 0), (0.3, 0.1, 12), (0.3, 0.1, 24))
    found = {
        "SNARIMAX": {
            f"p={p}, d={d}, q={q}": partial(Forecasting, partial(_snarimax, p, d, q)) for p, d, q in orders
        },
        "HoltWinters": {
            f"alpha={a}, beta={b}, season={m}": partial(Forecasting, partial(_holt_winters, a, b, m))
            for a, b, m in smooth
        },
        "BayesianLinearRegression": {
            **_both("all history", partial(_bayesian, None)), **_both("smoothing 0.99", partial(_bayesian, 0.99)),
        },
        "KNNRegressor": {**_both("5", partial(_neighbours, 5)), **_both("20", partial(_neighbours, 20))},
        "ARFRegressor": _both("", _forest),
    }  # fmt: skip
    return [
        Method(f"river {name}", "river", choices, random=name == "ARFRegressor", package="river")
        for name, choices in found.items()
    ]
