"""A CSV or Parquet file as a table: a column is numbers if all its cells are numbers, else texts."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from nashcast.datasets.files.csv_file import EMPTY
from nashcast.errors import InvalidInput
from nashcast.extras import needed
from nashcast.frames.table import Table, read_table


def read_file(path: str | Path, separator: str = ",") -> Table:
    """The whole file. Empty cells are missing."""
    path = Path(path)
    if not path.is_file():
        raise InvalidInput("file", f"{path}, which is no file", "Pass the path of a CSV or Parquet file.")
    try:
        with path.open("rb") as file:
            is_parquet = file.read(4) == b"PAR1"
        return read_table(_parquet(path) if is_parquet else _csv(path, separator))
    except OSError as error:
        raise InvalidInput("file", f"{path}, which cannot be read ({error.strerror})", "Check the file.") from None


def _csv(path: Path, separator: str) -> dict[str, Any]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter=separator, strict=True)
            rows = [row for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput("file", f"{path}, which is no CSV file ({error})", "Save it as UTF-8 CSV.") from None
    if len(rows) < 2:
        raise InvalidInput("file", f"{path} without rows", "Pass one with a line of names and lines of values.")
    header = [name.strip() for name in rows[0]]
    if len(set(header)) < len(header):
        raise InvalidInput("file", f"{path} with a column name twice", "Give every column a name of its own.")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            got = f"{len(row)} cells in row {number} of {path}, where the first row has {len(header)}"
            raise InvalidInput("file", got, "Check the separator and the row.")
    return {name: _column([row[i].strip() for row in rows[1:]]) for i, name in enumerate(header)}


def _column(cells: list[str]) -> np.ndarray | list[Any]:
    empty = [cell.lower() in EMPTY for cell in cells]
    try:
        return np.array([np.nan if none else float(cell) for cell, none in zip(cells, empty, strict=True)])
    except ValueError:
        return [None if none else cell for cell, none in zip(cells, empty, strict=True)]


def _parquet(path: Path) -> Any:
    pyarrow, parquet = needed("pyarrow", "pyarrow", "parquet"), needed("pyarrow.parquet", "pyarrow", "parquet")
    try:
        return parquet.read_table(path)
    except pyarrow.ArrowException as error:
        got = f"{path}, which is no Parquet file ({str(error).splitlines()[0][:80]})"
        raise InvalidInput("file", got, "It is damaged: write it again.") from None
