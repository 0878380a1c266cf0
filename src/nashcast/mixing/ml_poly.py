r"""ML-Poly (Gaillard, Stoltz and van Erven): polynomial weights with a rate for each expert, nothing to tune.

With gains $|r_k| \le B$ (see `linearised`), $R_k = \sum r_k$, $V_k = \sum r_k^2$ and prior weights $\pi$,

    weights ∝ π_k η_k max(R_k, 0),    η_k = 1 / (B² + V_k).

$\sum_k \eta_k \max(R_k, 0)^2$ grows by at most $\sum_k \eta_k r_k^2$ a step, since $\sum_k p_k r_k = 0$. As published,
with B known and π equal: regret against expert k ≤ √(N (1 + ln(1 + T)) (B² + V_k)). With B learnt from its first value
b on and D_k = B² + V_k:

    regret against expert k  ≤  B + √(D_k · Σ_j log₂(D_j / b²)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.mixing.errors import linearised
from nashcast.mixing.errors.error_scale import Errors
from nashcast.mixing.errors.linearised import StepScale
from nashcast.mixing.expert_rule import Field, LinearisedRule


class MLPolyState(NamedTuple):
    """Sums over the steps so far, in units of B. Further leading axes are several rules."""

    regret: np.ndarray  # R / B, (columns, experts)
    squares: np.ndarray  # V / B², (columns, experts)
    bound: np.ndarray  # B, (columns,)


def init(columns: int, experts: int, *, bound: float = 0.0, rules: tuple[int, ...] = ()) -> MLPolyState:
    """The state before any step.   bound: B, if it is known.   rules: lengths of further axes."""
    shape = (*rules, columns)
    return MLPolyState(np.zeros((*shape, experts)), np.zeros((*shape, experts)), np.full(shape, bound))


def weights(state: MLPolyState, awake: np.ndarray | None = None, prior: np.ndarray | None = None) -> np.ndarray:
    """(columns, experts), 0 where asleep: the prior ones until an awake expert has gained on the mixture.

    awake: bool, (columns, experts) or (experts,).   prior: not negative, (experts,); equal if left out.
    """
    p = np.maximum(state.regret, 0.0)
    p /= 1.0 + state.squares
    if prior is not None:
        p *= prior
    if awake is not None:
        p *= awake
    total = np.add.reduce(p, axis=-1)
    if np.count_nonzero(total) < total.size:
        undecided = total == 0.0
        start = np.ones_like(p) if prior is None else np.broadcast_to(prior, p.shape)
        start = start if awake is None else start * awake
        p[undecided] = start[undecided]
        total = p.sum(axis=-1)
        total[total == 0.0] = 1.0  # no expert is awake
    p /= total[..., None]
    return p


def learn(state: MLPolyState, errors: Errors, weights: np.ndarray) -> MLPolyState:
    """One step, in place.   weights: those the step was forecast with, (columns, experts)."""
    gains = linearised.linear_gains(errors, weights)
    return learn_gains(state, gains, linearised.step_scale(errors))


def learn_gains(state: MLPolyState, gains: np.ndarray, scale: StepScale) -> MLPolyState:
    """The same from gains, (columns, experts)."""
    R, V, B = state
    factor, growth = linearised.normalise(B, np.maximum.reduce(np.abs(gains), axis=-1), scale)
    r = gains * factor[..., None]
    R += r
    V += r * r
    if growth is not None:
        R /= growth[..., None]
        V /= growth[..., None]
        V /= growth[..., None]
    return state


class MLPoly(LinearisedRule):
    """Convex weights, exactly 0 for experts worse than the mixture: sparse, and fast to drop bad experts.

    >>> rule = MLPoly(2)
    >>> for target in (1.0, 3.0, 2.0):
    ...     rule.learn([[target + 1.0], [target]], [target])
    >>> rule.weights()
    array([0., 1.])
    """

    name = "ml-poly"

    def __init__(self, experts: int, y_dim: int = 1, *, bound: float | None = None):
        super().__init__(experts, y_dim, bound=bound)
        self._state = init(1, self.experts, bound=self._given_bound)

    def _fields(self) -> dict[str, Field]:
        R, V, B = self._state
        return {"bound": Field(B), "regret": Field(R, signed=True), "squares": Field(V), **super()._fields()}

    def _weights(self, awake: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        return weights(self._state, awake)[0]

    def _learn_gains(self, gains: np.ndarray, scale: StepScale) -> None:
        learn_gains(self._state, gains, scale)
