"""Reservoirpy's reservoir and its nonlinear autoregression, each with its recursive least squares as readout."""

from __future__ import annotations

from functools import partial

import numpy as np

from nashcast.evaluation.method import Method, Problem
from nashcast.evaluation.peers.model_inputs import Past

UNITS, RADIUS, RIDGE = 100, 0.9, 0.1
# With more inputs than this, products of two use no past inputs.
MOST_WITH_DELAY = 6


class ReadOut:
    """node >> RLS, run separately so that the node sees every input once.   change: forecast the target's change."""

    def __init__(self, node, forgetting: float, change: bool, problem: Problem):
        from reservoirpy.nodes import RLS

        self._node, self._read = node, RLS(alpha=RIDGE, forgetting=forgetting)
        self._past, self._change = Past(problem, lags=1), change
        self._y_dim, self._state, self._begun = problem.y_dim, None, False

    def predict_one(self, x: np.ndarray) -> np.ndarray:
        features = self._past.features(x)
        if not self._begun:
            self._node.initialize(features[None])
        self._state = np.asarray(self._node.step(features), dtype=np.float64).ravel()
        if not self._begun:
            self._read.initialize(self._state[None], np.zeros((1, self._y_dim)))
            self._begun = True
        forecast = np.asarray(self._read.step(self._state), dtype=np.float64).ravel()
        return forecast + self._past.last if self._change else forecast

    def learn_one(self, x: np.ndarray, y: np.ndarray) -> None:
        assert self._state is not None
        aim = y - self._past.last if self._change else y
        self._read.partial_fit(self._state[None], aim[None])
        self._past.push(x, y)


def _reservoir(leak: float, forgetting: float, change: bool, problem: Problem, seed: int) -> ReadOut:
    from reservoirpy.nodes import Reservoir

    node = Reservoir(units=UNITS, sr=RADIUS, lr=leak, seed=seed)
    return ReadOut(node, forgetting, change, problem)


def _products(forgetting: float, change: bool, problem: Problem, seed: int) -> ReadOut:
    from reservoirpy.nodes import NVAR

    delay = 2 if problem.x_dim + problem.y_dim <= MOST_WITH_DELAY else 1
    return ReadOut(NVAR(delay=delay, order=2), forgetting, change, problem)


def methods() -> list[Method]:
    aims = {"level": False, "change": True}
    reservoirs = {
        f"leak {leak}, forgetting {fading}, {aim}": partial(_reservoir, leak, fading, change)
        for leak in (0.3, 1.0)
        for fading in (0.99, 0.999)
        for aim, change in aims.items()
    }
    products = {
        f"forgetting {fading}, {aim}": partial(_products, fading, change)
        for fading in (0.99, 0.999)
        for aim, change in aims.items()
    }
    return [
        Method("reservoirpy Reservoir >> RLS", "reservoirpy", reservoirs, random=True, package="reservoirpy"),
        Method("reservoirpy NVAR >> RLS", "reservoirpy", products, package="reservoirpy"),
    ]
