"""Anybody's CSV or Parquet file: what becomes of it, and what it must not know."""

from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nashcast as nc
from nashcast.datasets import table

ROWS = 40
GOOD = "day,a,b\n2024-01-01,1,2\n2024-01-02,3,4\n2024-01-03,5,6\n"


@pytest.fixture
def numbers():
    rng = np.random.default_rng(5)
    return {"a": rng.normal(100, 3, ROWS), "b": rng.normal(size=ROWS).cumsum(), "c": rng.uniform(1, 2, ROWS)}


def days(rows=ROWS):
    return [(datetime(2024, 1, 1) + timedelta(days=i)).date().isoformat() for i in range(rows)]


def as_csv(path, columns, dates=None):
    names = [*columns] if dates is None else ["day", *columns]
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(repr(float(value)) for value in row) for row in rows]
    if dates is not None:
        lines = [f"{date},{line}" for date, line in zip(dates, lines, strict=True)]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")
    return path


def as_parquet(path, columns, dates=None):
    given = {} if dates is None else {"day": dates}
    pq.write_table(pa.table({**given, **columns}), path)
    return path


WRITERS = pytest.mark.parametrize("write", [as_csv, as_parquet])


@WRITERS
def test_the_next_row_from_this_one_and_those_before(write, numbers, tmp_path):
    path = write(tmp_path / "data", numbers, days())
    stream = table(path, ["a", "b"], ["b", "c"], lags={"b": 3, "c": 2}, date="day", scale="none")
    a, b, c = numbers.values()
    assert stream.name == str(path)
    assert stream.inputs.shape == (ROWS - 3, 5)
    np.testing.assert_array_equal(stream.start, [a[2], b[2]])
    for step in range(ROWS - 3):
        i = step + 2
        assert stream.inputs[step].tolist() == [b[i], c[i], b[i - 1], c[i - 1], b[i - 2]]
        assert stream.targets[step].tolist() == [a[i + 1], b[i + 1]]
        assert stream.dates[step] == days()[i + 1]
    np.testing.assert_array_equal(stream.in_units(stream.targets), stream.targets)


@WRITERS
def test_alone_a_target_is_its_own_input(write, numbers, tmp_path):
    stream = table(write(tmp_path / "data", numbers), "a", scale=None)
    np.testing.assert_array_equal(stream.inputs[:, 0], numbers["a"][:-1])
    np.testing.assert_array_equal(stream.targets[:, 0], numbers["a"][1:])
    assert stream.dates == ()


@WRITERS
def test_the_causal_scale_is_that_of_the_first_rows_and_goes_back(write, numbers, tmp_path):
    stream = table(write(tmp_path / "data", numbers), "a", ["a", "b"], lags=2, warmup=10)
    assert stream.targets.shape == (ROWS - 10, 1)
    first = numbers["a"][:10]
    np.testing.assert_allclose(stream.offset, first.mean())
    np.testing.assert_allclose(stream.unit, first.std())
    np.testing.assert_allclose(stream.in_units(stream.targets)[:, 0], numbers["a"][10:], rtol=1e-13)
    np.testing.assert_allclose(stream.in_units(stream.start), numbers["a"][9])
    b = (numbers["b"] - numbers["b"][:10].mean()) / numbers["b"][:10].std()
    np.testing.assert_allclose(stream.inputs[:, 1], b[9:-1])
    np.testing.assert_allclose(stream.inputs[:, 3], b[8:-2])


def test_more_lags_than_warmup(numbers, tmp_path):
    stream = table(as_csv(tmp_path / "data", numbers), "a", lags=15, warmup=10)
    assert stream.inputs.shape == (ROWS - 15, 15)
    np.testing.assert_allclose(stream.in_units(stream.inputs[0]), numbers["a"][14::-1], rtol=1e-13)


def test_columns_that_do_not_move_while_the_scale_is_taken(tmp_path):
    still = {"zero": np.repeat([0.0, 3.0], [10, 30]), "tenth": np.repeat([0.1, 0.2], [10, 30])}
    stream = table(as_csv(tmp_path / "data", still), ["zero", "tenth"], warmup=10)
    np.testing.assert_allclose(stream.targets[-1], [3.0, 1.0])  # as it is; once its size above itself
    np.testing.assert_allclose(stream.in_units(stream.targets[-1]), [3.0, 0.2])


def test_fewer_steps(numbers, tmp_path):
    path = as_csv(tmp_path / "data", numbers, days())
    some, all_of_them = (table(path, "a", lags=2, warmup=10, date="day", steps=steps) for steps in (7, None))
    np.testing.assert_array_equal(some.inputs, all_of_them.inputs[:7])
    np.testing.assert_array_equal(some.targets, all_of_them.targets[:7])
    assert some.dates == all_of_them.dates[:7]


@WRITERS
@pytest.mark.parametrize("t", [0, 1, 20])
@pytest.mark.parametrize("scale", ["none", "causal"])
def test_another_future_changes_no_earlier_step(write, t, scale, numbers, tmp_path):
    options = {"inputs": ["a", "b"], "lags": {"a": 3}, "scale": scale, "warmup": 10, "gaps": "hold"}
    old = table(write(tmp_path / "old", numbers), "a", **options)
    last_known = ROWS - 1 - len(old.targets) + t  # when step t is to be forecast
    for change in (7.0, np.nan):
        changed = {name: np.where(np.arange(ROWS) > last_known, change * v, v) for name, v in numbers.items()}
        new = table(write(tmp_path / "new", changed), "a", **options)
        np.testing.assert_array_equal(new.inputs[: t + 1], old.inputs[: t + 1])
        np.testing.assert_array_equal(new.targets[:t], old.targets[:t])
        np.testing.assert_array_equal(new.start, old.start)
        np.testing.assert_array_equal(new.offset, old.offset)
        np.testing.assert_array_equal(new.unit, old.unit)
        assert not np.array_equal(new.targets[t], old.targets[t])


@WRITERS
def test_gaps_are_held_forward_and_never_backward(write, tmp_path):
    nan = np.nan
    columns = {"a": np.array([nan, 1, nan, nan, 4, 5]), "b": np.array([nan, nan, 2, nan, 3, nan])}
    stream = table(write(tmp_path / "data", columns, days(6)), ["a", "b"], scale="none", gaps="hold", date="day")
    np.testing.assert_array_equal(stream.start, [1, 2])  # the first row for which both are known
    np.testing.assert_array_equal(stream.targets, [[1, 2], [4, 3], [5, 3]])
    assert stream.dates == tuple(days(6)[3:])


@pytest.mark.parametrize("word", ["", "  ", "NA", "n/a", "NaN", "null", "None"])
def test_every_word_for_an_empty_cell(word, tmp_path):
    (tmp_path / "data.csv").write_text(f"a,b\n1,1\n{word},2\n3,3\n")
    with pytest.raises(nc.InvalidInput, match=r"line 3, column 'a': got an empty cell\."):
        table(tmp_path / "data.csv", "a", scale="none")
    assert table(tmp_path / "data.csv", "a", scale="none", gaps="hold").targets[:, 0].tolist() == [1, 3]


def test_what_other_programs_write_is_read(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode() + b"\r\n\r\n")  # a BOM, Windows' line ends
    assert table(path, "a", date="day", scale="none").targets[:, 0].tolist() == [3, 5]
    path.write_text('day;a\n1;"1,5"\n2; -2,5e1 \n3;+3\n')
    stream = table(path, "a", date="day", scale="none", separator=";", decimal=",")
    assert [*stream.start, *stream.targets[:, 0]] == [1.5, -25, 3]
    path.write_text('0,1\n5,"6,5"\n7,8\n')  # names that are numbers; decimal commas in quotation marks
    assert table(path, "1", scale="none", decimal=",").start.tolist() == [6.5]
    path.write_text("a,remark\n1,fine\n2,\n")  # other columns may hold anything
    assert table(path, "a", scale="none").targets.tolist() == [[2.0]]


@pytest.mark.parametrize("dates", [[20240101, 20240102, 20240103], [1.5, 2.5, 10], ["9", "10", "11.5"]])
@WRITERS
def test_rows_may_be_numbered_instead_of_dated(write, dates, tmp_path):
    kind = str if isinstance(dates[0], str) else float
    path = write(tmp_path / "data", {"a": np.arange(3.0)}, [kind(each) for each in dates])
    assert len(table(path, "a", date="day", scale="none").targets) == 2


@pytest.mark.parametrize(
    "kind", [pa.timestamp("ns"), pa.timestamp("s"), pa.timestamp("us", tz="UTC"), pa.date32(), pa.date64()]
)
def test_dates_in_parquet(kind, tmp_path):
    good = [datetime(2024, 1, day) for day in (1, 2, 3)]
    for dates, words in ((good, None), (good[::-1], "row 2, column 'day': got"), (good[:2] + good[1:2], "again, as")):
        day = pa.array(dates, pa.timestamp("us")).cast(kind)
        pq.write_table(pa.table({"day": day, "a": [1, 2, 3]}), tmp_path / "data.parquet")
        if words is None:
            assert table(tmp_path / "data.parquet", "a", date="day", scale="none").dates[0].startswith("2024-01-02")
        else:
            with pytest.raises(nc.InvalidInput, match=words):
                table(tmp_path / "data.parquet", "a", date="day", scale="none")


def test_parquet_integers_and_decimals_are_numbers(tmp_path):
    from decimal import Decimal

    columns = {"a": pa.array([1, 2, 3], pa.int8()), "b": [Decimal("1.25"), Decimal("2.50"), Decimal("3.75")]}
    pq.write_table(pa.table(columns), tmp_path / "data.parquet")
    assert table(tmp_path / "data.parquet", ["a", "b"], scale="none").targets.tolist() == [[2, 2.5], [3, 3.75]]
