"""Rules that mix what the experts of one run said: every rule sees the same forecasts."""

from __future__ import annotations

import numpy as np

from nashcast.datasets import Stream
from nashcast.evaluation.declared import warmup_share
from nashcast.evaluation.peers.recursive_least_squares import rls
from nashcast.evaluation.prequential import warmup_steps
from nashcast.mixing.adaptive import AdaptiveMixture
from nashcast.mixing.aggregation import aggregation_rule
from private_information.expert_run import ExpertRun

# Forgetting of regressions; the one with the smallest error on the warm-up is taken.
FORGETTING = (1.0, 0.998, 0.99)
RIDGE = 1e-3


def adaptive(run: ExpertRun, stream: Stream, columns: np.ndarray) -> np.ndarray:
    """The federation's own mixture over some of the experts, (steps, y_dim): what a federation of these would say."""
    steps, p = stream.targets.shape
    members, shares = np.unique(run.owner[columns], return_counts=True)
    each = dict(zip(members.tolist(), shares.tolist(), strict=True))
    prior = np.array([1.0 / (len(members) * each[owner]) for owner in run.owner[columns].tolist()])
    mixture, said = AdaptiveMixture(p, prior), np.empty((steps, p))
    labelled = np.ones(p, dtype=bool)

    def row(t: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        # In rows, as the federation has them: the rounding of sums depends on the order in memory.
        experts, leverage = (np.ascontiguousarray(part[t][:, columns]) for part in (run.experts, run.leverage))
        return experts, leverage, np.repeat(run.awake[t, columns][None], p, axis=0)

    for t in range(steps):
        if t == run.begun:
            mixture = AdaptiveMixture(p, prior)
        mixed = mixture.mix(*row(t))
        said[t] = mixed.forecast
        for step in run.learnt[t]:
            mixture.learn(mixed if step == t else None, *row(step), stream.targets[step], labelled)
    return said


def expert_rule(name: str, run: ExpertRun, stream: Stream, columns: np.ndarray) -> np.ndarray:
    """A rule of the expert literature over some of the experts."""
    steps, p = stream.targets.shape
    rule, said = aggregation_rule(name, len(columns), p), np.empty((steps, p))
    for t in range(steps):
        experts = run.experts[t][:, columns].T
        said[t] = rule.weights(None, experts) @ experts
        rule.learn(experts, stream.targets[t])
    return said


def joint_alone(run: ExpertRun, stream: Stream) -> np.ndarray:
    """The forecasts of the joint game's variants, mixed as the federation mixes; persistence is the first expert."""
    return adaptive(run, stream, np.append(0, run.joint))


def alone(run: ExpertRun, stream: Stream) -> np.ndarray:
    """What each agent forecasts by itself, (steps, y_dim, agents)."""
    agents = len(run.members) - 2  # besides persistence and the joint game
    return np.stack([adaptive(run, stream, run.of(agent)) for agent in range(agents)], axis=2)


def stacking(said: np.ndarray, stream: Stream) -> np.ndarray:
    """Online ridge regression of the target's change on the changes that were forecast; weights are free.

    said: forecasts to stack, (steps, y_dim, forecasts).
    """
    known = known_targets(stream)
    found = np.empty(stream.targets.shape)
    for k in range(known.shape[1]):
        found[:, k] = regression(said[:, k] - known[:, k : k + 1], stream, k)
    return found


def pooled_regression(stream: Stream) -> np.ndarray:
    """One regression over all inputs in one place: one, all inputs, their changes and the last two targets."""
    known = known_targets(stream)
    moved = np.diff(stream.inputs, axis=0, prepend=stream.inputs[:1])
    before = np.vstack([known[:1], known[:-1]])
    features = np.hstack([np.ones((len(known), 1)), stream.inputs - stream.inputs[0], moved])
    found = np.empty(known.shape)
    for k in range(known.shape[1]):
        own = np.column_stack([known[:, k], before[:, k]]) - known[0, k]
        found[:, k] = regression(np.hstack([features, own]), stream, k)
    return found


def regression(features: np.ndarray, stream: Stream, target: int) -> np.ndarray:
    """Forecasts of one target, (steps,), by regression of its changes on features (steps, features)."""
    known, y = known_targets(stream)[:, target], stream.targets[:, target]
    first = warmup_steps(stream, warmup_share())
    changes = (y - known)[:-1, None]
    found = [known + rls(features, changes, forgetting=each, ridge=RIDGE)[:, 0] for each in FORGETTING]
    with np.errstate(over="ignore"):
        return min(found, key=lambda said: float(np.mean((said - y)[:first] ** 2)))


def known_targets(stream: Stream) -> np.ndarray:
    """The target that is known when each is forecast, (steps, y_dim)."""
    return np.vstack([stream.start, stream.targets[:-1]])
