"""A regular grid of time: every row of a table has a place on it, and every place a time."""

from __future__ import annotations

import datetime as dt
from typing import Any, NamedTuple

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.frames.times import INSTANT, from_clock, to_clock, zone_named

_DAY = 86_400_000_000
MONTH = "month"


class Grid(NamedTuple):
    """every: length of a step in microseconds, or "month".   anchor: time of place 0, in microseconds.

    zone: name of the time zone, or None. Steps of a day, a week or a month are counted in local time, so that
    midnight stays midnight; shorter ones in elapsed time, so that a clock change neither adds nor loses a step.

    >>> grid = Grid.of(np.array(["2024-01-01T00", "2024-01-01T01", "2024-01-01T03"], dtype="datetime64[us]"))
    >>> grid.places(np.array(["2024-01-01T03"], dtype="datetime64[us]")).tolist()
    [3]
    """

    every: int | str
    anchor: int
    zone: str | None = None

    @classmethod
    def of(cls, exact: np.ndarray, every: int | str | None = None, zone: str | None = None) -> Grid:
        """The grid of these instants; the step is the commonest difference if it is not given.

        Place 0 is the first instant that lies on the grid most share; if less than half share one, the grid goes
        through the epoch.
        """
        known = np.unique(exact[~np.isnat(exact)].astype(INSTANT))
        if not len(known):
            raise InvalidInput("date", "no timestamp at all", "Pass a column of timestamps.")
        if every is None:
            every = _commonest_step(known, zone)
        if every == MONTH:
            clock = to_clock(known, zone_named(zone))
            return cls(MONTH, int(clock[0].astype("datetime64[M]").astype(np.int64)), zone)
        assert isinstance(every, int)
        ticks = _ticks(known, every, zone)
        remainders, counts = np.unique(ticks % every, return_counts=True)
        shared = int(remainders[counts.argmax()]) if counts.max() * 2 >= len(ticks) else 0
        return cls(every, int(-(-(ticks[0] - shared) // every) * every + shared), zone)

    def places(self, exact: np.ndarray) -> np.ndarray:
        """The first place at or after the time of each row, so that the data of a place were known by its time."""
        if self.every == MONTH:
            clock = to_clock(exact, zone_named(self.zone))
            return clock.astype("datetime64[M]").astype(np.int64) - self.anchor
        assert isinstance(self.every, int)
        return -(-(_ticks(exact, self.every, self.zone) - self.anchor) // self.every)

    def times(self, places: np.ndarray) -> np.ndarray:
        """Instants in UTC, datetime64[us]."""
        zone = zone_named(self.zone)
        if self.every == MONTH:
            clock = (np.asarray(places) + self.anchor).astype("datetime64[M]").astype(INSTANT)
            return clock if zone is None else _instants(clock, zone)
        assert isinstance(self.every, int)
        ticks = (np.asarray(places, dtype=np.int64) * self.every + self.anchor).astype(INSTANT)
        return _instants(ticks, zone) if zone is not None and self.every % _DAY == 0 else ticks

    def clock(self, places: np.ndarray) -> np.ndarray:
        """Local time of each place."""
        return to_clock(self.times(places), zone_named(self.zone))

    def save(self) -> dict[str, Any]:
        return self._asdict()


def _instants(clock: np.ndarray, zone: dt.tzinfo) -> np.ndarray:
    exact = from_clock(clock, zone)
    # A midnight that does not exist is the first instant after it.
    missing = np.isnat(exact)
    if missing.any():
        exact[missing] = from_clock(clock[missing] + np.timedelta64(1, "h"), zone)
    return exact


def _ticks(exact: np.ndarray, every: int, zone: str | None) -> np.ndarray:
    on_clock = zone is not None and every % _DAY == 0
    shown = to_clock(exact, zone_named(zone)) if on_clock else exact
    return shown.astype(INSTANT).astype(np.int64)


def _commonest_step(known: np.ndarray, zone: str | None) -> int | str:
    if len(known) < 2:
        remedy = "Pass every=…, for example every='1h': one row does not tell the length of a step."
        raise InvalidInput("every", "None", remedy)
    clock = to_clock(known, zone_named(zone)).astype("datetime64[M]").astype(np.int64)
    days = np.diff(known.astype(np.int64)) / _DAY
    if len(known) > 2 and (np.diff(clock) == 1).mean() > 0.5 and 27.0 < np.median(days) < 32.0:
        return MONTH
    steps, counts = np.unique(np.diff(known.astype(np.int64)), return_counts=True)
    if counts.max() * 2 >= len(known) - 1:
        return int(steps[counts.argmax()])
    return _rounded(float(np.median(np.diff(known.astype(np.int64)))))


def _rounded(step: float) -> int:
    """The usual length of a step nearest to the median of irregular ones."""
    usual = [1, 5, 10, 15, 30, 60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800]
    return int(min(usual, key=lambda one: abs(np.log(one * 1e6 / step)))) * 1_000_000
