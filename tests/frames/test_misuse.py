"""Forty ways to call the tables, backtests and quantiles wrongly: each is refused in nashcast's own words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import nashcast as nc
from nashcast.errors import NashcastError

TABLE = {"t": ["2024-01-01 00:00", "2024-01-01 01:00", "2024-01-01 02:00"], "y": [1.0, 2.0, 3.0], "x": [1.0, 2.0, 3.0]}


def fed(**settings):
    return nc.Federation([nc.Agent(nc.encoders.Trend())], horizon=2, **settings)


def ran():
    federation = fed()
    federation.backtest(TABLE, target="y", date="t")
    return federation


def frame():
    return pd.DataFrame(TABLE)


MISUSES = {
    "no target": (lambda: fed().backtest(frame()), "Name the column to forecast"),
    "misspelt target": (lambda: fed().backtest({"load": [1.0]}, target="laod"), "Did you mean 'load'"),
    "misspelt input": (lambda: fed().backtest(TABLE, target="y", inputs=["z"]), "no column 'z'"),
    "misspelt date": (lambda: fed().backtest(TABLE, target="y", date="when"), "no column 'when'"),
    "target is a number": (lambda: fed().backtest(TABLE, target=3), "Pass the name of a column"),
    "target twice": (lambda: fed(y_dim=2).backtest(TABLE, target=["y", "y"]), "Name every column once"),
    "two targets for one": (lambda: fed().backtest(TABLE, target=["y", "x"]), "y_dim=2"),
    "no rows": (lambda: fed().backtest({"y": []}, target="y"), "at least one row"),
    "lists of other lengths": (lambda: fed().backtest({"y": [1.0], "x": [1.0, 2.0]}, "y"), "columns of one length"),
    "text as target": (lambda: fed().backtest({"y": ["a", "b"]}, target="y"), "a column of numbers"),
    "infinite target": (lambda: fed().backtest({"y": [1.0, np.inf]}, target="y"), "infinite"),
    "infinite input": (lambda: fed().backtest({"y": [1.0, 2.0], "x": [0.0, -np.inf]}, "y", ["x"]), "infinite"),
    "text as table": (lambda: fed().backtest("load.csv", target="y"), "Read the file first"),
    "None as table": (lambda: fed().backtest(None, target="y"), "table"),
    "array of rank 3": (lambda: fed().backtest(np.zeros((2, 2, 2))), "shape (2, 2, 2)"),
    "inputs of other length": (lambda: fed().backtest(np.zeros(5), inputs=np.zeros((4, 1))), "5 rows"),
    "bad date text": (lambda: fed().backtest({"t": ["yesterday"], "y": [1.0]}, "y", date="t"), "2024-05-31 13:00"),
    "dates are numbers": (lambda: fed().backtest({"t": [1.5, 2.5], "y": [1.0, 2.0]}, "y", date="t"), "Pass datetimes"),
    "one row, no step": (lambda: fed().backtest({"t": ["2024-01-01"], "y": [1.0]}, "y", date="t"), "every='1h'"),
    "bad step": (lambda: fed().backtest(TABLE, "y", date="t", every="soon"), "'15min'"),
    "negative step": (lambda: fed().backtest(TABLE, "y", date="t", every=-3600), "every"),
    "bad zone": (lambda: fed().backtest(TABLE, "y", date="t", timezone="Viena"), "IANA"),
    "bad calendar": (lambda: fed().backtest(TABLE, "y", date="t", calendar=["fortnight"]), "weekday"),
    "calendar without dates": (lambda: fed().backtest({"y": [1.0, 2.0]}, "y", calendar=["hour"]), "date="),
    "bad holiday": (lambda: fed().backtest(TABLE, "y", date="t", holidays=["Christmas"]), "2024-12-25"),
    "unknown setting": (lambda: fed().backtest(TABLE, "y", date="t", frequency="h"), "unknown setting"),
    "negative delay": (lambda: fed().backtest(TABLE, "y", delay=-1), "delay"),
    "negative burn-in": (lambda: fed().backtest(TABLE, "y", burn_in=-1), "burn_in"),
    "forecast before rows": (lambda: fed().forecast(), "Pass rows first"),
    "first row without target": (lambda: fed().forecast({"y": 1.0}), "Name the column to forecast"),
    "another target": (lambda: ran().backtest(TABLE, target="x"), "Make a new federation"),
    "a row without its column": (lambda: ran().forecast({"t": "2024-01-01 03:00"}), "no column 'y'"),
    "a row of the next century": (lambda: ran().forecast({"t": "2124-01-01", "y": 1.0}), "Check its timestamp"),
    "mixed time zones": (
        lambda: fed().backtest({"t": ["2024-01-01T00+01:00", "2024-01-01T01"], "y": [1, 2]}, "y", date="t"),
        "all of them an offset",
    ),
    "two date columns": (
        lambda: fed().backtest(frame().assign(a=pd.Timestamp("2024"), b=pd.Timestamp("2024")), "y"),
        "date= one of",
    ),
    "a column name twice": (
        lambda: fed().backtest(pd.DataFrame([[1.0, 2.0]], columns=["y", "y"]), "y"),
        "name of its own",
    ),
    "a number as column name": (lambda: fed().backtest(pd.DataFrame({0: [1.0], "y": [1.0]}), "y"), "by a text"),
    "level 1": (lambda: ran().predict_quantiles([1.0]), "between 0 and 1"),
    "no levels": (lambda: ran().predict_quantiles([]), "between 0 and 1"),
    "quantiles before a label": (lambda: fed().predict_quantiles([0.5]), "no target is known"),
    "unknown plot": (lambda: fed().backtest(TABLE, "y", date="t").plot("bokeh"), "'plotly'"),
    "unknown plotted target": (lambda: fed().backtest(TABLE, "y", date="t").plot(target="z"), "Pass one of y"),
    "nothing to plot": (lambda: fed().backtest(TABLE, "y", date="t", burn_in=100).plot(), "smaller burn_in"),
    "unknown library": (lambda: fed().backtest(TABLE, "y", date="t").to_frame(library="xyz"), "narwhals knows"),
    "the same table again": (lambda: ran().backtest(TABLE), "Make a new federation to test it again"),
    "an encoder's class": (lambda: nc.Agent(nc.encoders.Trend), "Pass an encoder"),
    "unknown table": (lambda: fed().backtest(TABLE, "y", date="t").to_frame("errors"), "forecasts, metrics, agents"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_is_refused_in_our_words(name):
    call, message = MISUSES[name]
    with pytest.raises(NashcastError) as caught:
        call()
    assert message in str(caught.value)


def test_there_are_forty():
    assert len(MISUSES) >= 40


def test_a_refused_table_changes_nothing():
    federation = ran()
    before = federation.forecast()["y"]
    with pytest.raises(NashcastError):
        federation.forecast({"t": "2024-01-01 03:00", "y": "many"})
    np.testing.assert_array_equal(federation.forecast()["y"], before)
