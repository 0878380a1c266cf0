"""Experts to one forecast: four rules weigh them, and a last rule weighs what those rules and persistence say.

The rules are ML-Poly and log scores with a long, a middle and a short memory. ML-Poly and a log score over
{persistence, the four rules} give two forecasts, which a log score mixes. docs/explanation/mixing.md says what each is
worth. A column is one target at one horizon; every column has weights of its own.

Forecasts h steps ahead overlap, so h labels in a row say about as much as one: the log scores count them as 1/h, and
the last rules, which learn from the same labels again, decide on 1/h of the forecast. The rest is the plain mean of the
four rules.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.mixing import error_scale, log_score, ml_poly
from nashcast.mixing.error_scale import Errors, ErrorScale
from nashcast.mixing.linearised import linear_gains, step_scale
from nashcast.mixing.log_score import LogScoreState
from nashcast.mixing.ml_poly import MLPolyState

# Memories of the log scores over experts: of scores, and of the experts' error scales.
SCORE_MEMORY, SCALE_MEMORY = np.array([1.0, 0.95, 0.8]), np.array([0.98, 0.8, 0.3])
# The same of the log score over rules, and the prior weight of persistence among them.
TOP_MEMORY, TOP_SCALE_MEMORY, PERSISTENCE_PRIOR = 0.998, 0.98, 0.5
# The last rule tells soon when errors fall by orders of magnitude.
LAST_SCALE_MEMORY = 0.5
_LAST_EXPERTS = 2
# Before so many labels nothing can be told from chance: the forecast is the last target.
FIRST_LABELS = 4
RULES = 1 + len(SCORE_MEMORY)
# The memories beside (speeds, columns).
_SCORE_MEMORY, _SCALE_MEMORY = SCORE_MEMORY[:, None], SCALE_MEMORY[:, None]
_TOP_SCALE_MEMORY = np.array([[TOP_SCALE_MEMORY], [LAST_SCALE_MEMORY]])


class Mixed(NamedTuple):
    """The mixture of one step.   rules: weights of each rule.   top: of persistence and the rules, in the forecast."""

    forecast: np.ndarray  # (columns,)
    weights: np.ndarray  # of each expert in the forecast, (columns, experts)
    rules: np.ndarray  # (columns, rules, experts)
    top: np.ndarray  # (columns, 1 + rules)


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
        experts, speeds = len(prior), (len(SCORE_MEMORY),)
        alike = horizons is None or bool((horizons == 1).all())
        self._horizons = None if alike else np.asarray(horizons, dtype=np.float64)
        self._precision = (
            log_score.PRECISION if self._horizons is None else log_score.PRECISION / self._horizons[:, None]
        )
        self._log_prior = np.log(prior / prior.sum())
        # Of the log scores over rules and over what makes the forecast; the second weighs fewer.
        self._top_log_prior = np.full((2, 1, 1 + RULES), -np.inf)
        self._top_log_prior[0] = np.log((1.0 - PERSISTENCE_PRIOR) / RULES)
        self._top_log_prior[0, :, 0] = np.log(PERSISTENCE_PRIOR)
        self._top_log_prior[1, :, :_LAST_EXPERTS] = 0.0
        self._labels = np.zeros(columns, dtype=np.int64)
        self._state = MixtureState(
            error_scale.init(columns), ml_poly.init(columns, experts), log_score.init(columns, experts, rules=speeds),
            ml_poly.init(columns, 1 + RULES), log_score.init(columns, 1 + RULES, rules=(2,)),
        )  # fmt: skip
        self._top: TopWeights | None = None  # until something is learnt

    def mix(self, forecasts: np.ndarray, leverage: np.ndarray, awake: np.ndarray) -> Mixed:
        """All (columns, experts); forecasts of sleeping experts are not read. Changes nothing."""
        complete = bool(awake.all())
        rules = self._rule_weights(leverage, None if complete else awake)
        said = _said(rules, forecasts if complete else np.where(awake, forecasts, 0.0))
        top, early = self._top_weights().forecast, self._labels < FIRST_LABELS
        if early.any():
            top = np.where(early[:, None], np.eye(1, 1 + RULES), top)
        weights = np.matmul(top[:, None, 1:], rules)[:, 0]
        weights[:, 0] += top[:, 0]
        return Mixed(np.vecdot(top, said), weights, rules, top)

    def learn(
        self, mixed: Mixed | None, forecasts: np.ndarray, leverage: np.ndarray, awake: np.ndarray, target: np.ndarray,
        labelled: np.ndarray,
    ) -> Errors:  # fmt: skip
        """What came. mixed: of the same forecasts, if nothing was learnt since; else the rules weigh them anew.

        target: (columns,).   labelled: (columns,), whether a column has a label.
        """
        state, (_, poly, top_scores) = self._state, self._top_weights()
        rules = self._rule_weights(leverage, awake) if mixed is None else mixed.rules
        self._top = None
        errors = error_scale.observe(state.scale, forecasts, target, awake, labelled)
        over_rules = _of_rules(errors, _said(rules, errors.values), labelled)
        # Places that the last rule does not weigh repeat its first expert, which changes no score.
        both = np.empty(top_scores.shape)
        both[0] = over_rules.values
        both[1] = np.vecdot(poly, over_rules.values)[:, None]
        both[1, :, 1] = np.vecdot(top_scores[0], over_rules.values)
        over_both = over_rules._replace(values=both)
        h = self._horizons
        top_memory = {"memory": TOP_MEMORY, "scale_memory": _TOP_SCALE_MEMORY, "horizons": h}
        log_score.learn(state.top_scores, over_both, top_scores, **top_memory)
        scale = step_scale(errors)
        ml_poly.learn_gains(state.top_poly, linear_gains(over_rules, poly), scale)
        ml_poly.learn_gains(state.poly, linear_gains(errors, rules[:, 0]), scale)
        each, memory = (
            rules[:, 1:].swapaxes(0, 1),
            {"memory": _SCORE_MEMORY, "scale_memory": _SCALE_MEMORY, "horizons": h},
        )
        log_score.learn(state.scores, errors, each, **memory, leverage=leverage)
        self._labels += labelled
        return errors

    def save(self) -> dict[str, np.ndarray]:
        found = {"labels": self._labels}
        for name, part in self._state._asdict().items():
            found |= {f"{name}.{field}": value for field, value in part._asdict().items()}
        return found

    def restore(self, fields) -> None:
        self._labels = fields.take("labels", self._labels.shape, dtype=np.int64, min=0)
        self._top = None
        for name, part in self._state._asdict().items():
            for field, value in part._asdict().items():
                low = None if field in ("score", "regret") else 0
                value[...] = fields.take(f"{name}.{field}", value.shape, dtype=value.dtype, min=low)

    def _rule_weights(self, leverage: np.ndarray, awake: np.ndarray | None) -> np.ndarray:
        """(columns, rules, experts). awake: None if all experts are."""
        columns, experts = leverage.shape
        weights = np.empty((columns, RULES, experts))
        weights[:, 0] = ml_poly.weights(self._state.poly, awake)
        scores = log_score.weights(self._state.scores, self._log_prior, awake, leverage, self._precision)
        weights[:, 1:] = scores.swapaxes(0, 1)
        return weights

    def _top_weights(self) -> TopWeights:
        if self._top is None:
            poly = ml_poly.weights(self._state.top_poly)
            scores = log_score.weights(self._state.top_scores, self._top_log_prior, precision=0.0)
            score, last = scores
            forecast = last[:, :1] * poly + last[:, 1:_LAST_EXPERTS] * score
            if self._horizons is not None:
                part = 1.0 / self._horizons[:, None]
                forecast *= part
                forecast[:, 1:] += (1.0 - part) / RULES
            self._top = TopWeights(forecast, poly, scores)
        return self._top


class TopWeights(NamedTuple):
    """Weights of persistence and the rules, (columns, 1 + rules), and of what makes them."""

    forecast: np.ndarray  # in the forecast
    poly: np.ndarray  # by ML-Poly
    scores: np.ndarray  # by log score; and of these two in the forecast, with 0 after them, (2, columns, 1 + rules)


class MixtureState(NamedTuple):
    """All that the rules remember."""

    scale: ErrorScale
    poly: MLPolyState
    scores: LogScoreState
    top_poly: MLPolyState
    top_scores: LogScoreState  # over rules, and over ML-Poly and the log score over rules


def _said(rules: np.ndarray, forecasts: np.ndarray) -> np.ndarray:
    """What persistence and each rule say, (columns, 1 + rules)."""
    said = np.empty((len(rules), 1 + RULES))
    said[:, 0] = forecasts[:, 0]
    said[:, 1:] = np.matmul(rules, forecasts[:, :, None])[:, :, 0]
    return said


def _of_rules(errors: Errors, values: np.ndarray, labelled: np.ndarray) -> Errors:
    """The errors of mixtures of the experts, none of which sleeps."""
    return errors._replace(values=values, awake=labelled[:, None], complete=bool(labelled.all()))
