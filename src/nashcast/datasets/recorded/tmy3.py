"""Weather of one station by the hour, a year composed of typical months (TMY3), each instrument with an owner.

The file comes with the package pvlib and is read in place; the package is not imported.
"""

from __future__ import annotations

import csv

import numpy as np

from nashcast.datasets.base import Stream
from nashcast.datasets.files.package_files import packaged
from nashcast.datasets.lagged import WARMUP, next_row
from nashcast.datasets.owners import by_name
from nashcast.datasets.recorded.single_series import check_options
from nashcast.datasets.table import one_of
from nashcast.errors import InvalidInput

FILE, HOURS = "data/723170TYA.CSV", 8760
_DIRECTION = "Wdir (degrees)"
# Wind direction enters as sine and cosine. The ceiling of the clouds is left out: most hours have none.
COLUMNS = {
    "temperature": "Dry-bulb (C)", "dew point": "Dew-point (C)", "humidity": "RHum (%)",
    "pressure": "Pressure (mbar)", "wind speed": "Wspd (m/s)", "irradiance": "GHI (W/m^2)",
    "total cloud": "TotCld (tenths)", "opaque cloud": "OpqCld (tenths)",
}  # fmt: skip
OWNERS = {
    "thermometer": ["temperature"], "hygrometer": ["dew point", "humidity"], "barometer": ["pressure"],
    "anemometer": ["wind speed", "wind sine", "wind cosine"], "pyranometer": ["irradiance"],
    "clouds": ["total cloud", "opaque cloud"],
}  # fmt: skip
TARGETS = ("temperature", "humidity", "irradiance")
# Code of a missing value.
_MISSING = -9900.0


def tmy3(target: str = "temperature", steps: int | None = None, warmup: int = WARMUP) -> Stream:
    """Forecast the next hour's temperature (°C), relative humidity (%) or global irradiance (W/m²) at Greensboro.

    Six owners: thermometer, hygrometer, barometer, anemometer, pyranometer, observer of the clouds; each has its
    instrument's present values.   warmup: hours whose mean and standard deviation scale all, not scored.
    """
    one_of("target", target, TARGETS)
    check_options(1, steps, warmup)
    values, dates = _hours()
    names = [name for columns in OWNERS.values() for name in columns]
    inputs = np.column_stack([values[name] for name in names])
    stream = next_row(
        f"TMY3 {target}", inputs, values[target][:, None], [1] * len(names), warmup=warmup, steps=steps, dates=dates
    )
    return stream._replace(input_names=tuple(names), owners=by_name(names, OWNERS))


def _hours() -> tuple[dict[str, np.ndarray], list[str]]:
    """The instruments' values by the hour, and the dates in the file: months come from different years."""
    path = packaged("pvlib", FILE, "recordings")
    with path.open(encoding="utf-8", newline="") as file:
        next(file)  # the station
        rows = list(csv.DictReader(file))
    try:
        found = {name: np.array([float(row[column]) for row in rows]) for name, column in COLUMNS.items()}
        angle = np.radians([float(row[_DIRECTION]) for row in rows])
        dates = [f"{row['Date (MM/DD/YYYY)']} {row['Time (HH:MM)']}" for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"{path}", f"other columns or cells ({error})", "Install another pvlib.") from None
    if len(rows) != HOURS or any((values <= _MISSING).any() for values in found.values()):
        raise InvalidInput(f"{path}", f"{len(rows)} rows, or missing values", "Install another pvlib.")
    return found | {"wind sine": np.sin(angle), "wind cosine": np.cos(angle)}, dates
