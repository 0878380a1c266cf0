r"""Weights by log score: how likely each expert made what came, with an error scale of its own and a fading memory.

Expert k says f_k, and how far the step is from what it has learnt from, q_k ≥ 1 (1 if it cannot tell): its forecast is
taken as Student-t around f_k with variance v_k q_k, where v_k is the fading mean of its past e²/q. Its score is the
fading sum of the log likelihoods, so an expert that is nearly exact gains without bound on one that is merely good,
in any units. No score is left more than CAP behind the best, so that an expert which was long wrong is heard again
within a few steps of a change. The weights are ∝ prior · exp(score) · (v_k q_k)^-PRECISION.

Memory lengthens with the stream, since experts learn fastest at its beginning: at step t nothing weighs more than it
would with a memory of t / GROWTH steps.
"""

from __future__ import annotations

from math import exp, inf, log, log1p

import numpy as np
from numba import njit

from nashcast import validation as check

FREEDOM = 5.0  # degrees of freedom: one wild error costs a bounded number of good ones
CAP = 13.0  # e^-13: the least weight, as a part of the best's
PRECISION = 2.5
GROWTH = 4.0
# Errors this small, as a part of the largest, are rounding.
_ROUNDING = 1e-20


@njit(cache=True)
def fill_weights(score, squares, count, log_prior, reach, awake, precision, weights):
    """Fill `weights` (experts,). reach: q.   squares: Σ fading e²/q.   count: the same sum of ones."""
    K, least, best = len(weights), 0.0, -inf
    for k in range(K):
        least = max(least, squares[k])
    least = max(_ROUNDING * least, 1e-300)
    for k in range(K):
        if awake[k]:
            weights[k] = score[k] + log_prior[k]
            if count > 0.0 and precision > 0.0:
                weights[k] -= precision * log(max(squares[k], least) * reach[k])
            best = max(best, weights[k])
    total = 0.0
    for k in range(K):
        weights[k] = exp(weights[k] - best) if awake[k] else 0.0
        total += weights[k]
    if total > 0.0:
        for k in range(K):
            weights[k] /= total


@njit(cache=True)
def learn_scores(score, squares, count, forecasts, target, mixed, reach, awake, memory, scale_memory, learnt):
    """One step: update `score` and `squares`; returns the new count. An expert asleep counts as the mixture `mixed`.

    memory: how much a step's score weighs of the next one's; scale_memory: the same of its squared error.
    learnt: how many steps were learnt before this one.
    """
    K = len(score)
    young = 1.0 / (1.0 + learnt / GROWTH)
    fading, scale_fading = min(memory, 1.0 - young / 5.0), min(scale_memory, 1.0 - young)
    count = scale_fading * count + 1.0
    largest = 0.0
    for k in range(K):
        error = (forecasts[k] if awake[k] else mixed) - target
        squares[k] = scale_fading * squares[k] + error * error / (reach[k] if awake[k] else 1.0)
        largest = max(largest, squares[k])
    least, best = max(_ROUNDING * largest, 1e-300), -inf
    for k in range(K):
        q = reach[k] if awake[k] else 1.0
        error = (forecasts[k] if awake[k] else mixed) - target
        variance = max(squares[k], least) / count * q
        score[k] = fading * score[k] - 0.5 * log(variance)
        score[k] -= 0.5 * (FREEDOM + 1.0) * log1p(error * error / (FREEDOM * variance))
        best = max(best, score[k])
    for k in range(K):
        score[k] = max(score[k] - best, -CAP)
    return count


class LogScore:
    """The rule as an object, for any experts: `weights`, `learn`, `save`, `restore`. Every target is scored alone, and
    the weights of several are averaged.

    memory, scale_memory: what a step weighs of the next one, of the scores and of the errors' scales.
    prior: the experts' weights before anything is learnt; alike if left out.
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
        self.experts, self.y_dim = check.integer("experts", experts, min=1), check.integer("y_dim", y_dim, min=1)
        self._memory = check.number("memory", memory, above=0.0, max=1.0)
        self._scale_memory = check.number("scale_memory", scale_memory, above=0.0, max=1.0)
        given = np.full(experts, 1.0 / experts) if prior is None else prior
        given = check.array("prior", given, (experts,), "(experts,)")
        check.in_range("prior", given, above=0.0)
        self._log_prior = np.log(given / given.sum())
        self._score, self._squares = np.zeros((y_dim, experts)), np.zeros((y_dim, experts))
        self._count, self._learnt = np.zeros(y_dim), 0

    def weights(self, awake: np.ndarray | None = None, forecasts: np.ndarray | None = None) -> np.ndarray:
        """Of every expert, 0 for those asleep."""
        return self._each(self._awake(awake)).mean(axis=0)

    def learn(self, forecasts: np.ndarray, target: np.ndarray, awake: np.ndarray | None = None) -> None:
        """What the experts said, (experts, y_dim), and what came, (y_dim,)."""
        y = check.array("target", target, (self.y_dim,), "(y_dim,)")
        said = check.shaped("forecasts", forecasts, (self.experts, self.y_dim), "(experts, y_dim)")
        with np.errstate(over="ignore", invalid="ignore"):
            here = self._awake(awake) & np.isfinite(((said - y) ** 2).sum(axis=1))
        if not here.any():
            return
        said = np.where(here[:, None], said, 0.0)
        reach = np.ones(self.experts)
        for p, weights in enumerate(self._each(here)):
            self._count[p] = learn_scores(
                self._score[p], self._squares[p], self._count[p], np.ascontiguousarray(said[:, p]), y[p],
                weights @ said[:, p], reach, here, self._memory, self._scale_memory, self._learnt,
            )  # fmt: skip
        self._learnt += 1

    def save(self) -> dict[str, np.ndarray]:
        """All that `restore` needs to continue bit for bit."""
        return {
            "score": self._score.copy(),
            "squares": self._squares.copy(),
            "count": self._count.copy(),
            "learnt": np.array(self._learnt),
        }

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        for name in ("score", "squares", "count"):
            now = getattr(self, f"_{name}")
            setattr(self, f"_{name}", check.shaped(f"saved {name}", saved[name], now.shape, "(y_dim, experts)").copy())
        self._learnt = int(saved["learnt"])

    def _each(self, awake: np.ndarray) -> np.ndarray:
        found = np.zeros((self.y_dim, self.experts))
        if awake.any():
            for p in range(self.y_dim):
                fill_weights(
                    self._score[p], self._squares[p], self._count[p], self._log_prior, np.ones(self.experts), awake,
                    PRECISION, found[p],
                )  # fmt: skip
        return found

    def _awake(self, awake) -> np.ndarray:
        return np.ones(self.experts, dtype=bool) if awake is None else np.asarray(awake, dtype=bool)
