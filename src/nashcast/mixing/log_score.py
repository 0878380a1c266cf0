r"""Weights by log score: the likelihood of the targets under each expert, with its own error scale and fading memory.

Expert k forecasts f_k with a leverage h_k ≥ 0, the distance of the step from the data it has learnt from (0 if
unknown): its forecast is taken as Student-t around f_k with variance v_k q_k, q_k = 1 + h_k, where v_k is the fading
mean of its past e²/q. Its score is the fading sum of the log likelihoods, so an expert that is nearly exact gains
without bound on one that is merely good, in any units. No score falls more than CAP behind the best, so that an expert
that was wrong for long regains weight within a few steps of a change. The weights are ∝ prior · exp(score) ·
(v q)^-PRECISION.

Memory lengthens with the stream, since experts learn fastest at its beginning: at step t no past step weighs more than
with a memory of t / GROWTH steps.

Forecasts h steps ahead overlap: h labels in a row carry about as much information as one. With the horizon h given, a
log likelihood counts 1/h, memories are h times as long, and the exponent of (v q) is PRECISION / h.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.mixing.boa import softmax
from nashcast.mixing.errors import error_scale
from nashcast.mixing.errors.error_scale import Errors
from nashcast.mixing.errors.linearised import mixture_error
from nashcast.mixing.expert_rule import ExpertRule, Field

FREEDOM = 5.0  # degrees of freedom: one large error costs a bounded number of good ones
CAP = 13.0  # e^-13: the smallest weight, as a fraction of the largest
PRECISION = 2.5
GROWTH = 4.0
# Errors this small, as a fraction of the largest, are rounding.
_ROUNDING = 1e-20
_LEAST = 1e-300
_MOST = error_scale.CLIP**2


class LogScoreState(NamedTuple):
    """Fading sums over the steps so far. Further leading axes are several rules with the same experts."""

    score: np.ndarray  # log likelihoods, 0 for the best, (columns, experts)
    squares: np.ndarray  # e²/q, (columns, experts)
    counts: np.ndarray  # ones, with the fading of the squares, (columns,)
    steps: np.ndarray  # labels so far, (columns,)
    log_variance: np.ndarray  # log v, 0 before the first label, (columns, experts)


class Pace(NamedTuple):
    """How fast a rule forgets, and the factor of a log likelihood.

    memory, scale_memory: in (0, 1], one number or (columns,): the weight of a step relative to the next one, for the
    scores and the squared errors.   first: young rules forget as if this were GROWTH.   share: the factor, (…, 1).
    """

    memory: float | np.ndarray
    scale_memory: float | np.ndarray
    first: float | np.ndarray
    share: float | np.ndarray


def pace(memory: float | np.ndarray, scale_memory: float | np.ndarray, horizons: np.ndarray | None = None) -> Pace:
    """memory, scale_memory: at horizon 1.   horizons: steps ahead of each column, (columns,); 1 if left out."""
    if horizons is None:
        return Pace(memory, scale_memory, GROWTH, 1.0)
    return Pace(
        memory ** (1.0 / horizons), scale_memory ** (1.0 / horizons), GROWTH * horizons, 1.0 / horizons[:, None]
    )


def init(columns: int, experts: int, *, rules: tuple[int, ...] = ()) -> LogScoreState:
    """The state before any step. rules: lengths of further axes; the functions below apply to all of them."""
    shape = (*rules, columns)
    each = np.zeros((*shape, experts))
    return LogScoreState(each, each.copy(), np.zeros(shape), np.zeros(shape, dtype=np.int64), each.copy())


def weights(
    state: LogScoreState,
    log_prior: np.ndarray,
    awake: np.ndarray | None = None,
    leverage: np.ndarray | None = None,
    precision: float | np.ndarray = PRECISION,
) -> np.ndarray:
    """(columns, experts), 0 where asleep.

    log_prior: (experts,).   awake: bool, (columns, experts) or (experts,).   leverage: h, the same shapes, 0 if left
    out.   precision: the exponent of (v q), one number or (columns, 1); 0 leaves it out.
    """
    logs = log_weights(state, log_prior, precision)
    if leverage is not None:
        logs_q = precision * np.log1p(leverage)
        # Before the first label every expert has the same variance.
        logs -= logs_q if state.counts.all() else logs_q * (state.counts > 0.0)[..., None]
    return softmax(logs, awake)


def log_weights(state: LogScoreState, log_prior: np.ndarray, precision: float | np.ndarray) -> np.ndarray:
    """Logarithms of the weights at leverage 0, up to a constant for each column."""
    logs = state.score + log_prior
    if not (isinstance(precision, float) and precision == 0.0):
        logs -= precision * state.log_variance
    return logs


def learn(
    state: LogScoreState,
    errors: Errors,
    weights: np.ndarray,
    *,
    memory: float | np.ndarray,
    scale_memory: float | np.ndarray,
    leverage: np.ndarray | None = None,
    horizons: np.ndarray | None = None,
) -> LogScoreState:
    """One step, in place; columns without a label learn nothing. A sleeping expert counts as the mixture.

    weights: those the step was forecast with, (columns, experts).
    memory, scale_memory: in (0, 1], one number or (columns,): the weight of a step relative to the next one, for the
    scores and the squared errors, at horizon 1.   leverage: h ≥ 0, (columns, experts) or (experts,).
    horizons: how many steps ahead each column forecasts, (columns,); 1 if left out.
    """
    return learn_at(state, errors, weights, pace(memory, scale_memory, horizons), leverage)


def learn_at(
    state: LogScoreState, errors: Errors, weights: np.ndarray, pace: Pace, leverage: np.ndarray | None = None
) -> LogScoreState:
    """The same at a given pace."""
    e, awake = errors.values, errors.awake
    q = None if leverage is None else 1.0 + leverage
    labelled: np.ndarray | None = None
    if not errors.complete:
        labelled = np.asarray(awake.any(axis=-1))
        e = np.where(awake, e, mixture_error(errors, weights)[..., None])
        q = None if q is None else np.where(awake, q, 1.0)
    young = GROWTH / (pace.first + state.steps)
    fading, scale_fading = np.minimum(pace.memory, 1.0 - young / 5.0), np.minimum(pace.scale_memory, 1.0 - young)
    complete = labelled is None or bool(labelled.all())
    score, squares, count, _, log_variance = state if complete else [part.copy() for part in state]
    count *= scale_fading
    count += 1.0
    e2 = e * e
    if q is not None:
        e2 /= q
    squares *= scale_fading[..., None]
    squares += e2
    # An expert's variance exceeds that of the largest bounded error only where the usual error has fallen.
    np.minimum(squares, (_MOST * errors.usual * count)[..., None], out=squares)
    variance = np.maximum(squares, _floor(squares))
    variance /= count[..., None]
    np.log(variance, out=log_variance)
    # Subtract half of log(v q) + (FREEDOM + 1) log(1 + e² / (FREEDOM v q)), times the pace's share.
    variance *= FREEDOM
    surprise = np.log1p(np.divide(e2, variance, out=variance), out=variance)
    surprise *= FREEDOM + 1.0
    surprise += log_variance
    if q is not None:
        surprise += np.log(q)
    surprise *= 0.5 * pace.share
    score *= fading[..., None]
    score -= surprise
    score -= np.maximum.reduce(score, axis=-1, keepdims=True)
    np.maximum(score, -CAP, out=score)
    if complete:
        state.steps[:] += 1
    else:  # columns without a label do not change
        assert labelled is not None
        for old, new in ((state.score, score), (state.squares, squares), (state.log_variance, log_variance)):
            np.copyto(old, new, where=labelled[..., None])
        np.copyto(state.counts, count, where=labelled)
        state.steps[:] += labelled
    return state


def _floor(squares: np.ndarray) -> np.ndarray:
    return np.maximum(_ROUNDING * np.maximum.reduce(squares, axis=-1, keepdims=True), _LEAST)


class LogScore(ExpertRule):
    """Convex weights. Each target is scored alone, and the weights of several are averaged.

    memory, scale_memory: the weight of a step relative to the next one, for the scores and the errors' scales.
    prior: the experts' weights before anything is learnt; equal if left out.

    >>> rule = LogScore(2, prior=np.array([3.0, 1.0]))
    >>> rule.weights()
    array([0.75, 0.25])
    """

    name = "log-score"

    def __init__(
        self,
        experts: int,
        y_dim: int = 1,
        *,
        memory: float = 0.99,
        scale_memory: float = 0.95,
        prior: np.ndarray | None = None,
    ):
        super().__init__(experts, y_dim)
        self._memory = check.number("memory", memory, above=0.0, max=1.0)
        self._scale_memory = check.number("scale_memory", scale_memory, above=0.0, max=1.0)
        given = np.full(self.experts, 1.0 / self.experts) if prior is None else prior
        given = check.array("prior", given, (self.experts,), "(experts,)")
        check.in_range("prior", given, above=0.0)
        self._log_prior = np.log(given / given.sum())
        self._state = init(self.y_dim, self.experts)

    def _fields(self) -> dict[str, Field]:
        score, squares, count, steps, log_variance = self._state
        own = {"score": Field(score, signed=True), "squares": Field(squares), "count": Field(count)}
        return {**own, "steps": Field(steps), "log_variance": Field(log_variance, signed=True), **super()._fields()}

    def _weights(self, awake: np.ndarray, forecasts: np.ndarray | None) -> np.ndarray:
        return weights(self._state, self._log_prior, awake).mean(axis=0)

    def _learn(self, errors: Errors, awake: np.ndarray, forecasts: np.ndarray, target: np.ndarray) -> None:
        each = weights(self._state, self._log_prior, awake)
        learn(self._state, errors, each, memory=self._memory, scale_memory=self._scale_memory)
