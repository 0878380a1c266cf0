"""Mixtures of the same agents, each by itself, by the rules of the expert literature and by river's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nashcast.experiments.evaluation import ours
from nashcast.experiments.evaluation.method import Method, Online, Problem, one
from nashcast.mixing.aggregation import aggregation_rule

# River's rule takes the error in its own units, so what is a fast rate depends on the stream.
RATES = (0.01, 1.0, 100.0, 10_000.0)


Experts = Callable[[Problem, int], "Alone | Variants"]


class Alone:
    """Six agents, each by itself."""

    def __init__(self, problem: Problem, seed: int):
        self._agents: list[Online] = [ours.alone(i, problem, seed) for i in range(len(ours.names(problem)))]
        self.count = len(self._agents)

    def said(self, x: np.ndarray) -> np.ndarray:
        """(experts, y_dim). Asking again is cheap: a federation keeps its forecast until it learns."""
        return np.array([np.atleast_1d(agent.predict_one(x)) for agent in self._agents])

    def learn(self, x: np.ndarray, y: np.ndarray) -> None:
        for agent in self._agents:
            agent.learn_one(x, y)


class Variants:
    """All that the default federation mixes; how it does is not used."""

    def __init__(self, problem: Problem, seed: int):
        self._federation = ours.federation(problem, seed)
        self.count = len(self.said(np.zeros(problem.x_dim)))

    def said(self, x: np.ndarray) -> np.ndarray:
        self._federation.predict_one(x)
        return np.array(list(self._federation.variant_forecasts.values()))

    def learn(self, x: np.ndarray, y: np.ndarray) -> None:
        self._federation.learn_one(x, y)


class Weighed:
    """Experts, and one set of weights over them for all targets."""

    def __init__(self, rule: str, experts: Experts, problem: Problem, seed: int):
        self._experts = experts(problem, seed)
        self._rule = aggregation_rule(rule, self._experts.count, problem.y_dim)

    def predict_one(self, x: np.ndarray) -> np.ndarray:
        said = self._experts.said(x)
        return self._rule.weights(None, said) @ said

    def learn_one(self, x: np.ndarray, y: np.ndarray) -> None:
        self._rule.learn(self._experts.said(x), y)
        self._experts.learn(x, y)


class RiversAverage:
    """River's EWARegressor over what each expert says; for several targets, one for each."""

    def __init__(self, rate: float, experts: Experts, problem: Problem, seed: int):
        from river import base, ensemble

        class Says(base.Regressor):
            """An expert that says what stands under its name."""

            def __init__(self, name: str):
                self.name = name

            def predict_one(self, x):
                return x[self.name]

            def learn_one(self, x, y):
                pass

        self._experts = experts(problem, seed)
        names = [str(i) for i in range(self._experts.count)]
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
        self._experts.learn(x, y)

    def _said(self, x: np.ndarray) -> list[dict[str, float]]:
        return [{str(i): float(value) for i, value in enumerate(column)} for column in self._experts.said(x).T]


def methods() -> list[Method]:
    panels: dict[str, Experts] = {"six agents": Alone, "the federation's variants": Variants}
    found = []
    for over, experts in panels.items():
        for label, rule in (("BOA", "boa"), ("ML-Poly", "ml-poly")):
            found.append(Method(f"{label} over {over}", "experts", one(partial(Weighed, rule, experts)), random=True))
        rates = {f"rate {rate:g}": partial(RiversAverage, rate, experts) for rate in RATES}
        found.append(Method(f"river EWARegressor over {over}", "experts", rates, random=True, package="river"))
    return found
