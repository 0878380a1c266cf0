"""A stream from any CSV or Parquet file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from nashcast import validation as check
from nashcast.datasets.base import Stream
from nashcast.datasets.files.csv_file import read_csv
from nashcast.datasets.files.parquet_file import read_parquet
from nashcast.datasets.files.sheet import Sheet, check_gaps, check_order, held
from nashcast.datasets.lagged import WARMUP, next_row
from nashcast.errors import InvalidInput
from nashcast.suggest import near


def table(
    path: str | Path,
    target: str | Sequence[str],
    inputs: str | Sequence[str] | None = None,
    lags: int | Mapping[str, int] = 1,
    date: str | None = None,
    scale: str | None = "causal",
    warmup: int = WARMUP,
    gaps: str = "refuse",
    steps: int | None = None,
    separator: str = ",",
    decimal: str = ".",
) -> Stream:
    """Forecast the targets of the next row from the inputs of this row and the rows before it.

    target, inputs: names of columns; the inputs are the targets themselves unless given.
    lags: how many rows of each input are known, 1 for the last alone; one number, or one for each column named.
    date: the column to check the order by; it is not an input.
    scale: "causal" subtracts the mean of the first `warmup` rows and divides by their standard deviation, and scores
    only later rows; "none" leaves the numbers as they are.   gaps: "refuse" empty cells, or "hold" the value above.
    steps: how many rows to forecast, from the first possible; all by default.   separator, decimal: for CSV files.
    """
    targets = _names("target", target)
    chosen = targets if inputs is None else _names("inputs", inputs)
    counts = _lag_counts(lags, chosen)
    one_of("scale", scale, ("causal", "none", None))
    one_of("gaps", gaps, ("refuse", "hold"))
    check.integer("warmup", warmup, min=2)
    if steps is not None:
        check.integer("steps", steps, min=1)
    if date is not None and not isinstance(date, str):
        raise InvalidInput("date", check.describe(date), "Pass the name of a column.")
    columns = list(dict.fromkeys([*targets, *chosen]))
    sheet = read_sheet(Path(path), columns, date, separator, decimal)
    if gaps == "hold":
        sheet = held(sheet)
    else:
        check_gaps(sheet, "fill them, or pass gaps='hold'")
    stream = next_row(
        str(path),
        sheet.numbers[:, [columns.index(name) for name in chosen]],
        sheet.numbers[:, [columns.index(name) for name in targets]],
        counts,
        warmup=warmup if scale == "causal" else None,
        steps=steps,
        dates=sheet.dates,
    )
    # In the order of `lag_matrix`: all columns of a row, then those of the row before.
    names = [name for lag in range(max(counts)) for name, count in zip(chosen, counts, strict=True) if count > lag]
    return stream._replace(input_names=tuple(names))


def read_sheet(path: Path, columns: Sequence[str], date: str | None, separator: str = ",", decimal: str = ".") -> Sheet:
    """The columns of a CSV or Parquet file, distinguished by their first bytes, with dates in order."""
    one_of("decimal", decimal, (".", ","))
    if not isinstance(separator, str) or len(separator) != 1 or separator.isalnum() or separator in '"\r\n.+-':
        raise InvalidInput("separator", check.describe(separator), "Pass the one character between two cells.")
    if path.is_dir() or not path.exists():
        got = f"the folder {path}" if path.is_dir() else f"{path}, which does not exist"
        raise InvalidInput("path", got, "Pass the path of a CSV or Parquet file.")
    try:
        with path.open("rb") as file:
            is_parquet = file.read(4) == b"PAR1"
        sheet = read_parquet(path, columns, date) if is_parquet else read_csv(path, columns, date, separator, decimal)
    except OSError as error:
        raise InvalidInput("path", f"{path}, which cannot be read ({error.strerror})", "Check the file.") from None
    if date is not None:
        check_order(sheet, date)
    return sheet


def one_of(argument: str, value, choices: Sequence) -> None:
    if value not in choices:
        named = ", ".join(repr(each) for each in choices if each is not None)
        raise InvalidInput(argument, check.describe(value), f"Pass one of {named}.")


def _names(argument: str, value) -> list[str]:
    names = [value] if isinstance(value, str) else list(value) if isinstance(value, Sequence) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidInput(argument, check.describe(value), "Pass the name of a column, or a list of names.")
    if len(set(names)) < len(names):
        raise InvalidInput(argument, check.describe(value), "Name every column once.")
    return names


def _lag_counts(lags, inputs: list[str]) -> list[int]:
    if not isinstance(lags, Mapping):
        return [check.integer("lags", lags, min=1)] * len(inputs)
    for name, count in lags.items():
        if name not in inputs:
            remedy = f"{near(name, inputs)}The inputs are {', '.join(repr(each) for each in inputs)}."
            raise InvalidInput("lags", f"{name!r}, which is no input", remedy)
        check.integer(f"lags of {name!r}", count, min=1)
    return [lags.get(name, 1) for name in inputs]
