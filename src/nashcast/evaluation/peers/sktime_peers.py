"""What sktime's OnlineEnsembleForecaster does in a step, over seven forecasters of one series."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from nashcast.evaluation.method import Method, Problem, one
from nashcast.evaluation.peers.statsforecast_peers import SEASONAL, Refitted

MEANS = (3, 10, 30)


class Member(Protocol):
    def forecast(self) -> float: ...

    def learn(self, value: float) -> None: ...


class Naive:
    """A function of the values so far."""

    def __init__(self, rule: Callable[[Sequence[float]], float], start: float):
        self._rule, self._values = rule, [start]

    def forecast(self) -> float:
        return self._rule(self._values)

    def learn(self, value: float) -> None:
        self._values.append(value)


def last(values: Sequence[float]) -> float:
    return values[-1]


def drift(values: Sequence[float]) -> float:
    """On the line through the first and the last value."""
    return values[-1] + (values[-1] - values[0]) / max(len(values) - 1, 1)


def mean_of(count: int, values: Sequence[float]) -> float:
    return float(np.mean(values[-count:]))


class Combined:
    """One target: a weighted sum of the members' forecasts, whose weights sktime's algorithm learns."""

    def __init__(self, algorithm: str, members: Sequence[Member]):
        self._members, self._algorithm = members, ensemble_algorithm(algorithm, len(members))
        self._said: np.ndarray | None = None

    def forecast(self) -> float:
        self._said = np.array([member.forecast() for member in self._members])
        return float(self._algorithm.weights @ self._said)

    def learn(self, value: float) -> None:
        assert self._said is not None
        before = self._algorithm.weights
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._algorithm.update(self._said[:, None], np.array([value]))
        except (ValueError, TypeError, RuntimeError):
            # NormalHedge divides by 0 where no member has a positive regret; NNLS may run out of iterations.
            self._algorithm.weights = before
        for member in self._members:
            member.learn(value)


class OnlineEnsemble:
    """Members: the last value, the mean of the last 3, 10 and 30, the drift, AutoETS and AutoTheta without a season.

    Sktime's class makes data frames in each step, which costs a hundred times more; that the forecasts are the same is
    tested.
    """

    def __init__(self, algorithm: str, problem: Problem, seed: int):
        self._series = [Combined(algorithm, members(float(value))) for value in problem.start]

    def predict_one(self, x: np.ndarray) -> list[float]:
        return [each.forecast() for each in self._series]

    def learn_one(self, x: np.ndarray, y: np.ndarray) -> None:
        for each, value in zip(self._series, y, strict=True):
            each.learn(float(value))


def members(start: float) -> list[Member]:
    rules = [last, drift, *(partial(mean_of, count) for count in MEANS)]
    naive: list[Member] = [Naive(rule, start) for rule in rules]
    return naive + [Refitted(partial(make, 1), 200, start) for make in SEASONAL.values()]


def ensemble_algorithm(name: str, members: int) -> Any:
    """NNLS, or NormalHedge by the squared error."""
    from sktime.forecasting.online_learning import NNLSEnsemble, NormalHedgeEnsemble

    kinds = {"NNLS": NNLSEnsemble, "NormalHedge": NormalHedgeEnsemble}
    return kinds[name](n_estimators=members, loss_func=_squared)


def _squared(forecasts: list[float], values: list[float]) -> float:
    return (forecasts[0] - values[0]) ** 2


def methods() -> list[Method]:
    return [
        Method(f"sktime OnlineEnsemble {name}", "sktime", one(partial(OnlineEnsemble, name)), package="sktime")
        for name in ("NNLS", "NormalHedge")
    ]
