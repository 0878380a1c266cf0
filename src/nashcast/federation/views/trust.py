"""Trust in each member: its own error, its weight, and what the federation would lose without it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Recent errors are exponentially weighted means with this factor per step.
FADING = 0.99


class Sums(NamedTuple):
    """Sums of squared errors, averaged over targets; all but the first two fade."""

    own: np.ndarray  # errors of each member's own forecasts, (members,)
    steps: np.ndarray  # steps at which it forecast
    recent: np.ndarray  # the same two sums, fading while the member forecasts
    recent_steps: np.ndarray
    without: np.ndarray  # errors of the federation without each member
    federation: np.ndarray  # errors of the federation, and a sum of ones, (2,)


class Trust(NamedTuple):
    """One member of a federation. Errors are mean squared errors of the next target, averaged over targets."""

    name: str
    error: float  # error of its own forecasts, over all steps at which it forecast
    recent_error: float  # the same, fading with a memory of about 100 steps
    weight: float  # weight in the last learnt forecast; an agent's excludes its part in the joint game
    loss_without: float  # relative growth of the federation's recent error without this member
    included: bool  # whether its contributions are in the sums of the joint game at present


class TrustLog:
    """Sums of squared errors of each member and of the federation without it."""

    def __init__(self, members: int, y_dim: int):
        own, steps, recent, recent_steps, without = np.zeros((5, members))
        self.sums = Sums(own, steps, recent, recent_steps, without, np.zeros(2))

    def learn(self, target: np.ndarray, forecast: np.ndarray, own, without, awake: np.ndarray) -> None:
        """forecast: the federation's, (y_dim,).   own, without: each member's and without it, (members, y_dim)."""
        one = (each[None] for each in (target, forecast, own, without, awake))
        self.sums = self.sums_with(*one)

    def sums_with(self, targets: np.ndarray, forecasts: np.ndarray, own, without, awake: np.ndarray) -> Sums:
        """The sums after several more labelled steps, in their order: the arguments of `learn`, (steps, …)."""
        sums, steps = self.sums, len(targets)
        losses = _losses(own, targets) * awake
        # The number of later steps over which each one has faded.
        after = np.arange(steps)[::-1, None]
        awake_after = np.add.accumulate(awake[::-1], axis=0, dtype=np.float64)[::-1] - awake
        fading, recent_fading = FADING**after, FADING**awake_after
        faded, recent_faded = FADING**steps, FADING ** np.add.reduce(awake, axis=0, dtype=np.float64)
        federation = _losses(forecasts[:, None], targets)
        return Sums(
            sums.own + np.add.reduce(losses, axis=0),
            sums.steps + np.add.reduce(awake, axis=0),
            sums.recent * recent_faded + np.add.reduce(recent_fading * losses, axis=0),
            sums.recent_steps * recent_faded + np.add.reduce(recent_fading * awake, axis=0),
            sums.without * faded + np.add.reduce(fading * _losses(without, targets), axis=0),
            sums.federation * faded + [np.vecdot(fading[:, 0], federation[:, 0]), np.add.reduce(fading[:, 0])],
        )

    def report(self, names: list[str], weights: np.ndarray, included: np.ndarray) -> list[Trust]:
        return reported(self.sums, names, weights, included)

    def save(self) -> dict[str, np.ndarray]:
        return self.sums._asdict()

    def restore(self, fields) -> None:
        self.sums = Sums(*(fields.take(name, value.shape, min=0.0) for name, value in self.sums._asdict().items()))


def reported(sums: Sums, names: list[str], weights: np.ndarray, included: np.ndarray) -> list[Trust]:
    unknown = np.full(len(names), np.nan)
    error = np.divide(sums.own, sums.steps, out=unknown.copy(), where=sums.steps > 0)
    recent = np.divide(sums.recent, sums.recent_steps, out=unknown, where=sums.recent_steps > 0)
    mine = sums.federation[0]
    loss = sums.without / mine - 1.0 if mine > 0.0 else np.zeros(len(names))
    rows = zip(names, error, recent, weights, loss, included, strict=True)
    return [
        Trust(name, float(own), float(now), float(weight), float(worth), bool(inside))
        for name, own, now, weight, worth, inside in rows
    ]


def _losses(forecasts: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Squared errors of forecasts (steps, members, y_dim), averaged over targets, clipped so that sums are finite."""
    with np.errstate(over="ignore"):
        errors = forecasts - targets[:, None]
        return np.minimum(np.vecdot(errors, errors) / errors.shape[2], 1e300)
