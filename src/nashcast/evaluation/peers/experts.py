"""Mixtures of the federation's own experts by the rules of the expert literature and by river's."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from nashcast.evaluation import federation_methods
from nashcast.evaluation.method import Method, Problem, one
from nashcast.federation.federation import Federation
from nashcast.federation.loop import Loop
from nashcast.mixing.aggregation import aggregation_rule

# River's rule takes the error in its own units, so the best rate depends on the stream.
RATES = (0.01, 1.0, 100.0, 10_000.0)


class Experts:
    """The experts of the default federation; its weights are not used."""

    def __init__(self, problem: Problem, seed: int):
        self._federation = federation_methods.federation(problem, seed)
        self.count = len(self.said(np.zeros(problem.x_dim)))

    def said(self, x: np.ndarray) -> np.ndarray:
        """Each expert's forecast of the next target, (experts, y_dim). Asking again for the same x is cheap."""
        return expert_forecasts(self._federation, x)[:, 0].T

    def learn(self, x: np.ndarray, y: np.ndarray) -> None:
        self._federation.learn_one(x, y)


def expert_forecasts(federation: Federation, x: np.ndarray) -> np.ndarray:
    """Forecasts of each expert of a federation from x, (y_dim, horizon, experts)."""
    federation.predict_one(x)
    loop = federation.loop
    assert isinstance(loop, Loop)
    now = loop._now
    assert now is not None
    return now[0].experts


class Weighed:
    """Experts, and one set of weights over them for all targets."""

    def __init__(self, rule: str, problem: Problem, seed: int):
        self._experts = Experts(problem, seed)
        self._rule = aggregation_rule(rule, self._experts.count, problem.y_dim)

    def predict_one(self, x: np.ndarray) -> np.ndarray:
        forecasts = self._experts.said(x)
        return self._rule.weights(None, forecasts) @ forecasts

    def learn_one(self, x: np.ndarray, y: np.ndarray) -> None:
        self._rule.learn(self._experts.said(x), y)
        self._experts.learn(x, y)


class RiversAverage:
    """River's EWARegressor over the experts' forecasts; one for each target."""

    def __init__(self, rate: float, problem: Problem, seed: int):
        from river import base, ensemble

        class Says(base.Regressor):
            """An expert that returns the forecast stored under its name."""

            def __init__(self, name: str):
                self.name = name

            def predict_one(self, x):
                return x[self.name]

            def learn_one(self, x, y):
                pass

        self._experts = Experts(problem, seed)
        names = [str(i) for i in range(self._experts.count)]
        self._averages: list[Any] = [
            ensemble.EWARegressor([Says(name) for name in names], learning_rate=rate) for _ in range(problem.y_dim)
        ]
        for average in self._averages:
            # River's weights are all 1 until it learns: the first forecast would be the experts' sum.
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
    over = "the federation's experts"
    rules = {"BOA": "boa", "ML-Poly": "ml-poly"}
    found = [
        Method(f"{label} over {over}", "experts", one(partial(Weighed, rule)), random=True)
        for label, rule in rules.items()
    ]
    rates = {f"rate {rate:g}": partial(RiversAverage, rate) for rate in RATES}
    return [*found, Method(f"river EWARegressor over {over}", "experts", rates, random=True, package="river")]
