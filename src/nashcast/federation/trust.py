"""Whom to trust: each member's own error, its weight, and what the federation would lose without it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Recent errors are fading means: so much of a step remains in the next.
FADING = 0.99


class Trust(NamedTuple):
    """One member of a federation. Errors are mean squared errors of the next target, averaged over targets."""

    name: str
    error: float  # of its own forecasts, over all steps at which it forecast
    recent_error: float  # the same, fading with a memory of about 100 steps
    weight: float  # in the last learnt forecast; of an agent, without its part in the joint game
    loss_without: float  # by how much of itself the federation's recent error would grow without this member
    included: bool  # whether its contributions are in the sums of the joint game at present


class TrustLog:
    """Sums of squared errors of each member and of the federation without it."""

    def __init__(self, members: int, y_dim: int):
        self._own, self._count = np.zeros(members), np.zeros(members)
        self._recent, self._recent_count = np.zeros(members), np.zeros(members)
        self._without = np.zeros(members)
        self._federation = np.zeros(2)  # fading sum of squared errors, and of ones

    def learn(self, target: np.ndarray, forecast: np.ndarray, own, without, awake: np.ndarray) -> None:
        """forecast: of the federation, (y_dim,).   own, without: each member's and without it, (members, y_dim)."""
        errors = np.concatenate([own, without, forecast[None]])
        errors -= target
        with np.errstate(over="ignore"):
            # Mean squares over targets, small enough for sums of them.
            losses = np.minimum(np.vecdot(errors, errors) / len(target), 1e300)
        losses, without_losses, loss = losses[: len(own)], losses[len(own) : -1], losses[-1]
        # The recent sums of a member fade while it forecasts.
        fading = np.where(awake, FADING, 1.0)
        losses = losses * awake
        self._own += losses
        self._count += awake
        self._recent = fading * self._recent + losses
        self._recent_count = fading * self._recent_count + awake
        self._without = FADING * self._without + without_losses
        self._federation *= FADING
        self._federation += loss, 1.0

    def report(self, names: list[str], weights: np.ndarray, included: np.ndarray) -> list[Trust]:
        error = np.divide(self._own, self._count, out=np.full(len(names), np.nan), where=self._count > 0)
        known = self._recent_count > 0
        recent = np.divide(self._recent, self._recent_count, out=np.full(len(names), np.nan), where=known)
        mine = self._federation[0]
        loss = self._without / mine - 1.0 if mine > 0.0 else np.zeros(len(names))
        rows = zip(names, error, recent, weights, loss, included, strict=True)
        return [
            Trust(name, float(own), float(now), float(weight), float(worth), bool(inside))
            for name, own, now, weight, worth, inside in rows
        ]

    def save(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, f"_{name}") for name in _STATE}

    def restore(self, fields) -> None:
        for name in _STATE:
            setattr(self, f"_{name}", fields.take(name, getattr(self, f"_{name}").shape, min=0.0))


_STATE = ("own", "count", "recent", "recent_count", "without", "federation")
