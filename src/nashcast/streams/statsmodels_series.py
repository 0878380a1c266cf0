"""Series that come with the package statsmodels: forecast the next value from the last ones.

Its files are read where they lie; the package itself, and pandas with it, is not imported.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.maths import check
from nashcast.streams.base import Stream
from nashcast.streams.csv_file import read_csv
from nashcast.streams.lagged import WARMUP, next_row
from nashcast.streams.sheet import held


def co2(lags: int = 3, steps: int | None = None, warmup: int = WARMUP) -> Stream:
    """Carbon dioxide over Mauna Loa, in parts per million, weekly from 1958 to 2001; gaps hold the last value.

    lags: weeks known, 1 for the last alone.   warmup: weeks whose mean and standard deviation scale all, not scored.
    """
    sheet = held(read_csv(_file("co2", "co2.csv"), ["co2"], None))
    return _series("CO2", sheet.numbers, lags, steps, warmup)


def sunspots(lags: int = 3, steps: int | None = None, warmup: int = 50) -> Stream:
    """Sunspot activity by the year, 1700 to 2008.

    lags: years known, 1 for the last alone.   warmup: years whose mean and standard deviation scale all, not scored.
    """
    return _series(
        "sunspots", read_csv(_file("sunspots", "sunspots.csv"), ["SUNACTIVITY"], None).numbers, lags, steps, warmup
    )


def el_nino(lags: int = 3, steps: int | None = None, warmup: int = WARMUP) -> Stream:
    """Sea surface temperature off Peru (Niño 1+2), in °C, by the month, 1950 to 2010.

    lags: months known, 1 for the last alone.   warmup: months whose mean and standard deviation scale all, not scored.
    """
    months = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
    years = read_csv(_file("elnino", "elnino.csv"), months, None).numbers
    return _series("El Niño", years.reshape(-1, 1), lags, steps, warmup)


def _file(dataset: str, name: str) -> Path:
    found = find_spec("statsmodels")
    if found is None or not found.submodule_search_locations:
        raise InvalidInput("stream", "no package statsmodels", "Install it: pip install 'nashcast[peers]'.")
    path = Path(next(iter(found.submodule_search_locations))) / "datasets" / dataset / name
    if not path.is_file():
        raise InvalidInput("stream", f"statsmodels without {name}", "Install another version of it.")
    return path


def _series(name: str, values: np.ndarray, lags: int, steps: int | None, warmup: int) -> Stream:
    check.whole("lags", lags, least=1)
    check.whole("warmup", warmup, least=2)
    if steps is not None:
        check.whole("steps", steps, least=1)
    return next_row(name, values, values, [lags], warmup=warmup, steps=steps)
