"""Experts seen relative to their mean: what weights that sum to a fixed number can learn from (see `mixture`)."""

from __future__ import annotations

import numpy as np


def deviations(
    forecasts: np.ndarray, target: np.ndarray | None, here: np.ndarray, budget: float
) -> tuple[np.ndarray, np.ndarray]:
    """What each awake expert adds to their mean, (experts, y_dim), 0 for the others, and what η · mean missed."""
    mean = forecasts[here].mean(axis=0)
    apart = np.zeros(forecasts.shape)
    apart[here] = forecasts[here] - mean
    return apart, np.zeros(len(mean)) if target is None else target - budget * mean


def to_weights(shifts: np.ndarray, here: np.ndarray, budget: float) -> np.ndarray:
    """Weights of those awake, (…, awake), that sum to the budget: each its share and its shift."""
    v = shifts[..., here]
    return v + (budget - v.sum(axis=-1, keepdims=True)) / here.sum()
