"""Whom to trust: each member's own error, its weight, and what the federation would lose without it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.federation.members import Members, Mixture

# Recent errors are fading means: so much of a step remains in the next.
FADING = 0.99
# Labelled steps that are added up together.
_TOGETHER = 64


class _Sums(NamedTuple):
    """Of squared errors, averaged over targets; all but the first two fade."""

    own: np.ndarray  # of each member's own forecasts, (members,)
    count: np.ndarray  # steps at which it forecast
    recent: np.ndarray  # the same two sums, which fade while the member forecasts
    recent_count: np.ndarray
    without: np.ndarray  # of the federation without each member
    federation: np.ndarray  # of the federation, and of ones, (2,)


class _Rows(NamedTuple):
    """Labelled steps that are not added up yet: the first `count` of these."""

    weights: np.ndarray  # as in `Mixture`, (rows, …)
    experts: np.ndarray
    awake: np.ndarray
    shares: np.ndarray
    forecasts: np.ndarray  # of the federation, (rows, y_dim)
    targets: np.ndarray  # (rows, y_dim)


class Trust(NamedTuple):
    """One member of a federation. Errors are mean squared errors of the next target, averaged over targets."""

    name: str
    error: float  # of its own forecasts, over all steps at which it forecast
    recent_error: float  # the same, fading with a memory of about 100 steps
    weight: float  # in the last learnt forecast; of an agent, without its part in the joint game
    loss_without: float  # by how much of itself the federation's recent error would grow without this member
    included: bool  # whether its contributions are in the sums of the joint game at present


class TrustLog:
    """Errors of each member and of the federation without it. They are added up when they are asked for, or are many.

    members: of the federation.   shares: shape of the agents' parts of the joint experts, (variants, agents).
    """

    def __init__(self, members: Members, y_dim: int, shares: tuple[int, int]):
        self._members = members
        K, M = members.experts.shape
        own, count, recent, recent_count, without = np.zeros((5, M))
        self._sums = _Sums(own, count, recent, recent_count, without, np.zeros(2))
        self._rows = _Rows(
            np.zeros((_TOGETHER, y_dim, K)), np.zeros((_TOGETHER, y_dim, K)), np.zeros((_TOGETHER, K), dtype=bool),
            np.zeros((_TOGETHER, *shares, y_dim)), np.zeros((_TOGETHER, y_dim)), np.zeros((_TOGETHER, y_dim)),
        )  # fmt: skip
        self._count = 0

    def learn(self, target: np.ndarray, forecast: np.ndarray, mixture: Mixture) -> None:
        """The label of a forecast (y_dim,) of the federation came."""
        for kept, value in zip(self._rows, (*mixture, forecast, target), strict=True):
            kept[self._count] = value
        self._count += 1
        if self._count == _TOGETHER:
            self._sums, self._count = self._added_up(), 0

    def _added_up(self) -> _Sums:
        """The sums with all rows."""
        sums, rows = self._sums, _Rows(*(kept[: self._count] for kept in self._rows))
        mixture = Mixture(*rows[:4])
        losses = _losses(self._members.own(mixture), rows)
        without = _losses(self._members.without(mixture), rows)
        federation = _losses(rows.forecasts[:, None], rows)
        awake = self._members.present(rows.awake)
        losses *= awake
        # How many later steps each one has faded in.
        after = np.arange(self._count)[::-1, None]
        awake_after = np.add.accumulate(awake[::-1], axis=0, dtype=np.float64)[::-1] - awake
        fading, recent_fading = FADING**after, FADING**awake_after
        faded, recent_faded = FADING**self._count, FADING ** np.add.reduce(awake, axis=0, dtype=np.float64)
        return _Sums(
            sums.own + np.add.reduce(losses, axis=0),
            sums.count + np.add.reduce(awake, axis=0),
            sums.recent * recent_faded + np.add.reduce(recent_fading * losses, axis=0),
            sums.recent_count * recent_faded + np.add.reduce(recent_fading * awake, axis=0),
            sums.without * faded + np.add.reduce(fading * without, axis=0),
            sums.federation * faded + [np.vecdot(fading[:, 0], federation[:, 0]), np.add.reduce(fading[:, 0])],
        )

    def report(self, names: list[str], weights: np.ndarray, included: np.ndarray) -> list[Trust]:
        sums = self._added_up() if self._count else self._sums
        unknown = np.full(len(names), np.nan)
        error = np.divide(sums.own, sums.count, out=unknown.copy(), where=sums.count > 0)
        recent = np.divide(sums.recent, sums.recent_count, out=unknown, where=sums.recent_count > 0)
        mine = sums.federation[0]
        loss = sums.without / mine - 1.0 if mine > 0.0 else np.zeros(len(names))
        rows = zip(names, error, recent, weights, loss, included, strict=True)
        return [
            Trust(name, float(own), float(now), float(weight), float(worth), bool(inside))
            for name, own, now, weight, worth, inside in rows
        ]

    def save(self) -> dict[str, np.ndarray]:
        rows = {f"rows.{name}": kept for name, kept in self._rows._asdict().items()}
        return {**self._sums._asdict(), **rows, "rows.count": np.array(self._count)}

    def restore(self, fields) -> None:
        sums, rows = self._sums._asdict().items(), self._rows._asdict().items()
        self._sums = _Sums(*(fields.take(name, value.shape, min=0.0) for name, value in sums))
        self._rows = _Rows(*(fields.take(f"rows.{name}", kept.shape, dtype=kept.dtype) for name, kept in rows))
        self._count = int(fields.take("rows.count", (), dtype=np.int64, min=0, max=_TOGETHER - 1))


def _losses(forecasts: np.ndarray, rows: _Rows) -> np.ndarray:
    """Squared errors of forecasts (rows, forecasters, y_dim), averaged over targets, small enough for sums of them."""
    with np.errstate(over="ignore"):
        errors = forecasts - rows.targets[:, None]
        return np.minimum(np.vecdot(errors, errors) / errors.shape[2], 1e300)
