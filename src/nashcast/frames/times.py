"""Conversion of users' timestamps to instants, microseconds in UTC, and back to local time."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput

INSTANT = np.dtype("datetime64[us]")
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
# How libraries write a zone that is an offset from UTC: "UTC-05:00", "-05:00", "pytz.FixedOffset(-300)".
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d\d?):?(\d\d)")
_MINUTES = re.compile(r"pytz\.FixedOffset\((-?\d+)\)")


def zone_named(name: Any) -> dt.tzinfo | None:
    """The time zone of that name, or of that offset from UTC; None for None.

    >>> zone_name(zone_named("-05:00"))
    'UTC-05:00'
    """
    if name is None:
        return None
    if isinstance(name, str) and (offset := _offset(name)) is not None:
        return dt.timezone(offset)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        remedy = "Pass a name of the IANA database, such as 'Europe/Vienna', or an offset, such as 'UTC-05:00'."
        raise InvalidInput("timezone", check.describe(name), remedy) from None


def zone_name(zone: dt.tzinfo | None) -> str | None:
    """The name that `zone_named` accepts; "UTC" for a zone that has no name."""
    if zone is None:
        return None
    name = str(getattr(zone, "key", zone))
    try:
        zone_named(name)
    except InvalidInput:
        return "UTC"
    return name


def _offset(name: str) -> dt.timedelta | None:
    if found := _MINUTES.fullmatch(name):
        minutes = int(found[1])
    elif found := _OFFSET.fullmatch(name):
        minutes = int(f"{found[1]}1") * (60 * int(found[2]) + int(found[3]))
    else:
        return None
    return dt.timedelta(minutes=minutes) if abs(minutes) < 24 * 60 else None


def instants(label: str, values: Any, zone: dt.tzinfo | None) -> tuple[np.ndarray, dt.tzinfo | None]:
    """Timestamps as datetime64[us] in UTC, NaT where one is missing or does not exist, and the zone they are in.

    values: datetime64, datetimes, dates or ISO texts. With offsets they are instants already; without, they are local
    times in `zone`, or in no zone.
    """
    array = np.asarray(values)
    if array.dtype.kind == "M":
        clock = array.astype(INSTANT)
        return (clock, None) if zone is None else (from_clock(clock, zone), zone)
    moments = [_moment(label, value) for value in array.tolist()] if array.ndim else [_moment(label, array.item())]
    found = [moment.tzinfo for moment in moments if moment is not None and moment.tzinfo is not None]
    if found and any(moment is not None and moment.tzinfo is None for moment in moments):
        remedy = "Give all of them an offset, or none."
        raise InvalidInput(label, "timestamps with and without a time zone", remedy)
    if found:
        exact = [None if m is None else m.astimezone(dt.UTC).replace(tzinfo=None) for m in moments]
        # Offsets of texts change with summer time; then only UTC is unambiguous.
        shared = found[0] if len({str(each) for each in found}) == 1 else dt.UTC
        return np.array(exact, dtype=INSTANT), found[0] if isinstance(found[0], ZoneInfo) else zone or shared
    clock = np.array(moments, dtype=INSTANT)
    return (clock, None) if zone is None else (from_clock(clock, zone), zone)


def from_clock(clock: np.ndarray, zone: dt.tzinfo) -> np.ndarray:
    """Instants of local times, in the order of the rows.

    When clocks go back, an hour occurs twice: the first row of a time is taken as summer time, the second as winter
    time. When they go forward, an hour does not exist: its rows are NaT.
    """
    found = np.empty(len(clock), dtype=INSTANT)
    last = None
    for i, value in enumerate(clock.tolist()):
        if value is None:
            found[i] = np.datetime64("NaT")
            continue
        first = _instant(value, zone, fold=0)
        second = _instant(value, zone, fold=1)
        if first < second and last is not None and first <= last:
            first = second
        exists = (first.replace(tzinfo=dt.UTC).astimezone(zone)).replace(tzinfo=None) == value
        found[i] = np.datetime64(first, "us") if exists else np.datetime64("NaT")
        last = first if exists else last
    return found


def to_clock(exact: np.ndarray, zone: dt.tzinfo | None) -> np.ndarray:
    """Local times in the zone at these instants; unchanged without a zone."""
    if zone is None:
        return exact
    shown = [
        None if value is None else value.replace(tzinfo=dt.UTC).astimezone(zone).replace(tzinfo=None)
        for value in exact.astype(INSTANT).tolist()
    ]
    return np.array(shown, dtype=INSTANT)


def seconds(exact: np.ndarray) -> np.ndarray:
    """Seconds since 1970, NaN where there is no time."""
    found = exact.astype(INSTANT).astype(np.int64) / 1e6
    return np.where(np.isnat(exact), np.nan, found)


def _instant(value: dt.datetime, zone: dt.tzinfo, fold: int) -> dt.datetime:
    return value.replace(tzinfo=zone, fold=fold).astimezone(dt.UTC).replace(tzinfo=None)


def _moment(label: str, value: Any) -> dt.datetime | None:
    if value is None or value != value or type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, str):
        try:
            return dt.datetime.fromisoformat(value.strip())
        except ValueError:
            remedy = "Write timestamps as 2024-05-31 13:00, with an offset if they have one, or pass datetimes."
            raise InvalidInput(label, repr(value[:60]), remedy) from None
    if isinstance(value, np.datetime64):
        return cast(dt.datetime, value.astype(INSTANT).item())
    if isinstance(value, dt.datetime):
        return value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value  # pyright: ignore
    if isinstance(value, dt.date):
        return dt.datetime.combine(value, dt.time())
    raise InvalidInput(label, check.describe(value), "Pass datetimes, dates, or texts such as 2024-05-31 13:00.")


def step_length(every: Any) -> int | str | None:
    """A length of a step in microseconds, or "month"; None for None, which means that it is to be estimated."""
    if every is None or every == "month":
        return every
    units = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800}
    length: float | None = None
    if isinstance(every, str):
        text = every.strip().lower()
        number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
        unit = text[len(number) :].strip()
        if (unit in units and number.strip().replace(".", "", 1).isdecimal()) or (unit in units and not number):
            length = float(number or 1) * units[unit]
    elif isinstance(every, dt.timedelta):
        length = every / dt.timedelta(seconds=1)
    elif isinstance(every, np.timedelta64):
        length = float(every / np.timedelta64(1, "us")) / 1e6
    elif isinstance(every, int | float) and not isinstance(every, bool):
        length = float(every)
    if length is None or not 1e-3 <= length < 1e9:
        remedy = "Pass seconds, a timedelta, 'month', or a text such as '15min', '1h' or '1d'."
        raise InvalidInput("every", check.describe(every), remedy)
    return round(length * 1e6)


def native_datetimes(exact: np.ndarray, zone: dt.tzinfo | None) -> Sequence[dt.datetime]:
    """Python datetimes, aware if there is a zone."""
    if zone is None:
        return exact.astype(INSTANT).tolist()
    return [value.replace(tzinfo=dt.UTC).astimezone(zone) for value in exact.astype(INSTANT).tolist()]
