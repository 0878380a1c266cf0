"""Records of a federation's past steps, and the result of a replay of a series."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from nashcast.federation.federation import Federation


class Record(NamedTuple):
    """One step of the history."""

    step: int
    forecast: np.ndarray  # forecast of the next target, (y_dim,)
    weights: np.ndarray  # per member
    target: np.ndarray | None


class Replay(NamedTuple):
    """A whole series forecast step by step. Row t belongs to the forecast of targets[t]."""

    forecasts: np.ndarray  # (steps, y_dim)
    weights: np.ndarray  # (steps, members)
    agents: np.ndarray  # each member's own forecasts, (steps, members, y_dim)
    mse: float  # mean over steps and targets
    fallbacks: int = 0  # steps whose game was due but could not be played, so that the greedy forecast was used


def replayed(federation: Federation, inputs: Sequence[Any] | np.ndarray, targets: np.ndarray, members: int) -> Replay:
    """A federation forecasts every target from its input, learning as it goes."""
    steps, y_dim = targets.shape
    before = federation.health["fallbacks"]
    forecasts, weights, own = np.zeros(targets.shape), np.zeros((steps, members)), np.zeros((steps, members, y_dim))
    for t, (x, y) in enumerate(zip(inputs, targets, strict=True)):
        federation.predict_one(x)
        present = federation.present
        if present is not None:
            forecasts[t], weights[t], own[t] = present.forecast[0], present.weights, present.own
        federation.learn_one(x, y)
    with np.errstate(over="ignore"):
        error = (forecasts - targets) ** 2
    mse = float(np.nanmean(error)) if np.isfinite(error).any() else np.inf
    return Replay(forecasts, weights, own, mse, federation.health["fallbacks"] - before)
