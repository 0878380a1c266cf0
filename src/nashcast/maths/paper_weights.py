"""Theorem 1 as a rule beside the others: it remembers one step only, and no bound holds for its regret."""

from __future__ import annotations

import numpy as np

from nashcast import validation as check
from nashcast.maths.expert_rule import ExpertRule
from nashcast.maths.mixture import mixture_weights


class PaperWeights(ExpertRule):
    r"""Signed weights that sum to the budget, fitted to the last step.   ridge: $\kappa > 0$.   budget: $\eta$."""

    name = "paper"
    _state = ("said", "target", "begun")

    def __init__(self, experts: int, y_dim: int = 1, *, ridge: float = 1.0, budget: float = 1.0):
        super().__init__(experts, y_dim)
        self._ridge = check.number("ridge", ridge, above=0.0)
        self._budget = check.number("budget", budget)
        self._said, self._target = np.zeros((self.experts, self.y_dim)), np.zeros(self.y_dim)
        self._begun = np.zeros(self.experts, dtype=bool)

    def _weights(self, here: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        weights = np.full(int(here.sum()), self._budget / here.sum())
        known = self._begun[here]
        if known.any():
            said = self._said[here][known].T
            kept = mixture_weights(said, self._target, ridge=self._ridge, budget=self._budget)
            # Whoever was asleep at the last step has an equal share; the others split the rest as the theorem says.
            weights[known] = kept * (known.sum() / here.sum())
        return weights

    def _learn(self, forecasts: np.ndarray, target: np.ndarray, here: np.ndarray) -> None:
        self._said = np.where(here[:, None], forecasts, 0.0)
        self._target, self._begun = target.copy(), here.copy()
