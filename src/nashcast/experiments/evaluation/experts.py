"""Mixtures of the same agents, each by itself, by the rules of the expert literature and by river's."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from nashcast.experiments.evaluation import ours
from nashcast.experiments.evaluation.method import Method, Online, Problem, one
from nashcast.maths.aggregation import aggregation_rule

# River's rule takes the error in its own units, so what is a fast rate depends on the stream.
RATES = (0.01, 1.0, 100.0, 10_000.0)


class OverAgents:
    """Each agent alone, and one set of weights over them for all targets."""

    def __init__(self, rule: str, problem: Problem, seed: int):
        self._alone = [ours.alone(i, problem, seed) for i in range(len(ours.names(problem)))]
        self._rule = aggregation_rule(rule, len(self._alone), problem.y_dim)

    def predict_one(self, x: np.ndarray) -> np.ndarray:
        said = self._said(x)
        return self._rule.weights(None, said) @ said

    def learn_one(self, x: np.ndarray, y: np.ndarray) -> None:
        self._rule.learn(self._said(x), y)
        for agent in self._alone:
            agent.learn_one(x, y)

    def _said(self, x: np.ndarray) -> np.ndarray:
        return _said(self._alone, x)


def _said(alone: Sequence[Online], x: np.ndarray) -> np.ndarray:
    """(agents, y_dim). Asking again is cheap: a federation keeps its forecast until it learns."""
    return np.array([np.atleast_1d(agent.predict_one(x)) for agent in alone])


class RiversAverage:
    """River's EWARegressor over what each agent alone says; for several targets, one for each."""

    def __init__(self, rate: float, problem: Problem, seed: int):
        from river import base, ensemble

        class Says(base.Regressor):
            """An expert that says what stands under its name."""

            def __init__(self, name: str):
                self.name = name

            def predict_one(self, x):
                return x[self.name]

            def learn_one(self, x, y):
                pass

        self._alone = [ours.alone(i, problem, seed) for i in range(len(ours.names(problem)))]
        names = [str(i) for i in range(len(self._alone))]
        self._averages: list[Any] = [
            ensemble.EWARegressor([Says(name) for name in names], learning_rate=rate) for _ in range(problem.y_dim)
        ]
        for average in self._averages:
            # Its weights are all 1 until it learns: the first forecast would be the experts' sum.
            average.weights = [1.0 / len(names)] * len(names)

    def predict_one(self, x: np.ndarray) -> list[float]:
        return [average.predict_one(said) for average, said in zip(self._averages, self._said(x), strict=True)]

    def learn_one(self, x: np.ndarray, y: np.ndarray) -> None:
        for average, said, target in zip(self._averages, self._said(x), y, strict=True):
            average.learn_one(said, float(target))
        for agent in self._alone:
            agent.learn_one(x, y)

    def _said(self, x: np.ndarray) -> list[dict[str, float]]:
        return [{str(i): float(value) for i, value in enumerate(column)} for column in _said(self._alone, x).T]


def methods() -> list[Method]:
    found = [
        Method(f"{label} over the agents", "experts", one(partial(OverAgents, rule)), random=True)
        for label, rule in (("BOA", "boa"), ("ML-Poly", "ml-poly"))
    ]
    rates = {f"rate {rate:g}": partial(RiversAverage, rate) for rate in RATES}
    return [*found, Method("river EWARegressor over the agents", "experts", rates, random=True, package="river")]
