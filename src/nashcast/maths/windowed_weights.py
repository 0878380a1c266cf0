r"""The paper's weights (Theorem 1) over a discounted window, its discount and κ chosen online.

Every pair of a discount and a ridge gives weights of its own in closed form; BOA mixes those by how their forecasts
did. So the regret against the best pair is BOA's against the best of so many experts; the weights stay signed, sum η.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from nashcast.errors import InvalidInput
from nashcast.games.lookback.compiled import cholesky as positive
from nashcast import validation as check
from nashcast.maths.boa import BOA
from nashcast.maths.deviations import deviations, to_weights
from nashcast.maths.expert_rule import ExpertRule

DISCOUNTS = (0.9, 0.98, 0.998)
RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


class WindowedWeights(ExpertRule):
    r"""Signed weights that sum to the budget.

    budget: $\eta$.   discounts: $0 < \lambda \le 1$ to choose from, the weight of a step relative to the next one.
    ridges: $\kappa$ to choose from, in units of the experts' summed squared deviations over the window, so that neither
    their units nor the window's length set how much it shrinks. To each is added the mean of a step, as if equal
    weights had been right once: a few steps teach little. Equal weights (κ → ∞) are always among the choices.
    """

    name = "windowed"
    _state = ("grams", "crosses", "lengths")

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
        self._grams, self._crosses = np.zeros((D, N, N)), np.zeros((D, N))
        self._lengths = np.zeros(D)  # Σ λ^age over the steps so far
        self._choice = BOA(D * len(self._ridges) + 1, self.y_dim)

    def save(self) -> dict[str, np.ndarray]:
        return {**super().save(), **{f"choice.{name}": value for name, value in self._choice.save().items()}}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        super().restore(saved)
        inner = {name.removeprefix("choice."): value for name, value in saved.items() if name.startswith("choice.")}
        self._choice.restore(inner)

    def candidates(self, here: np.ndarray) -> np.ndarray:
        """The weights of those awake by every choice, (choices, awake); the last are equal."""
        shifts = np.zeros((len(self._discounts) * len(self._ridges) + 1, self.experts))
        _fill_shifts(self._grams, self._crosses, self._lengths, self._ridges, shifts)
        return to_weights(shifts, here, self._budget)

    def _weights(self, here: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        return self._choice.weights() @ self.candidates(here)

    def _learn(self, forecasts: np.ndarray, target: np.ndarray, here: np.ndarray) -> None:
        self._choice.learn(self.candidates(here) @ forecasts[here], target)
        apart, missed = deviations(forecasts, target, here, self._budget)
        fading = self._discounts[:, None]
        self._grams = fading[:, :, None] * self._grams + apart @ apart.T
        self._crosses = fading * self._crosses + apart @ missed
        self._lengths = self._discounts * self._lengths + 1.0


@njit(cache=True, nogil=True)
def _fill_shifts(grams, crosses, lengths, ridges, shifts):
    """(G + κI)⁻¹ c for every discount and ridge; where experts never differed, 0."""
    N = grams.shape[1]
    system = np.empty((N, N))
    row = 0
    for g in range(len(grams)):
        unit = 0.0
        for i in range(N):
            unit += grams[g, i, i]
        unit /= N
        for ridge in ridges:
            if unit > 0.0:
                system[:] = grams[g]
                for i in range(N):
                    system[i, i] += (ridge + 1.0 / lengths[g]) * unit
                if positive.factor(system, N):
                    shifts[row] = crosses[g]
                    positive.solve(system, shifts[row], N)
            row += 1
