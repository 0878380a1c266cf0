"""Air pollution in an Italian town by the hour: five sensors and the weather, one owner each (UCI Air Quality).

The reference analyser's value is the target. The sensors react to several gases, so no owner alone determines it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nashcast.datasets.base import Stream
from nashcast.datasets.files.known_files import AIR_QUALITY
from nashcast.datasets.files.library import read_known
from nashcast.datasets.lagged import WARMUP, next_row
from nashcast.datasets.owners import by_name
from nashcast.datasets.recorded.air_quality_file import MISSING, SENSORS, WEATHER
from nashcast.datasets.recorded.single_series import check_options
from nashcast.datasets.table import one_of

OWNERS = {**{sensor: (sensor,) for sensor in SENSORS}, "weather": WEATHER}
TARGETS = {"CO": "CO(GT)", "NOx": "NOx(GT)", "NO2": "NO2(GT)"}


def air_quality(
    target: str = "CO", hour: str = "next", steps: int | None = None, warmup: int = WARMUP,
    path: str | Path | None = None, any_version: bool = False,
) -> Stream:  # fmt: skip
    """Forecast carbon monoxide (mg/m³), nitrogen oxides (ppb) or nitrogen dioxide (µg/m³), as measured by the analyser.

    hour: "next", the sensors' values of one row for the analyser's of the next; "same", for those of the same hour.
    Rows in which a sensor, the weather or the target is missing are left out, so some steps are longer than an hour.
    warmup: rows whose mean and standard deviation scale all, not scored.
    path: the file, or a folder with it; by default the data folder.   any_version: accept any version of the file.
    """
    one_of("target", target, tuple(TARGETS))
    one_of("hour", hour, ("next", "same"))
    check_options(1, steps, warmup)
    sheet = read_known(AIR_QUALITY, path, any_version)
    numbers, dates = complete_rows(sheet, TARGETS[target])
    x, y = numbers[:, :-1], numbers[:, -1:]
    if hour == "same":  # row t of the inputs belongs to row t + 1 of the targets
        x, y = x[1:], y[:-1]
    names = [name for columns in OWNERS.values() for name in columns]
    stream = next_row(
        f"{target} of the {hour} hour", x, y, [1] * len(names), warmup=warmup, steps=steps, dates=dates[: len(y)]
    )
    return stream._replace(input_names=tuple(names), owners=by_name(names, OWNERS))


def complete_rows(sheet, target: str) -> tuple[np.ndarray, list[str]]:
    """The rows without a missing value: sensors, weather and the target in the last column; and their dates."""
    wanted = [*SENSORS, *WEATHER, target]
    numbers = sheet.numbers[:, [sheet.columns.index(name) for name in wanted]]
    kept = (numbers != MISSING).all(axis=1)
    return numbers[kept], [date for date, keep in zip(sheet.dates, kept, strict=True) if keep]
