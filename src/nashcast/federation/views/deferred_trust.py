"""Trust that is summed on request, or after many steps: at every step it would cost too much."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.federation.members import Members, Mixture
from nashcast.federation.views.trust import Sums, Trust, TrustLog, reported

# Labelled steps that are summed together.
_BATCH = 64


class _Rows(NamedTuple):
    """Labelled steps that are not summed yet."""

    weights: np.ndarray  # as in `Mixture`, (rows, …)
    experts: np.ndarray
    awake: np.ndarray
    shares: np.ndarray
    forecasts: np.ndarray  # the federation's, (rows, y_dim)
    targets: np.ndarray  # (rows, y_dim)


class DeferredTrust:
    """A `TrustLog` of mixtures, and the steps not yet added to it.

    members: those of the federation.   shares: shape of the agents' parts of the joint experts, (variants, agents).
    """

    def __init__(self, members: Members, y_dim: int, shares: tuple[int, int]):
        self._members = members
        K, M = members.experts.shape
        self._log = TrustLog(M, y_dim)
        self._rows = _Rows(
            np.zeros((_BATCH, y_dim, K)), np.zeros((_BATCH, y_dim, K)), np.zeros((_BATCH, K), dtype=bool),
            np.zeros((_BATCH, *shares, y_dim)), np.zeros((_BATCH, y_dim)), np.zeros((_BATCH, y_dim)),
        )  # fmt: skip
        self._count = 0

    def learn(self, target: np.ndarray, forecast: np.ndarray, mixture: Mixture) -> None:
        """Add a labelled forecast (y_dim,) of the federation."""
        for stored, value in zip(self._rows, (*mixture, forecast, target), strict=True):
            stored[self._count] = value
        self._count += 1
        if self._count == _BATCH:
            self._log.sums, self._count = self._summed(), 0

    def report(self, names: list[str], weights: np.ndarray, included: np.ndarray) -> list[Trust]:
        """The present trust. Changes no state, so that a report does not affect the run."""
        return reported(self._summed() if self._count else self._log.sums, names, weights, included)

    def _summed(self) -> Sums:
        rows, members = _Rows(*(stored[: self._count] for stored in self._rows)), self._members
        mixture = Mixture(*rows[:4])
        own, without = members.own(mixture), members.without(mixture)
        return self._log.sums_with(rows.targets, rows.forecasts, own, without, members.present(rows.awake))

    def save(self) -> dict[str, np.ndarray]:
        rows = {f"rows.{name}": stored for name, stored in self._rows._asdict().items()}
        return {**self._log.save(), **rows, "rows.count": np.array(self._count)}

    def restore(self, fields) -> None:
        rows = self._rows._asdict().items()
        self._rows = _Rows(*(fields.take(f"rows.{name}", stored.shape, dtype=stored.dtype) for name, stored in rows))
        self._count = int(fields.take("rows.count", (), dtype=np.int64, min=0, max=_BATCH - 1))
        self._log.restore(fields)
