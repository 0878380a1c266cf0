"""Inputs of the models of other packages: the inputs and the last targets, standardised online."""

from __future__ import annotations

import numpy as np

from nashcast.evaluation.method import Problem

LAGS = 3


class Past:
    """The features of the present step, and the response to forecast from them: the level or its change."""

    def __init__(self, problem: Problem, lags: int = LAGS):
        self.targets = np.repeat(problem.start[None], lags, axis=0)  # newest first
        size = problem.x_dim + lags * problem.y_dim
        self._count, self._mean, self._squares = 0, np.zeros(size), np.zeros(size)

    @property
    def last(self) -> np.ndarray:
        return self.targets[0]

    def features(self, x: np.ndarray) -> np.ndarray:
        """Standardise by the mean and deviation of all earlier steps; 0 where those are constant."""
        values = np.concatenate([x, self.targets.ravel()])
        spread = np.sqrt(self._squares / max(self._count, 1))
        return np.divide(values - self._mean, spread, out=np.zeros(len(values)), where=spread > 0.0)

    def push(self, x: np.ndarray, y: np.ndarray) -> None:
        values = np.concatenate([x, self.targets.ravel()])
        self._count += 1
        apart = values - self._mean
        self._mean = self._mean + apart / self._count
        self._squares = self._squares + apart * (values - self._mean)
        self.targets = np.vstack([y, self.targets[:-1]])
