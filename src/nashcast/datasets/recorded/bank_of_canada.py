"""The paper's Bank of Canada exchange rates: the US dollar in Canadian dollars, day by day."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nashcast.datasets.base import Stream
from nashcast.datasets.files.known_files import BANK_OF_CANADA
from nashcast.datasets.files.library import read_known
from nashcast.datasets.lagged import cut, lag_matrix
from nashcast.datasets.owners import by_name

BOC_VALIDATION = 1600


def bank_of_canada(
    steps: int = 2000, first: int = 0, path: str | Path | None = None, any_version: bool = False
) -> Stream:
    """Forecast USD from AUD, EUR, GBP, JPY and USD, today and the day before; rates as recorded, not scaled.

    Each currency has an owner.
    first: the day of the file to begin at, 0 in the paper, 1600 for its validation.
    path: the file, or a folder with it; by default the data folder.   any_version: accept any version of the file.
    """
    sheet = read_known(BANK_OF_CANADA, path, any_version)
    *others, dollar = sheet.numbers.T
    x = np.hstack([lag_matrix(np.column_stack(others), [2] * 4), lag_matrix(dollar[:, None], [2])])
    rows = cut(steps, first, len(dollar))
    x, y = x[rows], dollar[rows, None]
    desks = [name.removesuffix("_CLOSE") for name in BANK_OF_CANADA.columns]
    names = (*desks[:-1], *desks[:-1], desks[-1], desks[-1])
    owners = by_name(names, {desk: [desk] for desk in desks})
    return Stream(
        "Bank of Canada", x[:-1], y[1:], y[0], dates=tuple(sheet.dates[rows][1:]), input_names=names, owners=owners
    )
