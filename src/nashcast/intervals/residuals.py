"""Statistics of past residuals: scales, scores, debts and losses of every column.

Axes: columns p (targets, or targets times horizons), scales H (one for each half-life, and a given one, if any),
gains G, coverages C (ascending), memory W.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import NamedTuple

import numpy as np

HALF_LIVES = np.array([4.0, 16.0, 64.0, 256.0, inf])
GAINS = np.array([0.05, 0.3, 1.0])
FADES = 0.5 ** (1.0 / HALF_LIVES)
# Scores before there are any residuals: quantiles of |t| with 4 degrees of freedom at 1/20 … 19/20, divided by its
# mean, 1. They leave the memory like any other score.
PRIOR = (
    0.067, 0.134, 0.202, 0.271, 0.341, 0.414, 0.490, 0.569, 0.652, 0.741, 0.836, 0.941, 1.057, 1.19, 1.344, 1.533,
    1.778, 2.132, 2.776,
)  # fmt: skip


@dataclass(slots=True)
class State:
    """Statistics of the past residuals.

    scales: σ_h, (p, H).   weights: sums of the weights in each fading scale, (p, half-lives).
    scores: rings, (p, H, W), 0 if empty.
    debts: S, (p, C).   losses: fading sums of pinball losses, (p, C, H G).   size: fading sum of residuals, (p,).
    largest: largest residual, (p,).   seen: residuals learnt, (p,).
    """

    scales: np.ndarray
    weights: np.ndarray
    scores: np.ndarray
    debts: np.ndarray
    losses: np.ndarray
    size: np.ndarray
    largest: np.ndarray
    seen: np.ndarray

    @classmethod
    def initial(cls, columns: int, coverages: int, memory: int, given: int = 0) -> State:
        """given: how many scales are given by the caller, after those of the half-lives."""
        p, H = columns, len(HALF_LIVES) + given
        scores = np.zeros((p, H, memory))
        scores[..., : len(PRIOR)] = PRIOR
        return cls(
            scales=np.zeros((p, H)),
            weights=np.zeros((p, len(HALF_LIVES))),
            scores=scores,
            debts=np.zeros((p, coverages)),
            losses=np.zeros((p, coverages, H * len(GAINS))),
            size=np.zeros(p),
            largest=np.zeros(p),
            seen=np.zeros(p, dtype=np.int64),
        )

    def arrays(self) -> dict[str, np.ndarray]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Widths(NamedTuple):
    """candidates: (p, C, H G).   widths: (p, C), inf in columns without a residual, ascending with the coverage."""

    candidates: np.ndarray
    widths: np.ndarray


class Issued(NamedTuple):
    """The quantities behind a forecast's intervals.   scales: (p, H).   candidates: (p, C, H G).   widths: (p, C)."""

    scales: np.ndarray
    candidates: np.ndarray
    widths: np.ndarray


def score_count(seen: np.ndarray, memory: int) -> np.ndarray:
    """Scores in rings of `memory` places after `seen` residuals. The first residual has no scale, hence no score."""
    return np.minimum(len(PRIOR) + np.maximum(seen - 1, 0), memory)
