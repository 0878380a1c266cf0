"""Intervals round the forecasts of any forecaster, from its past residuals alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.intervals.residuals import PRIOR, Issued
from nashcast.intervals.saved import checked_state
from nashcast.intervals.tracking import Tracker

COVERAGES = (0.8, 0.9, 0.95)


class Intervals:
    r"""Online prediction intervals at several coverages, for each target by itself.

    y_dim: numbers in a forecast.   coverages: nominal ones, each between 0 and 1.   memory: residuals stored.
    horizons: how many steps after its forecast each number becomes known, 1 by default. Beyond 1, pass what `issued`
    gave with a forecast to `learn`.
    given_scale: whether `set_scale` will give the expected distance of the target with every forecast.

    Over any stretch of time the number of misses stays close to $\alpha$ times its length, for any series: the
    difference shifts the target quantile. See docs/explanation/intervals.md.

    >>> intervals = Intervals(1, coverages=(0.5, 0.9))
    >>> for residual in (1.0, -2.0, 0.5, -1.0):
    ...     intervals.learn([10.0], [10.0 + residual])
    >>> low, high = intervals.bounds([10.0])[1]
    >>> bool(low < 8.5 and 11.5 < high)
    True
    """

    def __init__(
        self,
        y_dim: int = 1,
        coverages: Sequence[float] = COVERAGES,
        *,
        memory: int = 250,
        horizons: Sequence[int] | np.ndarray | None = None,
        given_scale: bool = False,
    ):
        self.y_dim = check.integer("y_dim", y_dim, min=1)
        levels = np.atleast_1d(check.numbers("coverages", coverages, "(coverages,)"))
        if levels.ndim != 1 or not len(levels) or not ((levels > 0.0) & (levels < 1.0)).all():
            remedy = "Pass numbers between 0 and 1, such as (0.8, 0.9, 0.95)."
            raise InvalidInput("coverages", check.describe(coverages), remedy)
        self.coverages = tuple(float(level) for level in levels)
        self._given = bool(given_scale)
        W = check.integer("memory", memory, min=len(PRIOR) + 1)
        # The tracker's coverages ascend, because wider intervals contain narrower ones.
        ascending = np.argsort(levels, kind="stable")
        self._asked = np.argsort(ascending)
        h = None if horizons is None else check.array("horizons", horizons, (self.y_dim,), "(y_dim,)")
        if h is not None:
            check.in_range("horizons", h, min=1.0)
        self._tracker = Tracker(self.y_dim, 1.0 - levels[ascending], W, h, self._given)

    def __repr__(self) -> str:
        return f"Intervals(y_dim={self.y_dim}, coverages={self.coverages})"

    def set_scale(self, scale: np.ndarray) -> None:
        """Set the expected distance of each target from the next forecast, (y_dim,), in any unit; NaN if unknown.

        It is weighted by the past performance of intervals in proportion to it. Call it before `bounds`.
        """
        if not self._given:
            raise InvalidInput("scale", "one", "Make the intervals with given_scale=True.")
        self._tracker.set_scale(self._vector("scale", scale))

    def bounds(self, forecast: np.ndarray) -> np.ndarray:
        """The intervals round a forecast, (coverages, 2, y_dim): low, high. Infinite until a target was learnt."""
        middle = self._vector("forecast", forecast)
        bounds = np.empty((len(self.coverages), 2, self.y_dim))
        self._fill(bounds, middle)
        return bounds

    def half_widths(self, coverage: float) -> np.ndarray:
        """Half of the width of the intervals at one of the coverages, (y_dim,)."""
        return self._tracker.widths().widths[:, self._asked[self.coverages.index(coverage)]]

    def issued(self) -> Issued:
        """The scales and widths behind the next intervals: to be passed to `learn` with their targets."""
        return self._tracker.issued()

    def learn(self, forecast: np.ndarray, target: np.ndarray, issued: Issued | None = None) -> None:
        """Learn the target of a forecast; columns where target - forecast is NaN or infinite are skipped.

        issued: what was issued with the forecast, if something was learnt since.
        """
        y, f = self._vector("target", target), self._vector("forecast", forecast)
        with np.errstate(invalid="ignore", over="ignore"):
            residuals = y - f
        self._tracker.learn(residuals, issued)

    def replay(self, forecasts: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """A whole series (steps, y_dim): the intervals before each target was known, (steps, coverages, 2, y_dim)."""
        f = check.of_rank("forecasts", forecasts, ("steps", "y_dim"))
        check.shaped("forecasts", f, (len(f), self.y_dim), "(steps, y_dim)")
        y = check.shaped("targets", targets, f.shape, "(steps, y_dim)")
        with np.errstate(invalid="ignore", over="ignore"):
            residuals = y - f
        bounds = np.empty((len(f), len(self.coverages), 2, self.y_dim))
        for t in range(len(f)):
            self._fill(bounds[t], f[t])
            self._tracker.learn(residuals[t])
        return bounds

    @property
    def debts(self) -> np.ndarray:
        """Expected minus actual misses so far, (coverages, y_dim): α times the steps, minus the misses."""
        return self._tracker.state.debts.T[self._asked]

    def save(self) -> dict[str, np.ndarray]:
        """All that `restore` needs to continue bit for bit."""
        return {name: values.copy() for name, values in self._tracker.state.arrays().items()}

    def restore(self, saved: Mapping[str, np.ndarray]) -> None:
        """Continue from what intervals of the same y_dim, coverages and memory saved.

        Raises InvalidInput, and changes nothing, if a field is missing, unknown, or has the wrong type, shape or range.
        """
        self._tracker.set_state(checked_state(saved, like=self._tracker.state))

    def _fill(self, bounds: np.ndarray, middle: np.ndarray) -> None:
        half = self._tracker.widths().widths.T[self._asked]
        with np.errstate(invalid="ignore", over="ignore"):
            np.subtract(middle, half, out=bounds[:, 0])
            np.add(middle, half, out=bounds[:, 1])

    def _vector(self, name: str, value) -> np.ndarray:
        values = check.numbers(name, value, "(y_dim,)")
        return check.shaped(name, values if values.ndim else values[None], (self.y_dim,), "(y_dim,)")
