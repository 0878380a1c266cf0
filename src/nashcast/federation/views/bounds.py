"""Intervals round a federation's forecasts at every horizon and, if asked for, round each member's own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.federation.forecast import Scored
from nashcast.intervals import Intervals
from nashcast.intervals.issued_log import IssuedLog

# How many steps late a label may come and still be compared with the intervals issued with its forecasts.
_LATE_STEPS = 24


class Bounds:
    """members: how many have intervals of their own, 0 for none. The federation's columns come first, then theirs.

    told: whether agents give the expected distance between forecasts and targets.
    """

    def __init__(self, coverages: Sequence[float], y_dim: int, horizon: int, members: int, told: bool = False):
        self._shape, self._members = (horizon, y_dim), members
        ahead = np.concatenate([np.arange(1, horizon + 1), np.ones(members)]).repeat(y_dim)
        horizons = ahead if horizon > 1 else None
        self._intervals = Intervals(len(ahead), coverages, horizons=horizons, given_scale=told)
        self._told = told
        # Intervals issued with the last forecasts, by step; at horizon 1 a label is compared with those issued last.
        self._back = (ahead - 1).astype(np.int64)
        self._issued = IssuedLog(self._intervals.issued(), horizon + _LATE_STEPS) if horizon > 1 else None

    def expect(self, distance: np.ndarray | None) -> None:
        """Set the distance of the targets from the next forecasts that agents expect, (horizon, y_dim)."""
        if self._told:
            horizon, y_dim = self._shape
            scale = np.full((horizon + self._members, y_dim), np.nan)
            scale[:horizon] = np.nan if distance is None else distance
            self._intervals.set_scale(scale.ravel())

    def issue(self, step: int) -> None:
        """The forecast of a step is final: store its present intervals."""
        if self._issued is not None:
            self._issued.add(step, self._intervals.issued())

    def learn(self, scored: Scored) -> None:
        """Learn from forecasts whose label came; horizons without a label are skipped."""
        forecasts, target = scored.forecasts, scored.target
        targets = np.where(scored.known[:, None], target, np.nan)
        if self._members:
            own = scored.own
            labels = np.broadcast_to(target if scored.known[0] else np.full_like(target, np.nan), own.shape)
            forecasts, targets = np.concatenate([forecasts, own]), np.concatenate([targets, labels])
        issued = None if self._issued is None else self._issued.at(scored.step - self._back, self._intervals.issued())
        self._intervals.learn(forecasts.ravel(), targets.ravel(), issued)

    def around(self, coverage: float, middle: np.ndarray, member: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Low and high, (horizon, y_dim). middle: the federation's forecasts, or a member's (1, y_dim)."""
        known = self._intervals.coverages
        if coverage not in known:
            listed = ", ".join(f"{one:g}" for one in known)
            remedy = f"Pass one of {listed}, or make the federation with coverages=(…, {coverage!r})."
            raise InvalidInput("coverage", repr(coverage), remedy)
        if member is not None and not self._members:
            raise InvalidInput("agent", f"number {member}", "Make the federation with agent_intervals=True.")
        horizon, y_dim = self._shape
        first = 0 if member is None else horizon + member
        half = self._intervals.half_widths(coverage).reshape(-1, y_dim)[first : first + len(middle)]
        with np.errstate(over="ignore"):
            return middle - half, middle + half

    def around_all(self, middle: np.ndarray) -> np.ndarray:
        """At every coverage, (coverages, 2, horizon, y_dim), round the federation's forecasts."""
        horizon, y_dim = self._shape
        forecasts = np.zeros((horizon + self._members, y_dim))
        forecasts[:horizon] = middle
        bounds = self._intervals.bounds(forecasts.ravel())
        return bounds.reshape(len(bounds), 2, -1, y_dim)[:, :, :horizon]

    def save(self) -> dict[str, np.ndarray]:
        return self._intervals.save() | ({} if self._issued is None else self._issued.save())

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        own = dict(saved)
        if self._issued is not None:
            self._issued.restore({name: own.pop(name) for name in self._issued.save() if name in own})
        self._intervals.restore(own)
