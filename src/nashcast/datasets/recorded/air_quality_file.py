"""The file of UCI's Air Quality: with commas and decimal points, or with semicolons and decimal commas as published."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path

import numpy as np

from nashcast.datasets.files.csv_file import read_csv
from nashcast.datasets.files.sheet import Sheet, check_order
from nashcast.errors import InvalidInput

SENSORS = ("PT08.S1(CO)", "PT08.S2(NMHC)", "PT08.S3(NOx)", "PT08.S4(NO2)", "PT08.S5(O3)")
WEATHER = ("T", "RH", "AH")
COLUMNS = ("CO(GT)", "NOx(GT)", "NO2(GT)", *SENSORS, *WEATHER)
# Code of a missing value.
MISSING = -200.0
_DATE, _TIME, _FORM = "Date", "Time", "%d/%m/%Y %H.%M.%S"


def read_air_quality(path: Path) -> Sheet:
    """Its columns, -200 where a value is missing, with dates. Empty rows at its end are left out."""
    semicolons = _header(path).count(";") > _header(path).count(",")
    separator, decimal = (";", ",") if semicolons else (",", ".")
    sheet = read_csv(path, COLUMNS, None, separator, decimal)
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.DictReader(file, delimiter=separator) if (row.get(_DATE) or "").strip()]
    if np.isfinite(sheet.numbers[len(rows) :]).any():
        raise InvalidInput(sheet.where(len(rows)), "a row without a date", "Write its date, or remove it.")
    moments = [_moment(sheet.where(i, _DATE), f"{row[_DATE]} {row.get(_TIME)}") for i, row in enumerate(rows)]
    found = sheet._replace(
        at=sheet.at[: len(rows)], numbers=sheet.numbers[: len(rows)], moments=moments,
        dates=[moment.isoformat(sep=" ") for moment in moments],
    )  # fmt: skip
    check_order(found, _DATE)
    return found


def _header(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            return file.readline()
    except OSError as error:
        raise InvalidInput("path", f"{path}, which cannot be read ({error.strerror})", "Check the file.") from None


def _moment(where: str, text: str) -> datetime:
    try:
        return datetime.strptime(text, _FORM)
    except ValueError:
        raise InvalidInput(where, repr(text), "Write dates as 31/12/2004 and times as 18.00.00.") from None
