r"""The paper's weights (Theorem 1) over a discounted window, its discount and κ chosen online.

Every pair of a discount and a ridge gives weights of its own in closed form; BOA mixes those by the errors of their
forecasts. So the regret against the best pair is BOA's against the best of so many experts; the weights stay signed,
with sum η. Rows with outliers are bounded (see `row_memory`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.mixing.boa import BOA
from nashcast.mixing.errors.error_scale import Errors
from nashcast.mixing.errors.row_memory import take_row
from nashcast.mixing.expert_rule import ExpertRule, Field
from nashcast.mixing.mixture_weights import shifts_to_weights, solve

DISCOUNTS = (0.9, 0.98, 0.998)
RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


class WindowedWeights(ExpertRule):
    r"""Signed weights that sum to the budget.

    budget: $\eta$.   discounts: $0 < \lambda \le 1$ to choose from, the weight of a step relative to the next one.
    ridges: $\kappa$ to choose from, in units of the experts' summed squared deviations over the window, so that neither
    their units nor the window's length change the shrinkage. To each is added the mean of a step, as if equal weights
    had been right once, so that the first steps change little. Equal weights (κ → ∞) are always among the choices.

    >>> rule = WindowedWeights(2)
    >>> for target in range(100):
    ...     rule.learn([[target + 1.0], [target - 3.0]], [target])
    >>> rule.weights().round(1)
    array([0.7, 0.3])
    """

    name = "windowed"

    def __init__(
        self,
        experts: int,
        y_dim: int = 1,
        *,
        budget: float = 1.0,
        discounts: Sequence[float] = DISCOUNTS,
        ridges: Sequence[float] = RIDGES,
    ):
        super().__init__(experts, y_dim)
        self._budget = check.number("budget", budget)
        self._discounts = np.array([check.number("discounts", one, above=0.0, max=1.0) for one in discounts])
        self._ridges = np.array([check.number("ridges", one, above=0.0) for one in ridges])
        for name, some in (("discounts", self._discounts), ("ridges", self._ridges)):
            if not len(some):
                raise InvalidInput(name, "none", "Pass at least one.")
        D, N = len(self._discounts), self.experts
        # In units of B² (see `row_memory`).
        self._grams, self._crosses = np.zeros((D, N, N)), np.zeros((D, N))
        self._unit = np.zeros(1)  # B²
        self._lengths = np.zeros(D)  # Σ λ^age over the steps so far
        self._choice = BOA(D * len(self._ridges) + 1, self.y_dim)

    def _fields(self) -> dict[str, Field]:
        own = {
            "grams": Field(self._grams, signed=True, matrix=True),
            "crosses": Field(self._crosses, signed=True),
            "unit": Field(self._unit),
            "lengths": Field(self._lengths),
        }
        choice = {f"choice.{name}": field for name, field in self._choice._fields().items()}
        return {**own, **choice, **super()._fields()}

    def candidates(self, awake: np.ndarray) -> np.ndarray:
        """The weights of every choice, (choices, experts), 0 for sleeping experts; the last choice is equal weights."""
        D, R, N = len(self._discounts), len(self._ridges), self.experts
        spread = np.einsum("dii->d", self._grams) / N
        shifts = np.zeros((D * R + 1, N))
        if (spread > 0.0).all():
            kappa = (self._ridges + 1.0 / np.maximum(self._lengths, 1.0)[:, None]) * spread[:, None]
            systems = self._grams[:, None] + kappa[:, :, None, None] * np.eye(N)
            shifts[:-1] = solve(systems, np.repeat(self._crosses[:, None], R, axis=1)).reshape(D * R, N)
        return shifts_to_weights(shifts, awake, self._budget)

    def _weights(self, awake: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        return self._choice.weights() @ self.candidates(awake)

    def _learn(self, errors: Errors, awake: np.ndarray, forecasts: np.ndarray, target: np.ndarray) -> None:
        self._choice.learn(self.candidates(awake)[:, awake] @ forecasts[awake], target)
        row = take_row(self._unit, errors, awake, target, self._budget)
        self._lengths *= self._discounts
        self._lengths += 1.0
        if row is None:
            return
        fading, Z = self._discounts[:, None] * row.before, row.apart
        self._grams *= fading[:, :, None]
        self._grams += Z @ Z.T
        self._crosses *= fading
        self._crosses += Z @ row.missed
