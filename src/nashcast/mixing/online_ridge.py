r"""The forward algorithm of Vovk, Azoury and Warmuth: ridge regression on the experts, the present ones included.

With Z the experts' deviations from their mean (experts × y_dim) and e the error of the mean, weights are 1/N + v,

    v = (λI + Σ_{s ≤ t} Z_s Z_sᵀ)⁻¹ Σ_{s < t} Z_s e_s.

The matrix includes the present Z_t, so a forecast unlike any before gets little weight. For every u that sums to 1,

    Σ ‖ŷ - y‖²  ≤  Σ ‖Σ_k u_k f_k - y‖² + λ ‖u - 1/N‖² + max ‖e‖² · Σ_t ln(det(λ_t I + G_t) / det(λ_t I + G_{t-1}))

with G_t = Σ_{s ≤ t} Z_s Z_sᵀ. λ is in units of the largest mean squared deviation so far, the present one included: it
may grow, since a larger λ only raises the penalty of every u, and with a constant λ the sum is ln det(I + G/λ).
Rows with outliers are bounded (see `row_memory`).
"""

from __future__ import annotations

import numpy as np

from nashcast import validation as check
from nashcast.mixing.errors.error_scale import Errors
from nashcast.mixing.errors.row_memory import take_row
from nashcast.mixing.expert_rule import ExpertRule, Field
from nashcast.mixing.mixture_weights import deviations, shifts_to_weights, solve

# Present forecasts this many usual errors from their median are clipped: beyond it the matrix loses digits.
_FURTHEST = 1e3


class OnlineRidge(ExpertRule):
    r"""Signed weights that sum to 1 and approach the best fixed ones.

    ridge: $\lambda$ in units of the experts' largest mean squared deviation so far.

    >>> rule = OnlineRidge(2)
    >>> for target in range(100):
    ...     rule.learn([[target + 1.0], [target - 3.0]], [target])
    >>> rule.weights().round(2)
    array([0.75, 0.25])
    """

    name = "ridge"

    def __init__(self, experts: int, y_dim: int = 1, *, ridge: float = 1.0):
        super().__init__(experts, y_dim)
        self._ridge = check.number("ridge", ridge, above=0.0)
        # In units of B² (see `row_memory`).
        self._gram, self._cross = np.zeros((self.experts, self.experts)), np.zeros(self.experts)
        self._unit = np.zeros(1)  # B²
        self._spread = np.zeros(1)  # the largest mean squared deviation

    def _fields(self) -> dict[str, Field]:
        own = {"gram": Field(self._gram, signed=True, matrix=True), "cross": Field(self._cross, signed=True)}
        return {**own, "unit": Field(self._unit), "spread": Field(self._spread), **super()._fields()}

    def _weights(self, awake: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        if not self._cross.any() or self._unit[0] == 0.0:
            return np.where(awake, 1.0 / awake.sum(), 0.0)
        system, spread = self._gram.copy(), float(self._spread[0])
        if forecasts is not None:
            middle = np.median(forecasts[awake], axis=0)
            furthest = _FURTHEST * np.sqrt(self._scale.squares)
            present = np.where(awake[:, None], np.clip(forecasts, middle - furthest, middle + furthest), 0.0)
            Z = deviations((present - middle).T, awake) / np.sqrt(self._unit[0])
            system += Z @ Z.T
            spread = max(spread, self._size(Z))
        system[np.diag_indices(self.experts)] += self._ridge * spread
        return shifts_to_weights(solve(system, self._cross), awake, 1.0)

    def _learn(self, errors: Errors, awake: np.ndarray, forecasts: np.ndarray, target: np.ndarray) -> None:
        row = take_row(self._unit, errors, awake, target, 1.0)
        if row is None:
            return
        G, c, Z = self._gram, self._cross, row.apart
        G *= row.before
        G += Z @ Z.T
        c *= row.before
        c += Z @ row.missed
        self._spread[0] = max(self._spread[0] * row.before, self._size(Z))

    def _size(self, apart: np.ndarray) -> float:
        return float((apart**2).sum() / self.experts)
