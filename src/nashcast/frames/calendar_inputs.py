"""Inputs made from the time of the next target: hour, weekday, holidays, and cycles as sine and cosine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.frames.times import INSTANT

_HOUR, _DAY = 3_600_000_000, 86_400_000_000


def _cycle(share: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(2 * np.pi * share), np.cos(2 * np.pi * share)])


def _hour(clock: np.ndarray) -> np.ndarray:
    return (clock.astype(np.int64) % _DAY) / _HOUR


def _weekday(clock: np.ndarray) -> np.ndarray:
    return (clock.astype("datetime64[D]").astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday; Monday is 0


def _month(clock: np.ndarray) -> np.ndarray:
    return clock.astype("datetime64[M]").astype(np.int64) % 12 + 1


def _year_share(clock: np.ndarray) -> np.ndarray:
    year = clock.astype("datetime64[Y]").astype(INSTANT)
    return (clock - year).astype(np.int64) / (365.2425 * _DAY)


NAMES = ("hour", "weekday", "month", "holiday", "weekend", "day cycle", "week cycle", "year cycle")


def checked_names(names: Any) -> tuple[str, ...]:
    if names is None:
        return ()
    if isinstance(names, str):
        names = (names,)
    if not isinstance(names, Sequence) or any(name not in NAMES for name in names):
        raise InvalidInput("calendar", check.describe(names), f"Pass some of {', '.join(NAMES)}.")
    return tuple(dict.fromkeys(names))


def checked_holidays(days: Any) -> tuple[str, ...]:
    """Dates as ISO texts, sorted."""
    if isinstance(days, str) or not isinstance(days, Iterable):
        raise InvalidInput("holidays", check.describe(days), "Pass a list of dates, such as ['2024-12-25'].")
    found = set()
    for day in days:
        try:
            found.add(dt.date.fromisoformat(day[:10]) if isinstance(day, str) else np.datetime64(day, "D").item())
        except (TypeError, ValueError):
            raise InvalidInput("holidays", check.describe(day), "Pass dates, such as 2024-12-25.") from None
    return tuple(sorted(day.isoformat() for day in found))


def column_names(names: Sequence[str]) -> list[str]:
    """Names of the columns that `calendar_inputs` gives."""
    found: list[str] = []
    for name in names:
        found += [f"{name} sin", f"{name} cos"] if name.endswith("cycle") else [name]
    return found


def calendar_inputs(clock: np.ndarray, names: Sequence[str], holidays: Sequence[str] = ()) -> np.ndarray:
    """(rows, columns). clock: local times of the targets.

    >>> calendar_inputs(np.array(["2024-12-25T18"], dtype="datetime64[us]"), ["hour", "weekday"])
    array([[18.,  2.]])
    """
    free = np.array(holidays, dtype="datetime64[D]")
    made = {
        "hour": _hour,
        "weekday": _weekday,
        "month": _month,
        "holiday": lambda at: np.isin(at.astype("datetime64[D]"), free),
        "weekend": lambda at: _weekday(at) >= 5,
        "day cycle": lambda at: _cycle(_hour(at) / 24),
        "week cycle": lambda at: _cycle((_weekday(at) + _hour(at) / 24) / 7),
        "year cycle": lambda at: _cycle(_year_share(at)),
    }
    clock = clock.astype(INSTANT)
    parts = [np.asarray(made[name](clock), dtype=np.float64).reshape(len(clock), -1) for name in names]
    return np.column_stack(parts) if parts else np.empty((len(clock), 0))
