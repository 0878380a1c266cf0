"""Recorded series that were declared by a written rule before any method ran on them (fresh.toml).

Files are copied out of wheels by `nashcast data fetch fresh`; no package is installed. Cells that are no number hold
the last one.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from math import isnan, nan
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from nashcast.datasets.base import Stream
from nashcast.datasets.files.wheel_files import WheelFile, place_of, read_wheel_file
from nashcast.datasets.lagged import WARMUP
from nashcast.datasets.recorded.single_series import check_options, series
from nashcast.errors import InvalidInput
from nashcast.suggest import near

GET = "nashcast data fetch fresh"
LONGEST = 2000
_UNPACK = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class FreshSeries(NamedTuple):
    """steps: there are by default.   column: name, or position where the file names none or names it twice.

    only: of a file with several series the rows of one, as column and value.   header: whether a line names the
    columns.   skip: lines before that one.
    """

    summary: str
    source: str
    steps: int
    package: str
    version: str
    file: str
    sha256: str
    column: str | int
    only: Sequence[str] = ()
    header: bool = True
    skip: int = 0

    @property
    def wheel_file(self) -> WheelFile:
        return WheelFile(self.package, self.version, self.file, self.sha256)

    @property
    def is_here(self) -> bool:
        """Whether its file lies in the data folder; its checksum is looked at when it is read."""
        return place_of(self.wheel_file).is_file()


def _declared() -> dict[str, FreshSeries]:
    text = (resources.files("nashcast.datasets.recorded") / "fresh.toml").read_text(encoding="utf-8")
    return {name: FreshSeries(**facts) for name, facts in tomllib.loads(text).items()}


FRESH: Mapping[str, FreshSeries] = _declared()


def fresh(which: str, lags: int = 3, steps: int | None = None, warmup: int = WARMUP) -> Stream:
    """which: a name in FRESH.   lags: rows known, 1 for the last alone.   steps: None for all, 2000 at most.

    warmup: rows whose mean and standard deviation scale all, not scored.
    """
    if which not in FRESH:
        raise InvalidInput("which", repr(which), f"{near(str(which), FRESH)}There are {', '.join(FRESH)}.")
    check_options(lags, steps, warmup)
    chosen = FRESH[which]
    most = None if steps is not None else warmup + LONGEST
    values = np.array(_held(chosen, most)).reshape(-1, 1)
    return series(which, values, lags, steps, warmup)


def _held(chosen: FreshSeries, most: int | None) -> list[float]:
    """The numbers in order, from the first on; a cell without one repeats the last."""
    found: list[float] = []
    for cell in _cells(chosen):
        number = _number(cell)
        if isnan(number):
            if not found:
                continue
            number = found[-1]
        found.append(number)
        if len(found) == most:
            break
    return found


def _cells(chosen: FreshSeries) -> Iterator[str]:
    packed = io.BytesIO(read_wheel_file(chosen.wheel_file, GET))
    # Unpacked as it is read: of a file of two million rows the first ones are enough.
    unpack = _UNPACK.get(PurePosixPath(chosen.file).suffix)
    content = packed if unpack is None else unpack(packed, "rb")
    rows = csv.reader(io.TextIOWrapper(content, encoding="utf-8-sig", newline=""))
    for _ in range(chosen.skip):
        next(rows)
    names = next(rows) if chosen.header else []
    place = chosen.column if isinstance(chosen.column, int) else names.index(chosen.column)
    only = (names.index(chosen.only[0]), chosen.only[1]) if chosen.only else None
    for row in rows:
        if row and (only is None or row[only[0]] == only[1]):
            yield row[place]


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        return nan
    return number if np.isfinite(number) else nan
