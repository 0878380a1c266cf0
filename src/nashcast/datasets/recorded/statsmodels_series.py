"""Series that come with the package statsmodels: forecast the next value from the last ones.

Its files are read in place; neither the package nor pandas is imported.
"""

from __future__ import annotations

from pathlib import Path

from nashcast.datasets.base import Stream
from nashcast.datasets.files.csv_file import read_csv
from nashcast.datasets.files.package_files import packaged
from nashcast.datasets.files.sheet import held
from nashcast.datasets.lagged import WARMUP
from nashcast.datasets.recorded.single_series import series


def co2(lags: int = 3, steps: int | None = None, warmup: int = WARMUP) -> Stream:
    """Carbon dioxide over Mauna Loa, in parts per million, weekly from 1958 to 2001; gaps repeat the last value.

    lags: weeks known, 1 for the last alone.   warmup: weeks whose mean and standard deviation scale all, not scored.
    """
    sheet = held(read_csv(_file("co2", "co2.csv"), ["co2"], None))
    return series("CO2", sheet.numbers, lags, steps, warmup)


def sunspots(lags: int = 3, steps: int | None = None, warmup: int = 50) -> Stream:
    """Sunspot activity by the year, 1700 to 2008.

    lags: years known, 1 for the last alone.   warmup: years whose mean and standard deviation scale all, not scored.
    """
    return series(
        "sunspots", read_csv(_file("sunspots", "sunspots.csv"), ["SUNACTIVITY"], None).numbers, lags, steps, warmup
    )


def el_nino(lags: int = 3, steps: int | None = None, warmup: int = WARMUP) -> Stream:
    """Sea surface temperature off Peru (Niño 1+2), in °C, by the month, 1950 to 2010.

    lags: months known, 1 for the last alone.   warmup: months whose mean and standard deviation scale all, not scored.
    """
    months = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
    years = read_csv(_file("elnino", "elnino.csv"), months, None).numbers
    return series("El Niño", years.reshape(-1, 1), lags, steps, warmup)


def _file(dataset: str, name: str) -> Path:
    return packaged("statsmodels", f"datasets/{dataset}/{name}", "peers")
