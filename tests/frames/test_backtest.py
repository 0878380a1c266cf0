"""Backtests over frames against the same verbs called by hand, and what a result says against its definition."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

import nashcast as nc
from nashcast.errors import InvalidInput

H = 4


def federation(**settings):
    return nc.Federation(
        [nc.Agent(nc.encoders.Trend()), nc.Agent(nc.encoders.Seasonal())], horizon=H, season=6, **settings
    )


def history(rows=120, seed=0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    index = pd.date_range("2024-10-25", periods=rows, freq="h", tz="Europe/Vienna", name="hour")
    load = 10 + 3 * np.sin(2 * np.pi * t / 6) + rng.normal(0, 0.3, rows)
    frame = pd.DataFrame({"load": load, "wind": rng.normal(size=rows), "sky": rng.choice(["sun", "rain"], rows)}, index)
    frame.iloc[20:23, 0] = np.nan
    frame.iloc[30, 1] = np.nan
    return frame.drop(index[60:65])


@pytest.fixture(scope="module")
def ran():
    fed = federation()
    return fed, fed.backtest(history(), target="load", inputs=["wind", "sky"], calendar=["hour"])


def test_a_backtest_is_the_same_as_the_verbs_by_hand(ran):
    _, result = ran
    frame = history().asfreq("h")
    y = frame["load"].to_numpy()
    by_hand, said = federation(), []
    x = {"wind": np.nan, "sky=rain": np.nan, "sky=sun": np.nan, "hour": np.nan}
    for t, (when, row) in enumerate(frame.iterrows()):
        by_hand.learn_one(x, y[t])
        sky = row["sky"] if isinstance(row["sky"], str) else None
        x = {
            "wind": row["wind"], "sky=rain": np.nan if sky is None else float(sky == "rain"),
            "sky=sun": np.nan if sky is None else float(sky == "sun"), "hour": (when + pd.Timedelta(hours=1)).hour,
        }  # fmt: skip
        said.append(by_hand.predict_one(x))
    np.testing.assert_array_equal(result.forecasts[:, :, 0], np.array(said))


def test_metrics_against_loops(ran):
    _, result = ran
    y, metrics = result.targets[:, 0], result.metrics()
    scale = np.nanmean(np.abs(y[6:] - y[:-6]))
    for h in range(1, H + 1):
        errors, inside, width = [], [], []
        for t in range(len(y) - h):
            if np.isfinite(y[t + h]) and np.isfinite(result.forecasts[t, h - 1, 0]):
                errors.append(result.forecasts[t, h - 1, 0] - y[t + h])
                low, high = result.bounds[t, 0, :, h - 1, 0]
                if np.isfinite(low):
                    inside.append(low <= y[t + h] <= high)
                    width.append(high - low)
        np.testing.assert_allclose(metrics["MAE"][h - 1], np.mean(np.abs(errors)))
        np.testing.assert_allclose(metrics["RMSE"][h - 1], np.sqrt(np.mean(np.square(errors))))
        np.testing.assert_allclose(metrics["MASE"][h - 1], np.mean(np.abs(errors)) / scale)
        np.testing.assert_allclose(metrics["coverage 80 %"][h - 1], np.mean(inside))
        np.testing.assert_allclose(metrics["width 80 %"][h - 1], np.mean(width))


def test_forecast_goes_on_with_times_and_bounds(ran):
    fed, _ = ran
    table = fed.forecast()
    assert list(table.index) == list(pd.date_range("2024-10-29 23:00", periods=H, freq="h", tz="Europe/Vienna"))
    assert table.index.name == "hour"
    assert (table["load low 80"] < table["load"]).all()
    assert (table["load"] < table["load high 80"]).all()
    np.testing.assert_array_equal(table["load"].to_numpy(), fed.predict_one(fed._table.row))


def test_live_rows_in_any_form_give_the_forecasts_of_one_long_backtest():
    frame = history()
    whole, parts = federation(), federation()
    whole.backtest(frame, target="load", inputs=["wind"])
    parts.backtest(frame.iloc[:80], target="load", inputs=["wind"])
    parts.forecast(frame.iloc[80:90])  # a frame
    for when, row in frame.iloc[90:100].iterrows():  # Series
        parts.forecast(row)
        assert parts._table.layout.grid.times(np.array([parts._table.place]))[0] == when.tz_convert("UTC").tz_localize(
            None
        )
    for when, row in frame.iloc[100:].iterrows():  # dicts
        parts.forecast({"hour": when, **row.to_dict()})
    pd.testing.assert_frame_equal(whole.forecast(), parts.forecast())


def test_polars_dicts_and_arrays_give_the_same_numbers():
    frame = history().drop(columns="sky")
    made = {}
    for name, table in {
        "pandas": frame, "polars": pl.from_pandas(frame.reset_index()),
        "dict": {"hour": list(frame.index), "load": frame["load"].to_list(), "wind": frame["wind"].to_list()},
    }.items():  # fmt: skip
        fed = federation()
        fed.backtest(table, target="load", inputs=["wind"], date=None if name == "pandas" else "hour")
        made[name] = fed.forecast()
    assert isinstance(made["polars"], pl.DataFrame)
    assert made["polars"]["hour"].to_list() == list(made["pandas"].index.to_pydatetime())
    for name in ("polars", "dict"):
        np.testing.assert_array_equal(np.asarray(made[name]["load high 90"]), made["pandas"]["load high 90"].to_numpy())
    regular = frame.asfreq("h")
    fed = federation()
    fed.backtest(regular["load"].to_numpy(), inputs=regular[["wind"]].to_numpy())
    np.testing.assert_array_equal(fed.forecast()["y"], made["pandas"]["load"].to_numpy())


def test_late_labels_are_learnt_late():
    frame = history()[["load"]].dropna()
    prompt, late = federation(), federation()
    at_once = prompt.backtest(frame, target="load")
    delayed = late.backtest(frame, target="load", delay=5)
    assert late.health["late labels"] > 90
    assert delayed.summary["MAE"] > at_once.summary["MAE"]
    # The rows whose labels are still out come again with them.
    before = late.forecast()["load"].to_numpy()
    late.forecast(frame.iloc[-5:])
    after = late.forecast()["load"].to_numpy()
    assert not np.array_equal(before, after)
    np.testing.assert_array_equal(
        late._begun().history.targets[late._begun().history.now], frame["load"].to_numpy()[-1:]
    )


def test_a_saved_federation_goes_on_with_its_table(tmp_path, ran):
    fed, _ = ran
    fed.save(tmp_path / "state")
    again = federation()
    again.load(tmp_path / "state")
    pd.testing.assert_frame_equal(fed.forecast(), again.forecast())


def test_units_are_kept():
    frame = history()[["load"]]
    small, large = federation(mixing="ml-poly"), federation(mixing="ml-poly")
    small.backtest(frame, target="load")
    large.backtest(frame * 2.0**20, target="load")  # a power of two: no rounding
    np.testing.assert_allclose(large.forecast().to_numpy(), 2.0**20 * small.forecast().to_numpy(), rtol=1e-12)


def test_tables_and_reprs_of_a_result(ran):
    fed, result = ran
    table = result.to_frame()
    assert len(table) == len(result.places) * H
    assert {"hour made", "hour", "step", "load actual", "load"} <= set(table.columns)
    row = table.iloc[50 * H + 1]
    assert row["hour"] - row["hour made"] == dt.timedelta(hours=2)
    assert list(result.to_frame("agents")["member"]) == fed.members
    assert isinstance(result.to_frame("metrics", library="polars"), pl.DataFrame)
    assert "<table>" in result._repr_html_()
    assert "MASE" in repr(result)
    assert repr(fed) == "Federation(Trend, Seasonal; horizon 4, step 120)"


@pytest.mark.parametrize("engine", ["matplotlib", "plotly"])
def test_plots_show_the_numbers_of_the_result(ran, engine):
    _, result = ran
    figure = result.plot(engine, last=48)
    mae = result.metrics()["MAE"]
    if engine == "matplotlib":
        assert figure._repr_png_().startswith(b"\x89PNG")  # a notebook shows it, without pyplot too
        titles = [axis.get_title() for axis in figure.axes]
        drawn = [line.get_ydata() for line in figure.axes[1].lines]
    else:
        titles = [note.text for note in figure.layout.annotations]
        drawn = [trace.y for trace in figure.data if trace.name == "federation"]
    assert any("next 4 steps" in title for title in titles)
    assert any(len(line) == H and np.allclose(line, mae) for line in drawn)


def test_progress_is_reported_to_the_end():
    seen = []
    federation().backtest(
        {"load": np.arange(20.0)}, target="load", progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (20, 20)
    assert len(seen) >= 20


def test_quantiles_contain_the_bounds(ran):
    fed, _ = ran
    fed.forecast()
    said = fed.predict_quantiles([0.1, 0.5, 0.9])
    low, high = fed.interval(0.8)
    np.testing.assert_allclose(said[:, 0], low)
    np.testing.assert_allclose(said[:, 2], high)
    np.testing.assert_array_equal(said[:, 1], fed.present.forecast[:, 0])


def test_another_table_needs_another_federation(ran):
    fed, _ = ran
    with pytest.raises(InvalidInput, match="Make a new federation"):
        fed.backtest(history(), target="wind")
