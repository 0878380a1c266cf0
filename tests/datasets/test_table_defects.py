"""Every defect of a table is refused, by its file, line and column, with a remedy."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nashcast as nc
from nashcast.datasets import table


def refused(path, *arguments, **options):
    with pytest.raises(nc.InvalidInput) as caught:
        table(path, *arguments, **options)
    return str(caught.value)


GOOD = "day,a,b\n2024-01-01,1,2\n2024-01-02,3,4\n2024-01-03,5,6\n"

DEFECTS = {
    "gaps": (
        "day,a,b\n2024-01-01,1,\n2024-01-02,,\n",
        {"target": ["a", "b"]},
        ", line 2, column 'b': got an empty cell. In all 3 cells are empty: fill them, or pass gaps='hold'.",
    ),
    "a column without numbers": (
        "a,b\n1,\n2,\n",
        {"target": "b", "gaps": "hold"},
        ", column 'b': got no number at all. Choose another column.",
    ),
    "text": (
        GOOD.replace("3,4", "3,four"),
        {"target": "b"},
        ", line 3, column 'b': got 'four'. Write a plain number such as -1.5e3, or leave the cell empty.",
    ),
    "infinity": (
        GOOD.replace("3,4", "3,-inf"),
        {"target": "b"},
        ", line 3, column 'b': got '-inf'. Write a plain number",
    ),
    "underscores": (
        GOOD.replace("3,4", "3,1_000"),
        {"target": "b"},
        ", line 3, column 'b': got '1_000'. Write a plain",
    ),
    "a decimal comma": (
        GOOD.replace("3,4", '3,"4,5"'),
        {"target": "b"},
        ", line 3, column 'b': got '4,5'. If this is a decimal comma, pass decimal=','; if it separates",
    ),
    "points beside decimal commas": (
        "a;b\n1;2\n3;1.234,5\n",
        {"target": "b", "separator": ";", "decimal": ","},
        ", line 3, column 'b': got '1.234,5'. Write a plain number",
    ),
    "semicolons": (
        GOOD.replace(",", ";"),
        {},
        ": got no column 'a'. Its cells are separated by semicolons: pass separator=';'.",
    ),
    "tabs": (
        GOOD.replace(",", "\t"),
        {},
        ": got no column 'a'. Its cells are separated by tabs: pass separator='\\t'.",
    ),
    "commas": (GOOD, {"separator": ";"}, ": got no column 'a'. Its cells are separated by commas: pass separator=','."),
    "a repeated date": (
        GOOD.replace("01-03", "01-02"),
        {"date": "day"},
        ", line 4, column 'day': got '2024-01-02' again, as '2024-01-02' at line 3. Every row needs its own",
    ),
    "a date written twice differently": (
        GOOD.replace("2024-01-03", "2024-01-02T00:00"),
        {"date": "day"},
        ", line 4, column 'day': got '2024-01-02T00:00' again, as '2024-01-02' at line 3.",
    ),
    "unsorted dates": (
        GOOD.replace("01-03", "01-01"),
        {"date": "day"},
        ", line 4, column 'day': got '2024-01-01' after '2024-01-02' at line 3. Sort the file by 'day', oldest first.",
    ),
    "dates in words": (
        GOOD.replace("2024-01-03", "3 Jan 2024"),
        {"date": "day"},
        ", line 4, column 'day': got '3 Jan 2024'. Write dates as 2024-01-31 or 2024-01-31T12:00:00",
    ),
    "no date": (GOOD.replace("2024-01-03", ""), {"date": "day"}, ", line 4, column 'day': got no date. Write dates as"),
    "dates and numbers": (
        GOOD.replace("2024-01-03", "3"),
        {"date": "day"},
        ", line 4, column 'day': got '3' after '2024-01-02' at line 3. Write all dates alike: all numbers, or",
    ),
    "some time zones": (GOOD.replace("01-03", "01-03T00:00+01:00"), {"date": "day"}, "all with a time zone, or none."),
    "a missing column": (
        GOOD,
        {"target": "A1"},
        ": got no column 'A1'. Did you mean 'a'? The columns are 'day', 'a', 'b'.",
    ),
    "a missing input": (
        GOOD,
        {"inputs": ["a", "weather"]},
        ": got no column 'weather'. The columns are 'day', 'a', 'b'.",
    ),
    "a missing date column": (GOOD, {"date": "dya"}, ": got no column 'dya'. Did you mean 'day'? The columns"),
    "two columns of one name": ("a,a\n1,2\n3,4\n", {}, ": got 2 columns 'a'. Give every column its own name."),
    "an empty file": ("", {}, ": got an empty file. Pass one with a line of names and lines of numbers."),
    "an empty first line": ("\n1,2\n", {}, ", line 1: got an empty line. The first line must name the columns."),
    "no rows": ("a,b\n", {}, ": got names of columns but no rows. Add rows of numbers."),
    "a row with too few cells": ("a,b\n1,2\n3\n", {}, ", line 3: got 1 cell. The first line names 2 columns."),
    "a row with too many cells": (
        "a,b\n1,2\n3,4,5\n",
        {},
        " Put cells that contain the separator in quotation marks; for decimal commas, separate by semicolons.",
    ),
    "an empty line among rows": (
        "a,b\n1,2\n\n3,4\n",
        {},
        ", line 3: got an empty line. Remove it, or write a row there.",
    ),
    "no header": (
        GOOD.partition("\n")[2],
        {},
        ": got no column 'a'. The first line holds no names: write the columns' names above the numbers.",
    ),
    "an open quotation mark": (
        'a,b\n1,"2\n3,4\n',
        {},
        "got invalid CSV (unexpected end of data). Check its quotation marks.",
    ),
    "a quotation mark in a cell": ('a,b\n1,2\n"3"4,5\n', {}, ", line 3: got invalid CSV ("),
    "one row": ("a\n1\n", {}, ": got 1 row. Wanted are 1 to forecast, and before them 1 with lags. Pass fewer lags"),
    "fewer rows than lags": (
        "a\n1\n2\n3\n",
        {"lags": 3},
        ": got 3 rows. Wanted are 1 to forecast, and before them 3 with lags.",
    ),
    "fewer rows than steps": (GOOD, {"steps": 3}, "got 3 rows. Wanted are 3 to forecast, and before them 1 with lags."),
    "fewer rows than warmup": (
        GOOD,
        {"scale": "causal"},
        "1 with lags, 100 to take the scale from. Pass fewer lags, a smaller warmup or scale 'none'.",
    ),
}


@pytest.mark.parametrize(("text", "options", "words"), DEFECTS.values(), ids=DEFECTS)
def test_a_defect_is_refused_and_named(text, options, words, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(text)
    message = refused(path, **{"target": "a", "scale": "none", **options})
    assert message.startswith(str(path))
    assert words in message


BYTES = {
    "Latin-1": (
        GOOD.replace("3,4", "3,4\xe9").encode("latin-1"),
        ", line 3: got bytes that are not UTF-8. Save the file as UTF-8.",
    ),
    "UTF-16": (GOOD.encode("utf-16"), ": got a file that is no text. Save it as UTF-8: it is UTF-16."),
    "gzip": (
        b"\x1f\x8b\x08\x00\xff\xff\xff",
        ": got a file that is no text. Unpack it first: it is compressed with gzip.",
    ),
    "a spreadsheet": (
        b"PK\x03\x04\xff\xff\xff",
        ": got a file that is no text. Export it as CSV: it is a zip archive or a spreadsheet.",
    ),
    "damaged Parquet": (b"PAR1 and no more", ": got an invalid Parquet file ("),
}


@pytest.mark.parametrize(("content", "words"), BYTES.values(), ids=BYTES)
def test_bytes_that_are_no_text_are_refused(content, words, tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    assert refused(path, "a").startswith(str(path) + words)


def test_a_wrong_line_far_into_a_long_file_is_named(tmp_path):
    lines = [b"a"] + [b"%d" % i for i in range(50_000)]
    lines[41_234] = "4\xe9".encode("latin-1")
    (tmp_path / "data.csv").write_bytes(b"\n".join(lines))
    assert ", line 41235: got bytes that are not UTF-8" in refused(tmp_path / "data.csv", "a")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a": ["1", "2"]}, ", column 'a': got a column of type string. Store numbers, or choose another column."),
        ({"a": [True, False]}, ", column 'a': got a column of type bool."),
        ({"a": [1.0, np.inf]}, ", row 2, column 'a': got inf. Write a finite number, or leave the cell empty."),
        ({"a": [1, None, 3]}, ", row 2, column 'a': got an empty cell. In all 1 cell is empty:"),
        ({"b": [1, 2]}, ": got no column 'a'. The columns are 'b'."),
        ({"a": pa.array([], pa.float64())}, ": got names of columns but no rows."),
        ({"a": pa.nulls(3)}, ", row 1, column 'a': got an empty cell. In all 3 cells are empty:"),
    ],
)
def test_defects_in_parquet(columns, words, tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table(columns), path)
    assert refused(path, "a", scale="none").startswith(str(path) + words)


def test_a_parquet_row_without_a_date(tmp_path):
    pq.write_table(pa.table({"day": ["2024-01-01", None], "a": [1, 2]}), tmp_path / "data.parquet")
    words = "row 2, column 'day': got no date. Give every row its date."
    assert words in refused(tmp_path / "data.parquet", "a", date="day", scale="none")


def test_parquet_without_its_package(tmp_path, monkeypatch):
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "data")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    words = "stream: got no package pyarrow. Install it: pip install 'nashcast[parquet]'."
    assert refused(tmp_path / "data", "a") == words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": 3}, "target: got int 3. Pass the name of a column, or a list of names."),
        ({"target": []}, "target: got list []. Pass the name of a column, or a list of names."),
        ({"target": ["a", "a"]}, "target: got list ['a', 'a']. Name every column once."),
        ({"inputs": ["a", 4]}, "inputs: got list ['a', 4]. Pass the name"),
        ({"lags": 0}, "lags: got int 0. Pass a whole number ≥ 1."),
        ({"lags": {"a": 0}}, "lags of 'a': got int 0. Pass a whole number ≥ 1."),
        ({"lags": {"b": 2}}, "lags: got 'b', which is no input. The inputs are 'a'."),
        (
            {"inputs": ["hour", "a"], "lags": {"hours": 2}},
            "lags: got 'hours', which is no input. Did you mean 'hour'? The",
        ),
        ({"date": 4}, "date: got int 4. Pass the name of a column."),
        ({"scale": "slice"}, "scale: got str 'slice'. Pass one of 'causal', 'none'."),
        ({"gaps": "fill"}, "gaps: got str 'fill'. Pass one of 'refuse', 'hold'."),
        ({"warmup": 1}, "warmup: got int 1. Pass a whole number ≥ 2."),
        ({"steps": 0}, "steps: got int 0. Pass a whole number ≥ 1."),
        ({"separator": ";;"}, "separator: got str ';;'. Pass the one character between two cells."),
        ({"separator": "x"}, "separator: got str 'x'. Pass the one character between two cells."),
        ({"decimal": ";"}, "decimal: got str ';'. Pass one of '.', ','."),
    ],
)
def test_bad_options_are_refused(options, words, tmp_path):
    (tmp_path / "data.csv").write_text(GOOD)
    assert refused(tmp_path / "data.csv", **{"target": "a", "scale": "none", **options}).startswith(words)


def test_a_path_that_is_no_file(tmp_path):
    words = f"path: got {tmp_path / 'no.csv'}, which does not exist. Pass the path of a CSV or Parquet file."
    assert refused(tmp_path / "no.csv", "a") == words
    assert refused(tmp_path, "a") == f"path: got the folder {tmp_path}. Pass the path of a CSV or Parquet file."
