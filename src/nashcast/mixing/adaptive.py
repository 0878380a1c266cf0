"""One forecast from many experts: four rules weigh them, and a last rule weighs those rules and persistence.

The rules are ML-Poly and log scores with a long, a middle and a short memory. ML-Poly and a log score over
{persistence, the four rules} give two forecasts, which a log score mixes. docs/explanation/mixing.md measures what each
adds. A column is one target at one horizon; every column has weights of its own.

Forecasts h steps ahead overlap, so h labels in a row carry about as much information as one: the log scores count them
as 1/h, and the last rules, which learn from the same labels again, determine 1/h of the forecast. The rest is the plain
mean of the four rules.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.mixing import log_score, ml_poly
from nashcast.mixing.boa import softmax
from nashcast.mixing.errors import error_scale
from nashcast.mixing.errors.error_scale import Errors, ErrorScale
from nashcast.mixing.errors.linearised import linear_gains, step_scale
from nashcast.mixing.log_score import LogScoreState
from nashcast.mixing.ml_poly import MLPolyState

# Memories of the log scores over experts: for scores, and for the experts' error scales.
SCORE_MEMORY, SCALE_MEMORY = np.array([1.0, 0.95, 0.8]), np.array([0.98, 0.8, 0.3])
# The same for the log score over rules, and the prior weight of persistence among them.
TOP_MEMORY, TOP_SCALE_MEMORY, PERSISTENCE_PRIOR = 0.998, 0.98, 0.5
# Factor of the leverage. With 1, experts far from the data they have learnt from get too little weight.
LEVERAGE_SHARE = 0.2
# The last rule adapts quickly when errors fall by orders of magnitude.
LAST_SCALE_MEMORY = 0.5
_LAST_EXPERTS = 2
# Before this many labels, differences between experts may be chance: the forecast is the last target.
FIRST_LABELS = 4
RULES = 1 + len(SCORE_MEMORY)
# Forecasts of persistence and the rules: persistence first, then ML-Poly, then the log scores.
_TOP_EXPERTS, _POLY, _SCORES = 1 + RULES, 1, 2


class Mixed(NamedTuple):
    """The mixture of one step."""

    forecast: np.ndarray  # (columns,)
    weights: np.ndarray  # the experts' weights in the forecast, (columns, experts)
    rules: np.ndarray  # the experts' weights in persistence and in each rule, (columns, 1 + rules, experts)
    top: np.ndarray  # weights of persistence and the rules in the forecast, (columns, 1 + rules)


class AdaptiveMixture:
    """prior: weights of the experts before anything is learnt, (experts,). The first expert is persistence.

    horizons: how many steps ahead each column forecasts, (columns,); 1 if left out.

    >>> import numpy as np
    >>> mixture = AdaptiveMixture(1, np.array([0.5, 0.5]))
    >>> leverage, awake, labelled = np.zeros((1, 2)), np.ones((1, 2), dtype=bool), np.ones(1, dtype=bool)
    >>> for y in range(8):
    ...     experts = np.array([[y - 1.0, float(y)]])
    ...     mixed = mixture.mix(experts, leverage, awake)
    ...     errors = mixture.learn(mixed, experts, leverage, awake, np.array([y]), labelled)
    >>> mixed.weights.round(3)
    array([[0., 1.]])
    """

    def __init__(self, columns: int, prior: np.ndarray, horizons: np.ndarray | None = None):
        K = len(prior)
        alike = horizons is None or bool((horizons == 1).all())
        h = self._horizons = None if alike else np.asarray(horizons, dtype=np.float64)
        self._precision = log_score.PRECISION if h is None else log_score.PRECISION / h[:, None]
        self._log_prior = np.log(prior / prior.sum())
        # The log scores over rules and over the last two forecasts share arrays; the second weighs fewer.
        self._top_log_prior = np.full((2, 1, _TOP_EXPERTS), -np.inf)
        self._top_log_prior[0] = np.log((1.0 - PERSISTENCE_PRIOR) / RULES)
        self._top_log_prior[0, :, 0] = np.log(PERSISTENCE_PRIOR)
        self._top_log_prior[1, :, :_LAST_EXPERTS] = 0.0
        self._pace = log_score.pace(SCORE_MEMORY[:, None], SCALE_MEMORY[:, None], h)
        self._top_pace = log_score.pace(TOP_MEMORY, np.array([[TOP_SCALE_MEMORY], [LAST_SCALE_MEMORY]]), h)
        # ML-Poly over experts and over rules share arrays too: unused places have the prior 0.
        width = max(K, _TOP_EXPERTS)
        self._poly_prior = np.zeros((2, 1, width))
        self._poly_prior[0, :, :K] = self._poly_prior[1, :, :_TOP_EXPERTS] = 1.0
        self._labels = np.zeros(columns, dtype=np.int64)
        self._state = MixtureState(
            error_scale.init(columns), ml_poly.init(columns, width, rules=(2,)),
            log_score.init(columns, K, rules=(len(SCORE_MEMORY),)), log_score.init(columns, _TOP_EXPERTS, rules=(2,)),
        )  # fmt: skip
        self._rules = np.zeros((columns, _TOP_EXPERTS, K))
        self._rules[:, 0, 0] = 1.0
        self._learnt: Learnt | None = None

    def mix(self, forecasts: np.ndarray, leverage: np.ndarray, awake: np.ndarray) -> Mixed:
        """All (columns, experts); forecasts of sleeping experts are not read. Changes nothing.

        Consecutive columns may share a row of the leverage.
        """
        rules = self._rule_weights(leverage, awake)
        complete = np.count_nonzero(awake) == awake.size
        each = _forecasts(rules, forecasts if complete else np.where(awake, forecasts, 0.0))
        top = self._now().top
        weights = np.matmul(top[:, None], rules)[:, 0]
        return Mixed(np.vecdot(top, each), weights, rules, top)

    def learn(
        self, mixed: Mixed | None, forecasts: np.ndarray, leverage: np.ndarray, awake: np.ndarray, target: np.ndarray,
        labelled: np.ndarray,
    ) -> Errors:  # fmt: skip
        """Learn the labels. mixed: that of the same forecasts, if nothing was learnt since; else it is recomputed.

        target: (columns,).   labelled: (columns,), whether a column has a label.
        """
        state, now = self._state, self._now()
        rules = self._rule_weights(leverage, awake) if mixed is None else mixed.rules
        self._learnt = None
        errors = error_scale.observe(state.scale, forecasts, target, awake, labelled)
        every = np.count_nonzero(labelled) == len(labelled)
        # Mixtures of the experts, all awake.
        over_rules = errors._replace(values=_forecasts(rules, errors.values), awake=labelled[:, None], complete=every)
        poly, top_scores = now.poly[1, :, :_TOP_EXPERTS], now.top_scores
        gains = np.zeros(state.poly.regret.shape)
        gains[0, :, : forecasts.shape[1]] = linear_gains(errors, rules[:, _POLY])
        gains[1, :, :_TOP_EXPERTS] = linear_gains(over_rules, poly)
        ml_poly.learn_gains(state.poly, gains, step_scale(errors))
        # Places unused by the last rule repeat its first expert, which changes no score.
        both = np.empty(top_scores.shape)
        both[0] = over_rules.values
        both[1] = np.vecdot(poly, over_rules.values)[:, None]
        both[1, :, 1] = np.vecdot(top_scores[0], over_rules.values)
        log_score.learn_at(state.top_scores, over_rules._replace(values=both), top_scores, self._top_pace)
        each = rules[:, _SCORES:].swapaxes(0, 1)
        log_score.learn_at(state.scores, errors, each, self._pace, LEVERAGE_SHARE * leverage)
        self._labels += labelled
        return errors

    def save(self) -> dict[str, np.ndarray]:
        found = {"labels": self._labels}
        for name, part in self._state._asdict().items():
            found |= {f"{name}.{field}": value for field, value in part._asdict().items()}
        return found

    def restore(self, fields) -> None:
        self._labels = fields.take("labels", self._labels.shape, dtype=np.int64, min=0)
        self._learnt = None
        for name, part in self._state._asdict().items():
            for field, value in part._asdict().items():
                low = None if field in ("score", "regret", "log_variance") else 0
                value[...] = fields.take(f"{name}.{field}", value.shape, dtype=value.dtype, min=low)

    def _rule_weights(self, leverage: np.ndarray, awake: np.ndarray) -> np.ndarray:
        """(columns, 1 + rules, experts)"""
        now, weights = self._now(), self._rules.copy()
        columns, _, K = weights.shape
        logs_q = np.log1p(LEVERAGE_SHARE * leverage)
        if len(logs_q) < columns:
            logs_q = logs_q.repeat(columns // len(logs_q), axis=0)
        logs_q *= self._precision
        if now.unlabelled is not None:  # before the first label every expert has the same variance
            logs_q[now.unlabelled] = 0.0
        scores = np.subtract(now.logs, logs_q[:, None], out=weights[:, _SCORES:])
        if np.count_nonzero(awake) == awake.size:
            scores -= np.maximum.reduce(scores, axis=2, keepdims=True)
            np.exp(scores, out=scores)
            scores /= np.add.reduce(scores, axis=2, keepdims=True)
            weights[:, _POLY] = now.poly[0, :, :K]
        else:
            weights[:, _SCORES:] = softmax(scores, awake[:, None])
            regret, squares, bound = self._state.poly
            over_experts = MLPolyState(regret[0, :, :K], squares[0, :, :K], bound[0])
            weights[:, _POLY] = ml_poly.weights(over_experts, awake)
        return weights

    def _now(self) -> Learnt:
        """The quantities that depend on past labels only, not on the next forecasts."""
        if self._learnt is None:
            state = self._state
            poly = ml_poly.weights(state.poly, prior=self._poly_prior)
            logs = log_score.log_weights(state.scores, self._log_prior, self._precision).swapaxes(0, 1)
            scores = log_score.weights(state.top_scores, self._top_log_prior, precision=0.0)
            score, last = scores
            top = last[:, :1] * poly[1, :, :_TOP_EXPERTS] + last[:, 1:_LAST_EXPERTS] * score
            if self._horizons is not None:
                part = 1.0 / self._horizons[:, None]
                top *= part
                top[:, 1:] += (1.0 - part) / RULES
            unlabelled = None
            early = self._labels < FIRST_LABELS
            if np.count_nonzero(early):
                top[early] = np.eye(1, _TOP_EXPERTS)
                unlabelled = self._labels == 0
            self._learnt = Learnt(poly, logs, scores, top, unlabelled)
        return self._learnt


class Learnt(NamedTuple):
    """Weights that depend on past labels only."""

    poly: np.ndarray  # experts, and persistence and rules, by ML-Poly, (2, columns, places)
    logs: np.ndarray  # experts, by log score: logarithms, at leverage 0, (columns, speeds, experts)
    top_scores: np.ndarray  # persistence and rules, and the last two forecasts, (2, columns, 1 + rules)
    top: np.ndarray  # persistence and rules, in the forecast, (columns, 1 + rules)
    unlabelled: np.ndarray | None  # which columns never had a label, (columns,); None after the first labels


class MixtureState(NamedTuple):
    """The state of all rules."""

    scale: ErrorScale
    poly: MLPolyState  # over experts, and over persistence and rules
    scores: LogScoreState
    top_scores: LogScoreState  # over persistence and rules, and over ML-Poly and the log score over these


def _forecasts(rules: np.ndarray, forecasts: np.ndarray) -> np.ndarray:
    """Forecasts of persistence and each rule, (columns, 1 + rules)."""
    return np.matmul(rules, forecasts[:, :, None])[:, :, 0]
