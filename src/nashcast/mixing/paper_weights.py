"""Theorem 1 as an expert rule: it learns from the last step only, and its regret has no bound."""

from __future__ import annotations

import numpy as np

from nashcast import validation as check
from nashcast.mixing.errors.error_scale import Errors
from nashcast.mixing.expert_rule import ExpertRule, Field
from nashcast.mixing.mixture_weights import mixture_weights


class PaperWeights(ExpertRule):
    r"""Signed weights that sum to the budget, fitted to the last step.   ridge: $\kappa > 0$.   budget: $\eta$.

    >>> rule = PaperWeights(2, ridge=1e-9)
    >>> rule.learn([[0.0], [2.0]], [1.5])
    >>> rule.weights().round(3)
    array([0.25, 0.75])
    """

    name = "paper"

    def __init__(self, experts: int, y_dim: int = 1, *, ridge: float = 1.0, budget: float = 1.0):
        super().__init__(experts, y_dim)
        self._ridge = check.number("ridge", ridge, above=0.0)
        self._budget = check.number("budget", budget)
        self._last, self._target = np.zeros((self.experts, self.y_dim)), np.zeros(self.y_dim)
        self._known = np.zeros(self.experts, dtype=bool)

    def _fields(self) -> dict[str, Field]:
        last, target = Field(self._last, signed=True), Field(self._target, signed=True)
        return {"forecasts": last, "target": target, "known": Field(self._known)}

    def _weights(self, awake: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        weights = np.where(awake, self._budget / awake.sum(), 0.0)
        known = awake & self._known
        if known.any():
            fitted = mixture_weights(self._last[known].T, self._target, ridge=self._ridge, budget=self._budget)
            if np.isfinite(fitted).all():
                # An expert that was asleep at the last step has an equal share; the others split the rest.
                weights[known] = fitted * (known.sum() / awake.sum())
        return weights

    def _learn(self, errors: Errors, awake: np.ndarray, forecasts: np.ndarray, target: np.ndarray) -> None:
        self._last[:] = np.where(awake[:, None], forecasts, 0.0)
        self._target[:], self._known[:] = target, awake
