r"""Bernstein online aggregation (Wintenberger): exponential weights, a second-order term, a rate for each expert.

With gains $|r_k| \le B$ (see `LinearisedRule`), $V_k = \sum r_k^2$ and $\eta_k = (V_k/\ln N + 4B^2)^{-1/2}$,

    weights ∝ η_k exp(η_k Σ_t (r_k - η_k r_k²)).

$\exp(x - x^2) \le 1 + x$ for $x \ge -1/2$ and $\sum_k p_k r_k = 0$ keep the sum of the exponentials from growing; a
rate that falls by the factor a adds at most 1 - a to their mean. So, with B the largest |r| of all and c the largest
ratio of an expert's first rate to its last,

    regret against expert k  ≤  B + 2 √(V_k ln N) + (√(V_k/ln N) + 2B) (ln N + ln(1 + ln c)).

V_k is small where expert k is good for many steps: then the regret is bounded by a constant times B ln N.
"""

from __future__ import annotations

from math import log

import numpy as np

from nashcast.maths.expert_rule import LinearisedRule


class BOA(LinearisedRule):
    """Convex weights; quick to tell close experts apart."""

    name = "boa"
    _state = ("bound", "total", "squares")

    def __init__(self, experts: int, y_dim: int = 1, *, bound: float | None = None):
        super().__init__(experts, y_dim, bound=bound)
        self._total, self._squares = np.zeros(self.experts), np.zeros(self.experts)
        self._log = log(max(self.experts, 2))

    def _rates(self, bound: float) -> np.ndarray:
        return 1.0 / np.sqrt(self._squares / self._log + 4.0 * bound**2)

    def _weights(self, here: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        if self._bound == 0.0:
            return np.full(int(here.sum()), 1.0 / here.sum())
        rates = self._rates(self._bound)[here]
        powers = rates * self._total[here]
        weights = rates / rates.max() * np.exp(powers - powers.max())
        return weights / weights.sum()

    def _gain(self, gains: np.ndarray, bound: float) -> None:
        # The rates in force while this step was forecast: before its gains.
        self._total += gains - self._rates(bound) * gains**2
        self._squares += gains**2
