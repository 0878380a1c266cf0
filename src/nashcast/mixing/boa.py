r"""Bernstein online aggregation (Wintenberger): exponential weights, a second-order term, a rate for each expert.

With gains $|r_k| \le B$ (see `linearised`), $V_k = \sum r_k^2$, prior weights $\pi$, $\ell_k = \ln(1/\pi_k)$ and
$\eta_k = (V_k/\ell_k + 4B^2)^{-1/2}$,

    weights ∝ π_k η_k exp(η_k Σ_t (r_k - η_k r_k²)).

$\exp(x - x^2) \le 1 + x$ for $x \ge -1/2$ and $\sum_k p_k r_k = 0$ keep the sum of the exponentials from growing; a
rate that falls by the factor a adds at most 1 - a to their mean. So, with B the largest |r| of all, c the largest
ratio of an expert's first rate to its last, and equal priors ($\ell_k = \ln N$),

    regret against expert k  ≤  B + 2 √(V_k ln N) + (√(V_k/ln N) + 2B) (ln N + ln(1 + ln c)).

V_k is small where expert k is good for many steps: then the regret is bounded by a constant times B ln N.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np

from nashcast.mixing.errors import linearised
from nashcast.mixing.errors.error_scale import Errors
from nashcast.mixing.errors.linearised import StepScale
from nashcast.mixing.expert_rule import Field, LinearisedRule

LEAST_ODDS = log(2.0)  # ln(1/π) of an expert whose prior weight is nearly 1


class BOAState(NamedTuple):
    """Sums over the steps so far, in units of B, and the prior."""

    total: np.ndarray  # Σ (r - η r²) / B, (columns, experts)
    squares: np.ndarray  # V / B², (columns, experts)
    bound: np.ndarray  # B, (columns,)
    log_prior: np.ndarray  # ln π, (experts,)
    odds: np.ndarray  # ln(1/π), at least LEAST_ODDS, (experts,)


def init(columns: int, experts: int, *, prior: np.ndarray | None = None, bound: float = 0.0) -> BOAState:
    """The state before any step.   prior: positive, (experts,), equal if left out.   bound: B, if it is known."""
    pi = np.ones(experts) if prior is None else prior
    log_prior = np.log(pi / pi.sum())
    shape = (columns, experts)
    return BOAState(
        np.zeros(shape), np.zeros(shape), np.full(columns, bound), log_prior, np.maximum(-log_prior, LEAST_ODDS)
    )


def weights(state: BOAState, awake: np.ndarray | None = None) -> np.ndarray:
    """(columns, experts), 0 where asleep.   awake: bool, (columns, experts) or (experts,)."""
    rates = _rates(state)
    logs = state.log_prior + np.log(rates) + rates * state.total
    return softmax(logs, awake)


def learn(state: BOAState, errors: Errors, weights: np.ndarray) -> BOAState:
    """One step, in place.   weights: those the step was forecast with, (columns, experts)."""
    gains = linearised.linear_gains(errors, weights)
    return learn_gains(state, gains, linearised.step_scale(errors))


def learn_gains(state: BOAState, gains: np.ndarray, scale: StepScale) -> BOAState:
    """The same from gains, (columns, experts)."""
    # The rates used when this step was forecast, before its gains.
    rates = _rates(state)
    factor, growth = linearised.normalise(state.bound, np.abs(gains).max(axis=1), scale)
    r = gains * factor[:, None]
    total, squares = state.total, state.squares
    total += r - rates * r * r
    squares += r * r
    if growth is not None:
        total /= growth[:, None]
        squares /= growth[:, None]
        squares /= growth[:, None]
    return state


def _rates(state: BOAState) -> np.ndarray:
    """η B."""
    return 1.0 / np.sqrt(state.squares / state.odds + 4.0)


def softmax(logs: np.ndarray, awake: np.ndarray | None) -> np.ndarray:
    """Normalised exponentials along the last axis, 0 where asleep; all 0 where every expert is."""
    if awake is not None:
        logs = np.where(awake, logs, -np.inf)
    best = np.maximum.reduce(logs, axis=-1, keepdims=True)
    if awake is not None:
        best = np.maximum(best, -1e300)  # a column in which every expert sleeps
    w = np.exp(logs - best)
    total = np.add.reduce(w, axis=-1, keepdims=True)
    if awake is not None:
        total[total == 0.0] = 1.0
    w /= total
    return w


class BOA(LinearisedRule):
    """Convex weights; fast to distinguish close experts.

    >>> rule = BOA(2)
    >>> for target in range(100):
    ...     rule.learn([[target + 1.0], [target]], [target])
    >>> bool(rule.weights()[1] > 0.99)
    True
    """

    name = "boa"

    def __init__(self, experts: int, y_dim: int = 1, *, bound: float | None = None):
        super().__init__(experts, y_dim, bound=bound)
        self._state = init(1, self.experts, bound=self._given_bound)

    def _fields(self) -> dict[str, Field]:
        state = self._state
        return {
            "bound": Field(state.bound),
            "total": Field(state.total, signed=True),
            "squares": Field(state.squares),
            **super()._fields(),
        }

    def _weights(self, awake: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        return weights(self._state, awake)[0]

    def _learn_gains(self, gains: np.ndarray, scale: StepScale) -> None:
        learn_gains(self._state, gains, scale)
