r"""The forward algorithm of Vovk, Azoury and Warmuth: ridge regression on the experts, the present ones included.

With Z the experts' deviations from their mean (experts × y_dim) and e what the mean missed, weights are 1/N + v,

    v = (λI + Σ_{s ≤ t} Z_s Z_sᵀ)⁻¹ Σ_{s < t} Z_s e_s.

The present Z_t stands in the matrix, so a forecast unlike any before is met with caution. For every u that sums to 1,

    Σ ‖ŷ - y‖²  ≤  Σ ‖Σ_k u_k f_k - y‖² + λ ‖u - 1/N‖² + max ‖e‖² · Σ_t ln(det(λ_t I + G_t) / det(λ_t I + G_{t-1}))

with G_t = Σ_{s ≤ t} Z_s Z_sᵀ. λ is in units of the largest mean squared deviation so far, the present one included: it
may grow, since a larger λ only raises what every u is charged, and with a λ that stays the sum is ln det(I + G/λ).
"""

from __future__ import annotations

import numpy as np

from nashcast import validation as check
from nashcast.maths.deviations import deviations, to_weights
from nashcast.maths.expert_rule import ExpertRule


class OnlineRidge(ExpertRule):
    r"""Signed weights that sum to 1 and approach the best fixed ones.

    ridge: $\lambda$ in units of the experts' largest mean squared deviation so far.
    """

    name = "ridge"
    _state = ("gram", "cross", "unit")

    def __init__(self, experts: int, y_dim: int = 1, *, ridge: float = 1.0):
        super().__init__(experts, y_dim)
        self._ridge = check.number("ridge", ridge, above=0.0)
        self._gram, self._cross = np.zeros((self.experts, self.experts)), np.zeros(self.experts)
        self._unit = 0.0

    def _weights(self, here: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        if not self._cross.any():
            return np.full(int(here.sum()), 1.0 / here.sum())
        system, unit = self._gram.copy(), self._unit
        if forecasts is not None:
            apart, _ = deviations(forecasts, None, here, 1.0)
            system += apart @ apart.T
            unit = max(unit, self._size(apart))
        system[np.diag_indices(self.experts)] += self._ridge * unit
        return to_weights(np.linalg.solve(system, self._cross), here, 1.0)

    def _learn(self, forecasts: np.ndarray, target: np.ndarray, here: np.ndarray) -> None:
        apart, missed = deviations(forecasts, target, here, 1.0)
        self._unit = max(self._unit, self._size(apart))
        self._gram += apart @ apart.T
        self._cross += apart @ missed

    def _size(self, apart: np.ndarray) -> float:
        return float((apart**2).sum() / self.experts)
