"""The paper's Electricity Transformer Temperature: the oil's, hour by hour, from six loads."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nashcast.datasets.base import Stream
from nashcast.datasets.files.known_files import ETT
from nashcast.datasets.files.library import read_known
from nashcast.datasets.lagged import cut, lag_matrix
from nashcast.datasets.owners import by_name
from nashcast.datasets.table import one_of

ETT_VALIDATION = 3500
# High, middle and low voltage loads, useful and useless; and the oil's own temperature.
OWNERS = {"high": ("HUFL", "HULL"), "middle": ("MUFL", "MULL"), "low": ("LUFL", "LULL"), "oil": ("OT",)}


def ett(
    steps: int = 2000,
    first: int = 0,
    path: str | Path | None = None,
    scale: str | None = "slice",
    any_version: bool = False,
) -> Stream:
    """Forecast OT from the six loads at this hour and the two before, and OT at this hour and the one before.

    Loads of high, middle and low voltage, and the oil, have an owner each.
    first: the hour of the file to begin at, 0 in the paper, 3500 for its validation.
    scale: divisor of inputs and of targets. "slice": their largest entry in the slice itself, as published,
    which looks ahead: no forecaster could have known it. "causal": their largest absolute entry up to the slice's first
    hour, which is known before the first forecast. "none": nothing.
    path: the file, or a folder with it; by default the data folder.   any_version: accept any version of the file.
    """
    one_of("scale", scale, ("slice", "causal", "none", None))
    sheet = read_known(ETT, path, any_version)
    loads, oil = sheet.numbers[:, :-1], sheet.numbers[:, -1:]
    inputs = np.hstack([lag_matrix(loads, [3] * loads.shape[1]), lag_matrix(oil, [2])])
    rows = cut(steps, first, len(oil))
    x, y = inputs[rows], oil[rows]
    if scale == "slice":
        x_unit, y_unit = x.max(), y.max()
    elif scale == "causal":
        x_unit, y_unit = np.abs(inputs[: first + 1]).max() or 1.0, np.abs(oil[: first + 1]).max() or 1.0
    else:
        x_unit = y_unit = 1.0
    x, y = x / x_unit, y / y_unit
    names = (*ETT.columns[:-1] * 3, *ETT.columns[-1:] * 2)
    dates = tuple(sheet.dates[rows][1:])
    return Stream(
        "ETT", x[:-1], y[1:], y[0], unit=float(y_unit), dates=dates, input_names=names, owners=by_name(names, OWNERS)
    )
