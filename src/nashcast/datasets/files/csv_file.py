"""Columns of a CSV file; every error message names its line."""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Sequence
from math import inf, nan
from pathlib import Path

import numpy as np

from nashcast.datasets.files.sheet import Sheet, moment, places
from nashcast.errors import InvalidInput

EMPTY = {"", "na", "n/a", "nan", "null", "none"}
_COMMA = re.compile(r"[-+]?\d+,\d+")
# First bytes of files that are not text.
_KINDS = {
    b"\x1f\x8b": "Unpack it first: it is compressed with gzip.",
    b"PK": "Export it as CSV: it is a zip archive or a spreadsheet.",
    b"\xff\xfe": "Save it as UTF-8: it is UTF-16.",
    b"\xfe\xff": "Save it as UTF-8: it is UTF-16.",
}


def read_csv(path: Path, columns: Sequence[str], date: str | None, separator: str = ",", decimal: str = ".") -> Sheet:
    """The named columns as numbers, and the dates. Only the named columns are read."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, delimiter=separator, strict=True)
        try:
            return _parsed(path, reader, columns, date, decimal)
        except UnicodeDecodeError:
            raise _no_text(path) from None
        except csv.Error as error:
            remedy = "Check its quotation marks." if "NUL" not in str(error) else "It is damaged, or no CSV file."
            raise InvalidInput(f"{path}, line {reader.line_num}", f"invalid CSV ({error})", remedy) from None


def _parsed(path: Path, reader, columns: Sequence[str], date: str | None, decimal: str) -> Sheet:
    header = [name.strip() for name in next(reader, [])]
    if not any(header):
        if reader.line_num == 0:
            raise InvalidInput(f"{path}", "an empty file", "Pass one with a line of names and lines of numbers.")
        raise InvalidInput(f"{path}, line 1", "an empty line", "The first line must name the columns.")
    wanted = [*columns] if date is None else [*columns, date]
    where = places(path, header, wanted, _better_remedy(header, wanted))
    found, lines = [array("d") for _ in columns], array("q")
    dates, moments = [], []
    blank = 0
    for row in reader:
        line = reader.line_num
        if not row:
            blank = blank or line
            continue
        if blank:
            raise InvalidInput(f"{path}, line {blank}", "an empty line", "Remove it, or write a row there.")
        if len(row) != len(header):
            raise _ragged(path, line, len(row), len(header))
        for name, j, values in zip(columns, where, found, strict=False):
            text = row[j].strip()
            try:
                values.append(_number(text, decimal))
            except ValueError:
                remedy = _remedy_for(text)
                raise InvalidInput(f"{path}, line {line}, column {name!r}", repr(text[:60]), remedy) from None
        if date is not None:
            dates.append(row[where[-1]].strip())
            moments.append(moment(f"{path}, line {line}, column {date!r}", dates[-1]))
        lines.append(line)
    if not lines:
        raise InvalidInput(f"{path}", "names of columns but no rows", "Add rows of numbers.")
    return Sheet(path, "line", lines, tuple(columns), np.column_stack(found), moments, dates)


def _number(text: str, decimal: str) -> float:
    """The number in a cell, NaN if it is empty. Raises ValueError for anything but a plain finite number."""
    if decimal == ",":
        if "." in text:
            raise ValueError
        text = text.replace(",", ".")
    try:
        value = float(text)
    except ValueError:
        if text.lower() in EMPTY:
            return nan
        raise
    if "_" in text or value in (inf, -inf):
        raise ValueError
    return value


def _remedy_for(text: str) -> str:
    if _COMMA.fullmatch(text):
        return "If this is a decimal comma, pass decimal=','; if it separates thousands, take it out."
    return "Write a plain number such as -1.5e3, or leave the cell empty."


def _better_remedy(header: list[str], wanted: list[str]) -> str:
    """A remedy for files whose first line has none of the names."""
    if any(name in header for name in wanted):
        return ""
    for separator, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars"), (",", "commas")):
        if len(header) == 1 and separator in header[0]:
            return f"Its cells are separated by {word}: pass separator={separator!r}."
    if all(_is_value(name) for name in header):
        return "The first line holds no names: write the columns' names above the numbers."
    return ""


def _is_value(text: str) -> bool:
    try:
        moment("", text)
    except InvalidInput:
        return False
    return True


def _ragged(path: Path, line: int, got: int, wanted: int) -> InvalidInput:
    remedy = f"The first line names {wanted} columns."
    if got > wanted:
        remedy += (
            " Put cells that contain the separator in quotation marks; for decimal commas, separate by semicolons."
        )
    return InvalidInput(f"{path}, line {line}", f"{got} cell{'' if got == 1 else 's'}", remedy)


def _no_text(path: Path) -> InvalidInput:
    content = path.read_bytes()
    for beginning, remedy in _KINDS.items():
        if content.startswith(beginning):
            return InvalidInput(f"{path}", "a file that is no text", remedy)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return InvalidInput(f"{path}, line {line}", "bytes that are not UTF-8", "Save the file as UTF-8.")
    return InvalidInput(f"{path}", "a file that changes while it is read", "Run the command again.")
