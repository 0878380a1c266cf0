r"""ML-Poly (Gaillard, Stoltz and van Erven): polynomial weights with a rate for each expert, nothing to tune.

With gains $|r_k| \le B$ (see `LinearisedRule`), $R_k = \sum r_k$, $V_k = \sum r_k^2$,

    weights ∝ η_k max(R_k, 0),    η_k = 1 / (B² + V_k).

$\sum_k \eta_k \max(R_k, 0)^2$ grows by at most $\sum_k \eta_k r_k^2$ a step, since $\sum_k p_k r_k = 0$. As published,
with B known: regret against expert k ≤ √(N (1 + ln(1 + T)) (B² + V_k)). With B learnt from its first value b on and
D_k = B² + V_k:

    regret against expert k  ≤  B + √(D_k · Σ_j log₂(D_j / b²)).
"""

from __future__ import annotations

import numpy as np

from nashcast.maths.expert_rule import LinearisedRule


class MLPoly(LinearisedRule):
    """Convex weights, exactly 0 for experts that did worse than the mixture: sparse, and quick to drop the bad."""

    name = "ml-poly"
    _state = ("bound", "total", "squares")

    def __init__(self, experts: int, y_dim: int = 1, *, bound: float | None = None):
        super().__init__(experts, y_dim, bound=bound)
        self._total, self._squares = np.zeros(self.experts), np.zeros(self.experts)

    def _weights(self, here: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        regrets = np.maximum(self._total[here], 0.0)
        if not regrets.any():
            return np.full(int(here.sum()), 1.0 / here.sum())
        # In units of B: its square may be too small or too large for a number where it is not.
        weights = regrets / self._bound / (1.0 + self._squares[here] / self._bound**2)
        return weights / weights.sum()

    def _gain(self, gains: np.ndarray, bound: float) -> None:
        self._total += gains
        self._squares += gains**2
