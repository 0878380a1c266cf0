r"""Gains of experts on the mixture, in units of the largest so far. BOA and ML-Poly learn from them.

Expert k gains $r_k = 2(\hat y - y)(\hat y - f_k) = 2 \bar e (\bar e - e_k)$ with $\bar e = \sum_k p_k e_k$. The squared
error is convex, so $\sum_t r_{k,t}$ bounds the regret against expert k, and means of them that against mixtures.

B is the largest |r| so far. A step that exceeds all before it is shrunk to them: over all steps that costs at most
the largest |r| once, and the result does not depend on units. All sums are in units of B. B never exceeds `MOST` s²
(see `error_scale`), and a step that exceeds it or has an outlier does not raise B: it counts as a step of size B. Where
s falls, B falls with it: that shrinks all steps before by the same factor and leaves the weights as they are, so that
later steps count again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.mixing.errors.error_scale import LIMIT, Errors

MOST = LIMIT**2
LEAST = 1e-300  # a smaller B has no inverse
# B does not begin with gains below this share of s²: they are the rounding of experts with equal forecasts.
_ROUNDING = 1e-10


class StepScale(NamedTuple):
    """The bounds of one step, each (columns,)."""

    usual: np.ndarray  # s²
    most: np.ndarray  # upper limit of B after the step
    outlying: np.ndarray  # whether the step has an outlier


def linear_gains(errors: Errors, weights: np.ndarray) -> np.ndarray:
    """(columns, experts): r, 0 for sleeping experts; their weight is shared by the others."""
    e = errors.values
    mean = mixture_error(errors, weights)[:, None]
    gains = (2.0 * mean) * (mean - e)
    return gains if errors.complete else np.where(errors.awake, gains, 0.0)


def mixture_error(errors: Errors, weights: np.ndarray) -> np.ndarray:
    """(columns,): the bounded error of the awake experts' mixture; (…, columns) for weights of several rules."""
    e = errors.values
    if errors.complete:
        return np.vecdot(weights, e)
    p = weights * errors.awake
    total = p.sum(axis=-1)
    return np.divide(np.vecdot(p, e), total, out=np.zeros_like(total), where=total > 0.0)


def step_scale(errors: Errors, given: float = 0.0, *, jointly: bool = False) -> StepScale:
    """jointly: one set of weights for all columns.   given: a bound that B does not fall below."""
    usual, revised, outlying = errors.usual, errors.revised, errors.outlying
    if jointly:
        usual, revised, outlying = usual.sum(keepdims=True), revised.max(keepdims=True), outlying.max(keepdims=True)
    most = MOST * usual
    if np.count_nonzero(revised):
        most = np.where(revised, usual, most)
    if given:
        usual, most = np.maximum(usual, given), np.maximum(most, given)
    return StepScale(usual, most, outlying)


def normalise(bound: np.ndarray, sizes: np.ndarray, scale: StepScale) -> tuple[np.ndarray, np.ndarray | None]:
    """Scale a step with these largest sizes, (…, columns); updates `bound`, B, in place.

    Returns the factor that puts the step in units of the B before it, 0 for the first step, and the growth of B, None
    if it has not grown in any column: sums in units of the old B must be divided by it.
    """
    if np.count_nonzero((sizes <= bound) & (bound > LEAST)) == bound.size:  # most steps; the same as below
        factor = 1.0 / bound
        np.minimum(bound, scale.most, out=bound)
        return factor, None
    begun = bound > LEAST
    sizes = np.where(begun | (sizes > _ROUNDING * scale.usual), sizes, 0.0)
    largest = np.maximum(bound, sizes)
    factor = 1.0 / largest if begun.all() else np.divide(1.0, largest, out=np.zeros_like(largest), where=begun)
    outlying = scale.outlying | (sizes > scale.most)
    if outlying.any():
        largest = np.where(outlying, np.where(begun, bound, np.minimum(largest, scale.usual)), largest)
    np.minimum(largest, scale.most, out=largest)
    grown = begun & (largest > bound)
    growth = None
    if grown.any():
        with np.errstate(over="ignore"):
            growth = np.divide(largest, bound, out=np.ones_like(bound), where=grown)
    bound[:] = largest
    return factor, growth
