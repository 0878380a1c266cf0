"""Columns of a file on disk, with the place of every row for messages; and the checks of every file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.suggest import near


class Sheet(NamedTuple):
    """place: the word for a row in this kind of file, "line" or "row".   at: the number of each.

    numbers: (rows, columns), NaN for an empty cell.   moments: sort keys of the dates, as many as rows, or none.
    """

    path: Path
    place: str
    at: Sequence[int]
    columns: tuple[str, ...]
    numbers: np.ndarray
    moments: Sequence[Any] = ()
    dates: Sequence[str] = ()

    def where(self, row: int, column: str | None = None) -> str:
        return f"{self.path}, {self.place} {self.at[row]}" + (f", column {column!r}" if column else "")


def places(path: Path, header: Sequence[str], wanted: Iterable[str], otherwise: str = "") -> list[int]:
    """The position of each wanted column in the header. `otherwise`: a better remedy than the columns' names."""
    found = []
    for name in wanted:
        if name not in header:
            listed = ", ".join(repr(each) for each in header[:20]) + (", …" if len(header) > 20 else "")
            remedy = otherwise or f"{near(name, header)}The columns are {listed}."
            raise InvalidInput(f"{path}", f"no column {name!r}", remedy)
        if header.count(name) > 1:
            raise InvalidInput(f"{path}", f"{header.count(name)} columns {name!r}", "Give every column its own name.")
        found.append(header.index(name))
    return found


def moment(where: str, text: str) -> datetime | float:
    """The sort key of a date: an ISO date or time, or a number."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        remedy = "Write dates as 2024-01-31 or 2024-01-31T12:00:00, or number the rows."
        raise InvalidInput(where, repr(text) if text else "no date", remedy) from None


def check_order(sheet: Sheet, date: str) -> None:
    """Check that every date is later than the one before it."""
    for row in range(1, len(sheet.moments)):
        before, now = sheet.moments[row - 1], sheet.moments[row]
        earlier = f"{sheet.dates[row - 1]!r} at {sheet.place} {sheet.at[row - 1]}"
        try:
            rises = now > before
        except TypeError:
            remedy = "Write all dates alike: all numbers, or all dates; all with a time zone, or none."
            raise InvalidInput(sheet.where(row, date), f"{sheet.dates[row]!r} after {earlier}", remedy) from None
        if now == before:
            remedy = "Every row needs its own date: remove one of the two."
            raise InvalidInput(sheet.where(row, date), f"{sheet.dates[row]!r} again, as {earlier}", remedy)
        if not rises:
            remedy = f"Sort the file by {date!r}, oldest first."
            raise InvalidInput(sheet.where(row, date), f"{sheet.dates[row]!r} after {earlier}", remedy)


def check_gaps(sheet: Sheet, remedy: str) -> None:
    """Check that no cell is empty."""
    gaps = np.isnan(sheet.numbers)
    if gaps.any():
        row, column = (int(i) for i in np.argwhere(gaps)[0])
        total = int(gaps.sum())
        counted = f"In all {total} cell{' is' if total == 1 else 's are'} empty"
        raise InvalidInput(sheet.where(row, sheet.columns[column]), "an empty cell", f"{counted}: {remedy}.")


def held(sheet: Sheet) -> Sheet:
    """Empty cells take the last value above them, never one below; rows before every column's first are left out."""
    gaps = np.isnan(sheet.numbers)
    rows = np.arange(len(gaps))[:, None]
    latest = np.maximum.accumulate(np.where(gaps, -1, rows), axis=0)
    begun = (latest >= 0).all(axis=1)
    if not begun.any():
        empty = sheet.columns[int(np.argmax(gaps.all(axis=0)))]
        raise InvalidInput(f"{sheet.path}, column {empty!r}", "no number at all", "Choose another column.")
    first = int(np.argmax(begun))
    numbers = np.take_along_axis(sheet.numbers, np.maximum(latest, 0), axis=0)[first:]
    return sheet._replace(
        at=sheet.at[first:], numbers=numbers, moments=sheet.moments[first:], dates=sheet.dates[first:]
    )
