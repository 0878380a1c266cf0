"""One table as columns of arrays: pandas, polars and others through narwhals, and dicts of columns."""

from __future__ import annotations

import datetime as dt
import importlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.frames.times import INSTANT

DICT = "dict"


class Table(NamedTuple):
    """columns: numbers, texts or timestamps, by name.   index: timestamps beside the columns, if the table has any.

    index_name: its name.   zones: zones of columns of instants, if any.   library: "pandas", "polars", … or "dict".
    """

    columns: dict[str, np.ndarray]
    rows: int
    row_times: np.ndarray | None = None
    index_name: str | None = None
    zones: Mapping[str | None, str] = MappingProxyType({})
    library: str = DICT


def narwhals() -> Any:
    """The package; raises InvalidInput with the install command if it is missing."""
    try:
        return importlib.import_module("narwhals")
    except ModuleNotFoundError:
        raise InvalidInput("table", "no package narwhals", "Install it: pip install 'nashcast[frames]'.") from None


def is_table(value: Any) -> bool:
    """Whether the value has several named columns: a frame, or a dict of columns."""
    if isinstance(value, Mapping):
        return bool(value) and all(_is_column(each) for each in value.values())
    return hasattr(value, "columns") or hasattr(value, "__dataframe__")


def read_table(value: Any) -> Table:
    """Read any kind of table. Raises InvalidInput for other values."""
    if isinstance(value, Mapping):
        return _of_dict(value)
    if not is_table(value):
        remedy = "Pass a pandas or polars DataFrame, or a dict of columns."
        raise InvalidInput("table", check.describe(value), remedy)
    nw = narwhals()
    names = list(getattr(value, "columns", ()))
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InvalidInput("table", f"two columns {repeated!r}", "Give every column a name of its own.")
    try:
        frame = nw.from_native(value, eager_only=True)
    except TypeError:
        remedy = "Pass a pandas or polars DataFrame (collect a lazy one first), or a dict of columns."
        raise InvalidInput("table", check.describe(value), remedy) from None
    zones: dict[str | None, str] = {}
    columns = {}
    for name in frame.columns:
        if not isinstance(name, str):
            raise InvalidInput("table", f"the column name {check.describe(name)}", "Name every column by a text.")
        columns[name] = _array(nw, frame[name], zones)
    library = str(frame.implementation).lower().removeprefix("implementation.")
    index = index_name = None
    own_index = getattr(value, "index", None)
    if own_index is not None and type(own_index).__name__ == "DatetimeIndex":
        if own_index.tz is not None:
            zones[None] = str(own_index.tz)
            own_index = own_index.tz_convert("UTC").tz_localize(None)
        index, index_name = own_index.to_numpy().astype(INSTANT), value.index.name
    return Table(columns, len(frame), index, index_name, zones, library)


def _array(nw: Any, series: Any, zones: dict[str | None, str]) -> np.ndarray:
    dtype = series.dtype
    if isinstance(dtype, nw.Datetime):
        if dtype.time_zone is not None:
            zones[series.name] = str(dtype.time_zone)
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return series.to_numpy().astype(INSTANT)
    if dtype == nw.Date:
        return np.array(series.to_list(), dtype="datetime64[D]").astype(INSTANT)
    if dtype.is_numeric() or dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy()
        return np.asarray(values, dtype=np.float64)
    return np.array(series.to_list(), dtype=object)


def _of_dict(value: Mapping) -> Table:
    columns: dict[str, np.ndarray] = {}
    for name, each in value.items():
        if not isinstance(name, str):
            raise InvalidInput("table", f"the column name {check.describe(name)}", "Name every column by a text.")
        if not _is_column(each):
            raise InvalidInput(f"column {name!r}", check.describe(each), "Pass a list or an array.")
        columns[name] = _plain(_column(each))
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidInput("table", f"columns of lengths {lengths}", "Pass columns of one length.")
    return Table(columns, next(iter(lengths.values()), 0))


def _column(values: Any) -> np.ndarray:
    """One entry per row, of any type: pictures are arrays themselves."""
    try:
        found = np.asarray(values)
    except ValueError:  # pictures of different sizes
        found = None
    if found is None or found.ndim != 1:
        found = np.full(len(values), None, dtype=object)
        for i, value in enumerate(values):
            found[i] = value
    return found


def _plain(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    if values.dtype.kind == "M":
        return values.astype(INSTANT)
    # Texts, or numbers mixed with None.
    return values.astype(object)


def _is_column(value: Any) -> bool:
    if isinstance(value, str | bytes | Mapping):
        return False
    return (isinstance(value, Sequence) or hasattr(value, "to_numpy") or isinstance(value, np.ndarray)) and (
        not isinstance(value, np.ndarray) or value.ndim == 1
    )


def write_table(columns: Mapping[str, Any], library: str, index: str | None = None) -> Any:
    """A native table of the library. index: the column that becomes the index of a pandas table.

    Columns of aware datetimes keep their zone. Without a library: a dict of arrays.
    """
    if library == DICT:
        return {name: np.asarray(_naive(values)) for name, values in columns.items()}
    nw = narwhals()
    try:
        native = importlib.import_module(library)
    except ImportError:
        remedy = "Pass a library that narwhals knows and that is installed: 'pandas', 'polars', or 'dict'."
        raise InvalidInput("library", check.describe(library), remedy) from None
    if library == "pandas":
        frame = native.DataFrame({name: native.Series(values) for name, values in columns.items()})
        return frame if index is None else frame.set_index(index)
    return nw.from_dict(dict(columns), backend=library).to_native()


def _naive(values: Any) -> Any:
    aware = isinstance(values, list) and values and isinstance(values[0], dt.datetime) and values[0].tzinfo is not None
    return [value.replace(tzinfo=None) for value in values] if aware else values


def best_library() -> str:
    """Pandas if it is installed, else polars, else dicts."""
    from importlib.util import find_spec

    return next((name for name in ("pandas", "polars") if find_spec(name) and find_spec("narwhals")), DICT)
