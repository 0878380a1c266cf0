"""Recorded series in files of packages that are not about them: prices, weather, traffic, a bicycle ride.

Files are read where they lie; the packages are not imported. Cells that are no number hold the last one.
"""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import nan
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.streams.base import Stream
from nashcast.streams.lagged import WARMUP
from nashcast.streams.package_files import packaged
from nashcast.streams.sheet import Sheet, held
from nashcast.streams.single_series import series
from nashcast.streams.suggest import near

LONGEST = 2000
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Recording(NamedTuple):
    """steps: there are by default.   columns: what is read, row by row.

    only: of a file with several series the rows of one, as column and value.
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
_BLS, _EIA = "Bureau of Labor Statistics", "U.S. Energy Information Administration"

RECORDINGS: Mapping[str, Recording] = {
    "core-cpi": Recording(
        "American consumer prices without food and energy, monthly from 1957", 643, _BLS,
        "arch", "data/core_cpi/core-cpi.csv.gz", ("CPILFESL",),
    ),
    "brent": Recording(
        "price of crude oil (Brent), monthly from 1987", 293, _EIA,
        "arch", "data/crude/crude.csv.gz", ("Brent",),
    ),
    "aaa-yield": Recording(
        "yield of the safest American corporate bonds, monthly from 1919", 1100, "Moody's",
        "arch", "data/default/default.csv.gz", ("AAA",),
    ),
    "market-return": Recording(
        "excess return of American stocks, monthly from 1926", 1009, "Kenneth French's data library",
        "arch", "data/frenchdata/frenchdata.csv.gz", ("Mkt-RF",),
    ),
    "nasdaq": Recording(
        "the NASDAQ index, daily from 1999", 2000, "Yahoo Finance",
        "arch", "data/nasdaq/nasdaq.csv.gz", ("Adj Close",),
    ),
    "vix": Recording(
        "expected volatility of American stocks, daily from 2014", 1205, "Chicago Board Options Exchange",
        "arch", "data/vix/vix.csv.gz", ("vix",),
    ),
    "wti": Recording(
        "price of crude oil (West Texas), daily from 1986", 2000, _EIA,
        "arch", "data/wti/wti.csv.gz", ("DCOILWTICO",),
    ),
    "gasoline": Recording(
        "price of gasoline in Minnesota, weekly from 2000", 928, _EIA,
        "autots", "datasets/data/eia_weekly.zip", ("value",),
        ("series_id", "Weekly Minnesota Midgrade Conventional Retail Gasoline Prices  (Dollars per Gallon)"),
    ),
    "treasury": Recording(
        "yield of ten-year American bonds, monthly from 1953", 701, "Federal Reserve Bank of St. Louis",
        "autots", "datasets/data/fred_monthly.zip", ("value",),
        ("series_id", "GS10"),
    ),
    "traffic": Recording(
        "cars on an interstate road in Minnesota, hourly from 2016", 2000, "Minnesota Department of Transportation",
        "autots", "datasets/data/traffic_hourly.zip", ("traffic_volume",),
    ),
    "glucose": Recording(
        "blood glucose of one person, every five minutes", 2000, "a continuous monitor",
        "bokeh_sampledata", "_data/CGM.csv.gz", ("glucose",),
    ),
    "ride": Recording(
        "altitude of a bicycle, every second", 2000, "a cyclist's computer",
        "bokeh_sampledata", "_data/cycling.csv.gz", ("altitude",),
    ),
    "sea": Recording(
        "sea temperature off Maine, half-hourly from 2016", 2000, "NERACOOS",
        "bokeh_sampledata", "_data/sea_surface_temperature.csv.gz", ("temperature (celsius)",),
    ),
    "apple": Recording(
        "price of a share of Apple, daily from 2000", 2000, "Yahoo Finance",
        "bokeh_sampledata", "_data/stocks.csv.gz", ("Adj Close",),
        ("Ticker", "AAPL"),
    ),
    "lincoln": Recording(
        "highest temperature of the day in Lincoln, Nebraska, 2016", 266, "NOAA",
        "bokeh_sampledata", "_data/lincoln_weather.csv", ("TMAX",),
    ),
    "unemployment": Recording(
        "American unemployment, monthly from 1948", 728, _BLS,
        "bokeh_sampledata", "_data/unemployment1948.csv", (*_MONTHS,),
    ),
    "seattle-rain": Recording(
        "rain in Seattle, daily from 2012", 1361, "NOAA",
        "vega_datasets", "_data/seattle-weather.csv", ("precipitation",),
    ),
    "seattle": Recording(
        "temperature in Seattle, hourly, 2010", 2000, "NOAA",
        "vega_datasets", "_data/seattle-temps.csv", ("temp",),
    ),
    "san-francisco": Recording(
        "temperature in San Francisco, hourly, 2010", 2000, "NOAA",
        "vega_datasets", "_data/sf-temps.csv", ("temp",),
    ),
}  # fmt: skip


def recording(which: str, lags: int = 3, steps: int | None = None, warmup: int = WARMUP) -> Stream:
    """which: a name in RECORDINGS.   lags: rows known, 1 for the last alone.   steps: None for all, 2000 at most.

    warmup: rows whose mean and standard deviation scale all, not scored.
    """
    if which not in RECORDINGS:
        raise InvalidInput("which", repr(which), f"{near(str(which), RECORDINGS)}There are {', '.join(RECORDINGS)}.")
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
    """A file that may be packed by gzip or be the only one in a zip archive."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield file
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as packed:
            yield io.TextIOWrapper(packed, encoding="utf-8-sig", newline="")
    else:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
