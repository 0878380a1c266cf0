"""Columns of a Parquet file; every error message names its row, counted from 1."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nashcast.datasets.files.sheet import Sheet, moment, places
from nashcast.errors import InvalidInput
from nashcast.extras import needed


def read_parquet(path: Path, columns: Sequence[str], date: str | None) -> Sheet:
    """The named columns as numbers, and the dates. Only the named columns are read."""
    pyarrow = needed("pyarrow", "pyarrow", "parquet")
    parquet = needed("pyarrow.parquet", "pyarrow", "parquet")
    wanted = [*columns] if date is None else [*columns, date]
    try:
        file = parquet.ParquetFile(path)
        places(path, file.schema_arrow.names, wanted)
        table = file.read(columns=list(dict.fromkeys(wanted)))
    except pyarrow.ArrowException as error:
        remedy = "It is damaged: write it again."
        raise InvalidInput(f"{path}", f"an invalid Parquet file ({str(error).splitlines()[0][:80]})", remedy) from None
    if table.num_rows == 0:
        raise InvalidInput(f"{path}", "names of columns but no rows", "Add rows of numbers.")
    numbers = np.column_stack([_numbers(pyarrow, path, name, table.column(name)) for name in columns])
    rows = range(1, table.num_rows + 1)
    if date is None:
        return Sheet(path, "row", rows, tuple(columns), numbers)
    dates, moments = _dates(pyarrow, path, date, table.column(date))
    return Sheet(path, "row", rows, tuple(columns), numbers, moments, dates)


def _numbers(pyarrow, path: Path, name: str, column) -> np.ndarray:
    kind, types = column.type, pyarrow.types
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind)):
        remedy = "Store numbers, or choose another column."
        raise InvalidInput(f"{path}, column {name!r}", f"a column of type {kind}", remedy)
    values = np.array(column.cast(pyarrow.float64(), safe=False).to_numpy(), dtype=np.float64)
    if np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        remedy = "Write a finite number, or leave the cell empty."
        raise InvalidInput(f"{path}, row {row + 1}, column {name!r}", f"{values[row]}", remedy)
    return values


def _dates(pyarrow, path: Path, name: str, column) -> tuple[list, list]:
    kind, types = column.type, pyarrow.types
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InvalidInput(f"{path}, row {row + 1}, column {name!r}", "no date", "Give every row its date.")
    if types.is_timestamp(kind) or types.is_date(kind):
        # Integers, since Python's datetime has no nanoseconds.
        whole = pyarrow.int32() if types.is_date32(kind) else pyarrow.int64()
        return column.cast(pyarrow.string()).to_pylist(), column.cast(whole).to_pylist()
    texts = [str(value) for value in column.to_pylist()]
    return texts, [moment(f"{path}, row {row}, column {name!r}", text) for row, text in enumerate(texts, start=1)]
