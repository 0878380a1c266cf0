"""Recorded series in example files of other packages: prices, weather, traffic, a bicycle ride.

Files are read in place; the packages are not imported. Cells without a number repeat the last one.
"""

from __future__ import annotations

import csv
import gzip
import io
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from math import nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nashcast.datasets.base import Stream
from nashcast.datasets.files.package_files import packaged
from nashcast.datasets.files.sheet import Sheet, held
from nashcast.datasets.lagged import WARMUP
from nashcast.datasets.recorded.single_series import check_options, series
from nashcast.errors import InvalidInput
from nashcast.suggest import near

LONGEST = 2000


class Recording(NamedTuple):
    """steps: their number by default.   columns: the columns read, row by row.

    only: for a file with several series, the rows to read, as column and value.
    """

    summary: str
    steps: int
    source: str
    package: str
    file: str
    columns: tuple[str, ...]
    only: tuple[str, str] | None = None

    @property
    def licence(self) -> str:
        return f"{_LICENCES[self.package]}, with {self.package}"


_LICENCES = {"arch": "NCSA", "autots": "MIT", "bokeh_sampledata": "BSD-3-Clause", "vega_datasets": "MIT"}


def _recordings() -> dict[str, Recording]:
    text = (resources.files("nashcast.datasets.recorded") / "recordings.toml").read_text(encoding="utf-8")
    found = {}
    for name, facts in tomllib.loads(text).items():
        columns, only = tuple(facts.pop("columns")), facts.pop("only", None)
        found[name] = Recording(**facts, columns=columns, only=only and tuple(only))
    return found


RECORDINGS: Mapping[str, Recording] = _recordings()


def recording(which: str, lags: int = 3, steps: int | None = None, warmup: int = WARMUP) -> Stream:
    """which: a name in RECORDINGS.   lags: rows known, 1 for the last alone.   steps: None for all, 2000 at most.

    warmup: rows whose mean and standard deviation scale all, not scored.
    """
    if which not in RECORDINGS:
        raise InvalidInput("which", repr(which), f"{near(str(which), RECORDINGS)}There are {', '.join(RECORDINGS)}.")
    check_options(lags, steps, warmup)
    chosen = RECORDINGS[which]
    path = packaged(chosen.package, chosen.file, "recordings")
    values = _column(path, chosen)
    return series(which, values if steps is not None else values[: warmup + LONGEST], lags, steps, warmup)


def _column(path: Path, chosen: Recording) -> np.ndarray:
    found: list[float] = []
    with _text(path) as file:
        for row in csv.DictReader(file):
            if chosen.only is None or row[chosen.only[0]] == chosen.only[1]:
                found += [_number(row[name]) for name in chosen.columns]
    return held(Sheet(path, "row", range(len(found)), ("value",), np.array(found).reshape(-1, 1))).numbers


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan


@contextmanager
def _text(path: Path) -> Iterator[io.TextIOBase]:
    """A text file, possibly compressed by gzip or the only one in a zip archive."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as packed:
            yield io.TextIOWrapper(packed, encoding="utf-8-sig", newline="")
    else:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
