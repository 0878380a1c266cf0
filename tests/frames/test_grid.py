"""Timestamps on a regular grid: gaps, repeats, irregular rows, clock changes, days and months."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
import pytz

import nashcast as nc
from nashcast.errors import InvalidInput
from nashcast.frames.calendar_inputs import calendar_inputs
from nashcast.frames.grid import Grid
from nashcast.frames.layout import TableLayout
from nashcast.frames.table import read_table
from nashcast.frames.times import from_clock, instants, step_length, to_clock

VIENNA = ZoneInfo("Europe/Vienna")


def at(*texts: str) -> np.ndarray:
    return np.array(texts, dtype="datetime64[us]")


def test_a_clock_change_neither_adds_nor_loses_an_hour():
    exact = np.arange(
        np.datetime64("2024-03-30T20", "us"), np.datetime64("2024-04-01T04", "us"), np.timedelta64(1, "h")
    )
    grid = Grid.of(exact, None, "Europe/Vienna")
    assert grid.places(exact).tolist() == list(range(len(exact)))
    assert (grid.times(np.arange(len(exact))) == exact).all()
    hours = grid.clock(np.arange(len(exact))).astype("datetime64[h]").astype(int) % 24
    assert 2 not in hours[4:7]  # 31 March: 01:00 is followed by 03:00


def test_days_stay_at_midnight_through_a_clock_change():
    midnights = [
        dt.datetime(2024, 3, 29 + k, tzinfo=VIENNA) if k < 3 else dt.datetime(2024, 4, k - 2, tzinfo=VIENNA)
        for k in range(6)
    ]
    exact, _ = instants("date", midnights, None)
    grid = Grid.of(exact, None, "Europe/Vienna")
    assert grid.places(exact).tolist() == list(range(6))
    assert (grid.times(np.arange(6)) == exact).all()


def test_months_have_no_fixed_length():
    exact = at("2024-01-01", "2024-02-01", "2024-03-01", "2024-05-01")
    grid = Grid.of(exact)
    assert grid.every == "month"
    assert grid.places(exact).tolist() == [0, 1, 2, 4]
    assert (grid.times(np.array([3])) == at("2024-04-01")).all()


def test_the_hour_that_comes_twice_and_the_one_that_does_not_exist():
    clock = at("2024-10-27T01:00", "2024-10-27T02:00", "2024-10-27T02:00", "2024-10-27T03:00")
    exact = from_clock(clock, VIENNA)
    assert np.diff(exact.astype(np.int64)).tolist() == [3_600_000_000] * 3
    assert (to_clock(exact, VIENNA) == clock).all()
    assert np.isnat(from_clock(at("2024-03-31T02:30"), VIENNA)).all()


def test_irregular_rows_count_for_the_place_at_which_they_were_known():
    exact = at("2024-01-01T00:07", "2024-01-01T01:02", "2024-01-01T02:31", "2024-01-01T03:16")
    grid = Grid.of(exact)
    assert grid.every == 3_600_000_000
    assert (
        grid.times(grid.places(exact)) == at("2024-01-01T01", "2024-01-01T02", "2024-01-01T03", "2024-01-01T04")
    ).all()
    assert (grid.times(grid.places(exact)) >= exact).all()


def test_gaps_are_missing_labels_and_the_last_of_repeated_rows_counts():
    times = ["2024-01-01 00:00", "2024-01-01 01:00", "2024-01-01 01:00", "2024-01-01 04:00", "2024-01-01 05:00"]
    table = read_table({"t": times, "y": [1.0, 2.0, 3.0, 4.0, None], "x": [1, 2, 3, 4, 5]})
    rows = TableLayout("y", ["x"], "t").read(table)
    np.testing.assert_array_equal(rows.targets[:, 0], [1.0, 3.0, np.nan, np.nan, 4.0, np.nan])
    np.testing.assert_array_equal(rows.inputs[:, 0], [1.0, 3.0, np.nan, np.nan, 4.0, 5.0])


def test_rows_in_any_order_are_sorted():
    order = [3, 0, 2, 1]
    times = [f"2024-01-01 0{k}:00" for k in order]
    rows = TableLayout("y", date="t").read(read_table({"t": times, "y": order}))
    assert rows.targets[:, 0].tolist() == [0, 1, 2, 3]


def test_categories_are_inputs_of_0_and_1_and_new_ones_are_missing():
    layout = TableLayout("y", ["sky"])
    rows = layout.read(read_table({"y": [1, 2, 3], "sky": ["sun", "rain", None]}))
    assert layout.input_names == ["sky=rain", "sky=sun"]
    np.testing.assert_array_equal(rows.inputs, [[0, 1], [1, 0], [np.nan, np.nan]])
    later = layout.read(read_table({"y": [4], "sky": ["snow"]}))
    assert np.isnan(later.inputs).all()


def test_calendar_inputs_are_those_of_the_next_target_on_the_local_clock():
    times = ["2024-12-24T22:00+00:00", "2024-12-24T23:00+00:00"]
    table = read_table({"t": times, "y": [1.0, 2.0]})
    layout = TableLayout(
        "y", date="t", calendar=["hour", "weekday", "holiday"], holidays=["2024-12-25"], timezone="Europe/Vienna"
    )
    # 22:00 in UTC is 23:00 in Vienna, and the target after it is of midnight: a Wednesday and a holiday.
    np.testing.assert_array_equal(layout.read(table).inputs, [[0, 2, 1], [1, 2, 1]])


def test_calendar_against_python():
    rng = np.random.default_rng(3)
    days = [dt.datetime(2020, 1, 1) + dt.timedelta(minutes=int(m)) for m in rng.integers(0, 3_000_000, 50)]
    made = calendar_inputs(np.array(days, dtype="datetime64[us]"), ["hour", "weekday", "month", "weekend", "day cycle"])
    for row, day in zip(made, days, strict=True):
        hour = day.hour + day.minute / 60
        want = [
            hour,
            day.weekday(),
            day.month,
            day.weekday() >= 5,
            np.sin(hour * np.pi / 12),
            np.cos(hour * np.pi / 12),
        ]
        np.testing.assert_allclose(row, want, atol=1e-12)


LENGTHS = [("15min", 900e6), ("1h", 3600e6), ("d", 86400e6), (60, 60e6), (dt.timedelta(hours=2), 7200e6)]


@pytest.mark.parametrize(("given", "microseconds"), [*LENGTHS, ("month", "month")])
def test_lengths_of_a_step(given, microseconds):
    assert step_length(given) == microseconds


def test_a_step_that_does_not_fit_the_rows_is_refused():
    with pytest.raises(InvalidInput, match="Pass the length of a step"):
        TableLayout("y", date="t", every="1s").read(read_table({"t": ["2024-01-01", "2024-02-01"], "y": [1, 2]}))


@pytest.mark.parametrize(
    "zone", [dt.timezone(dt.timedelta(hours=-5)), pytz.FixedOffset(-300), "Etc/GMT+5"], ids=["python", "pytz", "named"]
)
def test_a_frame_whose_zone_is_an_offset(zone):
    """As pvlib, databases and Arrow give it: hours on that clock, in a column and in the index."""
    times = pd.date_range("2024-03-10", periods=30, freq="h", tz=zone)
    table = pd.DataFrame({"t": times, "y": np.arange(30.0)})
    for frame, date in ((table, "t"), (table.set_index("t"), None)):
        federation = nc.Federation([nc.Agent(nc.encoders.Trend())], horizon=2)
        result = federation.backtest(frame, "y", date=date, calendar=["hour"])
        np.testing.assert_array_equal(result.targets[:, 0], np.arange(30.0))
        ahead = federation.forecast()
        assert [moment.hour for moment in ahead.index] == [6, 7]
        assert (ahead.index == times[-1] + pd.to_timedelta([1, 2], "h")).all()
