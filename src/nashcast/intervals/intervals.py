"""Intervals round any forecaster's forecasts, from its own past residuals alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.intervals import tracking

COVERAGES = (0.8, 0.9, 0.95)
HALF_LIVES = (4.0, 16.0, 64.0, 256.0, inf)
GAINS = (0.05, 0.3, 1.0)
# What residuals in units of their mean size are taken to be before there are any: quantiles of |t| with 4 degrees of
# freedom at 1/20 … 19/20, divided by its mean, 1. They leave the memory like any other residuals.
PRIOR = (
    0.067, 0.134, 0.202, 0.271, 0.341, 0.414, 0.490, 0.569, 0.652, 0.741, 0.836, 0.941, 1.057, 1.19, 1.344, 1.533,
    1.778, 2.132, 2.776,
)  # fmt: skip
_STATE = ("totals", "sizes", "ring", "counts", "places", "debts", "losses", "size", "largest", "seen")


class Intervals:
    r"""Online prediction intervals at several coverages, for each target by itself.

    y_dim: numbers in a forecast.   coverages: nominal ones, each between 0 and 1.   memory: residuals remembered.

    Over any stretch of time the number of misses stays close to $\alpha$ times its length, whatever the series does:
    the misses still owed shift the quantile that is aimed at. See docs/explanation/intervals.md.

    >>> intervals = Intervals(1, coverages=(0.5, 0.9))
    >>> for residual in (1.0, -2.0, 0.5, -1.0):
    ...     intervals.learn([10.0], [10.0 + residual])
    >>> low, high = intervals.bounds([10.0])[1]
    >>> bool(low < 8.5 and 11.5 < high)
    True
    """

    def __init__(self, y_dim: int = 1, coverages: Sequence[float] = COVERAGES, *, memory: int = 250):
        self.y_dim = check.integer("y_dim", y_dim, min=1)
        levels = np.atleast_1d(check.numbers("coverages", coverages, "(coverages,)"))
        if levels.ndim != 1 or not len(levels) or not ((levels > 0.0) & (levels < 1.0)).all():
            remedy = "Pass numbers between 0 and 1, such as (0.8, 0.9, 0.95)."
            raise InvalidInput("coverages", check.describe(coverages), remedy)
        self.coverages = tuple(float(level) for level in levels)
        W = check.integer("memory", memory, min=len(PRIOR) + 1)
        # Inside, coverages ascend: wider intervals contain narrower ones.
        self._order = np.argsort(levels, kind="stable")
        self._misses = 1.0 - levels[self._order]
        self._gains, self._fades = np.array(GAINS), 0.5 ** (1.0 / np.array(HALF_LIVES))
        p, H, K, C = self.y_dim, len(HALF_LIVES), len(HALF_LIVES) * len(GAINS), len(levels)
        self._totals, self._sizes = np.zeros((p, H)), np.zeros((p, H))
        self._ring = np.zeros((p, H, W))
        self._ring[:, :, : len(PRIOR)] = PRIOR
        self._ordered = self._ring.copy()
        self._counts = np.full(p, len(PRIOR))
        self._places = np.full(p, len(PRIOR))  # where the next goes
        self._debts, self._losses = np.zeros((p, C)), np.zeros((p, K, C))
        self._size, self._largest, self._seen = np.zeros(p), np.zeros(p), np.zeros(p, dtype=np.int64)
        self._candidates, self._widths = np.empty((K, C)), np.empty((p, C))  # to be written to

    def bounds(self, forecast: np.ndarray) -> np.ndarray:
        """The intervals round a forecast, (coverages, 2, y_dim): low, high. Infinite until a target was learnt."""
        middle = self._forecast(forecast)
        widths = np.empty((self.y_dim, len(self._misses)))
        tracking.fill_widths(
            self._totals, self._sizes, self._ordered, self._counts, self._debts, self._losses, self._size,
            self._largest, self._seen, self._misses, self._gains, self._candidates, widths,
        )  # fmt: skip
        return _around(middle[None], self._as_asked(widths[None]))[0]

    def learn(self, forecast: np.ndarray, target: np.ndarray) -> None:
        """The target of a forecast is known; NaN where it is not."""
        y = check.numbers("target", target, "(y_dim,)")
        y = check.shaped("target", y if y.ndim else y[None], (self.y_dim,), "(y_dim,)")
        self._learn(tracking.learn, y - self._forecast(forecast), self._widths)

    def replay(self, forecasts: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """A whole series (steps, y_dim): the intervals as each target met them, (steps, coverages, 2, y_dim)."""
        f = check.of_rank("forecasts", forecasts, ("steps", "y_dim"))
        check.shaped("forecasts", f, (len(f), self.y_dim), "(steps, y_dim)")
        y = check.shaped("targets", targets, f.shape, "(steps, y_dim)")
        widths = np.empty((*f.shape, len(self._misses)))
        with np.errstate(invalid="ignore", over="ignore"):
            residuals = y - f
        self._learn(tracking.learn_series, residuals, widths)
        return _around(f, self._as_asked(widths))

    @property
    def debts(self) -> np.ndarray:
        """Misses still owed, (coverages, y_dim): α times the steps so far, less the misses."""
        return self._as_asked(self._debts[None])[0].T

    def save(self) -> dict[str, np.ndarray]:
        """All that `restore` needs to continue bit for bit."""
        return {name: getattr(self, f"_{name}").copy() for name in _STATE}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        for name in _STATE:
            now = getattr(self, f"_{name}")
            if name not in saved or saved[name].shape != now.shape:
                got = "nothing" if name not in saved else f"shape {check.shape_text(saved[name].shape)}"
                raise InvalidInput(
                    f"saved {name}", got, "Restore what intervals of the same y_dim and coverages saved."
                )
        for name in _STATE:
            getattr(self, f"_{name}")[...] = saved[name]
        self._ordered[...] = 0.0
        for i, count in enumerate(self._counts):
            self._ordered[i, :, :count] = np.sort(self._ring[i, :, :count])

    def _learn(self, step, residuals: np.ndarray, widths: np.ndarray) -> None:
        step(
            residuals, self._fades, self._totals, self._sizes, self._ordered, self._ring, self._counts,
            self._places, self._debts, self._losses, self._size, self._largest, self._seen, self._misses, self._gains,
            self._candidates, widths,
        )  # fmt: skip

    def _as_asked(self, ascending: np.ndarray) -> np.ndarray:
        """(…, y_dim, coverages) in the order the coverages were given in."""
        asked = np.empty_like(ascending)
        asked[..., self._order] = ascending
        return asked

    def _forecast(self, forecast) -> np.ndarray:
        values = check.numbers("forecast", forecast, "(y_dim,)")
        return check.shaped("forecast", values if values.ndim else values[None], (self.y_dim,), "(y_dim,)")


def _around(forecasts: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """(steps, y_dim) and (steps, y_dim, coverages) to (steps, coverages, 2, y_dim)."""
    half = np.moveaxis(widths, 2, 1)
    with np.errstate(invalid="ignore"):
        return np.stack([forecasts[:, None] - half, forecasts[:, None] + half], axis=2)
