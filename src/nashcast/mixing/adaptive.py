"""Experts to one forecast: four rules weigh them, and a last rule weighs what those rules and persistence say.

The rules are ML-Poly and log scores with a long, a middle and a short memory. ML-Poly and a log score over {persistence,
the four rules} give two forecasts, which a log score mixes. docs/explanation/mixing.md says what each is worth. A column is
one target at one horizon; every column has weights of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.mixing import error_scale, log_score, ml_poly
from nashcast.mixing.error_scale import Errors, ErrorScale
from nashcast.mixing.log_score import LogScoreState
from nashcast.mixing.ml_poly import MLPolyState

# Memories of the log scores over experts: of scores, and of the experts' error scales.
SCORE_MEMORY, SCALE_MEMORY = np.array([1.0, 0.95, 0.8]), np.array([0.98, 0.8, 0.3])
# The same of the log score over rules, and the prior weight of persistence among them.
TOP_MEMORY, TOP_SCALE_MEMORY, PERSISTENCE_PRIOR = 0.998, 0.98, 0.5
# The last rule tells soon when errors fall by orders of magnitude.
LAST_SCALE_MEMORY = 0.5
# Before so many labels nothing can be told from chance: the forecast is the last target.
FIRST_LABELS = 4
RULES = 1 + len(SCORE_MEMORY)


class Mixed(NamedTuple):
    """The mixture of one step.   rules: weights of each rule.   top: of persistence and the rules, in the forecast."""

    forecast: np.ndarray  # (columns,)
    weights: np.ndarray  # of each expert in the forecast, (columns, experts)
    rules: np.ndarray  # (columns, rules, experts)
    top: np.ndarray  # (columns, 1 + rules)


class AdaptiveMixture:
    """prior: weights of the experts before anything is learnt, (experts,). The first expert is persistence.

    >>> import numpy as np
    >>> mixture = AdaptiveMixture(1, np.array([0.5, 0.5]))
    >>> for y in range(8):
    ...     experts = np.array([[y - 1.0, float(y)]])
    ...     mixed = mixture.mix(experts, np.zeros((1, 2)), np.ones((1, 2), dtype=bool))
    ...     mixture.learn(mixed, experts, np.zeros((1, 2)), np.ones((1, 2), dtype=bool), np.array([y]), np.ones(1, dtype=bool))
    >>> mixed.weights.round(3)
    array([[0., 1.]])
    """

    def __init__(self, columns: int, prior: np.ndarray):
        experts, speeds = len(prior), len(SCORE_MEMORY)
        self._log_prior = np.log(prior / prior.sum())
        self._memory, self._scale_memory = np.repeat(SCORE_MEMORY, columns), np.repeat(SCALE_MEMORY, columns)
        top = np.full(1 + RULES, (1.0 - PERSISTENCE_PRIOR) / RULES)
        top[0] = PERSISTENCE_PRIOR
        self._top_log_prior = np.log(top)
        self._labels = np.zeros(columns, dtype=np.int64)
        self._state = MixtureState(
            error_scale.init(columns), ml_poly.init(columns, experts), log_score.init(speeds * columns, experts),
            ml_poly.init(columns, 1 + RULES), log_score.init(columns, 1 + RULES), log_score.init(columns, 2),
        )  # fmt: skip

    def mix(self, forecasts: np.ndarray, leverage: np.ndarray, awake: np.ndarray) -> Mixed:
        """All (columns, experts); forecasts of sleeping experts are not read. Changes nothing."""
        rules = self._rule_weights(leverage, awake)
        said = self._said(rules, np.where(awake, forecasts, 0.0))
        top, *_ = self._top_weights()
        top[self._labels < FIRST_LABELS] = np.eye(1, 1 + RULES)
        weights = np.matmul(top[:, None, 1:], rules)[:, 0]
        weights[:, 0] += top[:, 0]
        return Mixed((top * said).sum(axis=1), weights, rules, top)

    def learn(
        self, mixed: Mixed | None, forecasts: np.ndarray, leverage: np.ndarray, awake: np.ndarray, target: np.ndarray,
        labelled: np.ndarray,
    ) -> Errors:  # fmt: skip
        """What came. mixed: of the same forecasts, if nothing was learnt since; else the rules weigh them anew.

        target: (columns,).   labelled: (columns,), whether a column has a label.
        """
        state = self._state
        rules = self._rule_weights(leverage, awake) if mixed is None else mixed.rules
        errors = error_scale.observe(state.scale, forecasts, target, awake, labelled)
        over_rules = _of_rules(errors, self._said(rules, errors.values), labelled)
        _, poly, score, last = self._top_weights()
        both = np.stack([(poly * over_rules.values).sum(axis=1), (score * over_rules.values).sum(axis=1)], axis=1)
        over_both = _of_rules(errors, both, labelled)
        log_score.learn(state.last, over_both, last, memory=TOP_MEMORY, scale_memory=LAST_SCALE_MEMORY)
        ml_poly.learn(state.top_poly, over_rules, poly)
        log_score.learn(state.top_scores, over_rules, score, memory=TOP_MEMORY, scale_memory=TOP_SCALE_MEMORY)
        ml_poly.learn(state.poly, errors, rules[:, 0])
        each = _tiled(errors, len(SCORE_MEMORY))
        weights = rules[:, 1:].swapaxes(0, 1).reshape(each.values.shape)
        memory = {"memory": self._memory, "scale_memory": self._scale_memory}
        log_score.learn(state.scores, each, weights, **memory, leverage=np.concatenate([leverage] * len(SCORE_MEMORY)))
        self._labels += labelled
        return errors

    def save(self) -> dict[str, np.ndarray]:
        found = {"labels": self._labels}
        for name, part in self._state._asdict().items():
            found |= {f"{name}.{field}": value for field, value in part._asdict().items()}
        return found

    def restore(self, fields) -> None:
        self._labels = fields.take("labels", self._labels.shape, dtype=np.int64, min=0)
        for name, part in self._state._asdict().items():
            for field, value in part._asdict().items():
                low = None if field in ("score", "regret") else 0
                value[...] = fields.take(f"{name}.{field}", value.shape, dtype=value.dtype, min=low)

    def _rule_weights(self, leverage: np.ndarray, awake: np.ndarray) -> np.ndarray:
        speeds, (columns, experts) = len(SCORE_MEMORY), awake.shape
        weights = np.empty((columns, RULES, experts))
        weights[:, 0] = ml_poly.weights(self._state.poly, awake)
        tiled = [np.concatenate([part] * speeds) for part in (awake, leverage)]
        scores = log_score.weights(self._state.scores, self._log_prior, *tiled)
        weights[:, 1:] = scores.reshape(speeds, columns, experts).swapaxes(0, 1)
        return weights

    def _said(self, rules: np.ndarray, forecasts: np.ndarray) -> np.ndarray:
        """What persistence and each rule say, (columns, 1 + rules)."""
        return np.concatenate([forecasts[:, :1], np.matmul(rules, forecasts[:, :, None])[:, :, 0]], axis=1)

    def _top_weights(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of persistence and the rules: in the forecast, by ML-Poly, by log score; and of these two."""
        poly = ml_poly.weights(self._state.top_poly)
        score = log_score.weights(self._state.top_scores, self._top_log_prior, precision=0.0)
        last = log_score.weights(self._state.last, np.zeros(2), precision=0.0)
        return last[:, :1] * poly + last[:, 1:] * score, poly, score, last


class MixtureState(NamedTuple):
    """All that the rules remember."""

    scale: ErrorScale
    poly: MLPolyState
    scores: LogScoreState
    top_poly: MLPolyState
    top_scores: LogScoreState
    last: LogScoreState


def _of_rules(errors: Errors, values: np.ndarray, labelled: np.ndarray) -> Errors:
    """The errors of mixtures of the experts, none of which sleeps."""
    complete = bool(labelled.all())
    return errors._replace(values=values, awake=np.broadcast_to(labelled[:, None], values.shape), complete=complete)


def _tiled(errors: Errors, times: int) -> Errors:
    """The same errors for several rules at once."""
    parts = [part if isinstance(part, bool) else np.concatenate([part] * times) for part in errors]
    return Errors(*parts)
