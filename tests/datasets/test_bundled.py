"""Series that other packages carry, against their files read another way."""

import csv
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast.datasets import approval, co2, el_nino, laser, open_stream, sp500, sunspots
from nashcast.datasets.files import package_files
from nashcast.datasets.recorded.recordings import RECORDINGS, recording
from support.extras import skip_if


def columns(dataset, file):
    import statsmodels

    with (Path(statsmodels.__file__).parent / "datasets" / dataset / file).open(newline="") as rows:
        return list(csv.DictReader(rows))


def is_the_next_value_of(stream, raw, warmup, lags=3):
    np.testing.assert_allclose(stream.in_units(stream.targets)[:, 0], raw[warmup:], rtol=1e-12)
    assert stream.offset[0] == pytest.approx(raw[:warmup].mean())
    np.testing.assert_array_equal(stream.inputs[1:, 0], stream.targets[:-1, 0])
    np.testing.assert_array_equal(stream.inputs[1:, 1:], stream.inputs[:-1, :-1])
    assert stream.inputs.shape[1] == lags
    assert stream.start[0] == stream.inputs[0, 0]


def test_statsmodels_series():
    skip_if("" if find_spec("statsmodels") else "needs nashcast[peers]")
    last, weeks = np.nan, []
    for row in columns("co2", "co2.csv"):
        last = float(row["co2"]) if row["co2"].strip() else last
        weeks.append(last)
    is_the_next_value_of(co2(), np.array(weeks), 100)
    is_the_next_value_of(
        sunspots(), np.array([float(row["SUNACTIVITY"]) for row in columns("sunspots", "sunspots.csv")]), 50
    )
    years = columns("elnino", "elnino.csv")
    is_the_next_value_of(el_nino(), np.array([float(v) for row in years for k, v in row.items() if k != "YEAR"]), 100)
    assert co2(steps=5).targets.shape == (5, 1)


def test_the_laser():
    skip_if("" if find_spec("reservoirpy") else "needs nashcast[peers]")
    import reservoirpy

    # The file by its path: the package's own reader leaves it open.
    samples = np.load(Path(reservoirpy.__file__).parent / "datasets" / "santafe_laser.npy")
    is_the_next_value_of(laser(), samples[:2100, 0].astype(float), 100)
    assert len(laser(steps=None).targets) == 10093 - 100


def test_stocks_and_polls():
    from river import datasets

    rows = list(datasets.SP500Stocks())
    stream = sp500()
    # The next day's return that the file states, to the digits it has, is what is to be forecast.
    stated = np.array([y for _, y in rows])
    np.testing.assert_allclose(stream.in_units(stream.targets)[:, 0], stated[99:-1], atol=2e-5)
    np.testing.assert_allclose(np.corrcoef(stream.inputs[:, 0], [x["AAPL"] for x, _ in rows[99:-1]])[0, 1], 1.0)

    rows = list(datasets.TrumpApproval())
    stream = approval()
    np.testing.assert_allclose(stream.in_units(stream.targets)[:, 0], [y for _, y in rows[100:]], rtol=1e-12)
    np.testing.assert_allclose(stream.inputs[1:, -1], stream.targets[:-1, 0], rtol=1e-12)
    np.testing.assert_allclose(np.corrcoef(stream.inputs[:, 0], [x["gallup"] for x, _ in rows[99:-1]])[0, 1], 1.0)


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_are_what_pandas_reads(name):
    facts = RECORDINGS[name]
    found = find_spec(facts.package)
    skip_if("" if found else "needs nashcast[recordings]")
    import pandas as pd

    rows = pd.read_csv(Path(found.submodule_search_locations[0]) / facts.file)
    if facts.only:
        rows = rows[rows[facts.only[0]] == facts.only[1]]
    cells = pd.Series(rows[list(facts.columns)].to_numpy().ravel())
    raw = pd.to_numeric(cells, errors="coerce").ffill().to_numpy()[:2100]
    stream = open_stream(name)
    assert stream.targets.shape == (facts.steps, 1) == (len(raw) - 100, 1)
    np.testing.assert_array_equal(np.isfinite(raw), True)
    is_the_next_value_of(stream, raw, 100)
    assert open_stream(name, steps=7, lags=2).inputs.shape == (7, 2)


@pytest.mark.parametrize(
    ("call", "extra"), [(co2, "peers"), (laser, "peers"), (partial(recording, "traffic"), "recordings")]
)
def test_a_missing_package_prints_its_own_pip_line(call, extra, monkeypatch):
    monkeypatch.setattr(package_files, "find_spec", lambda name: None)
    words = rf"stream: got no package \w+. Install it: pip install 'nashcast\[{extra}\]'"
    with pytest.raises(nc.InvalidInput, match=words):
        call()


@pytest.mark.parametrize("call", [co2, laser, partial(recording, "traffic")])
def test_a_package_without_the_file_says_so(call, monkeypatch, tmp_path):
    class Empty:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr(package_files, "find_spec", lambda name: Empty)
    with pytest.raises(nc.InvalidInput, match=r"stream: got \w+ without [\w.]+. Install another version of it"):
        call()


@pytest.mark.parametrize("call", [sp500, approval, co2, partial(recording, "traffic")])
def test_options_are_checked(call):
    for options, words in (({"lags": 0}, "lags"), ({"warmup": 1}, "warmup"), ({"steps": 0}, "steps")):
        with pytest.raises(nc.InvalidInput, match=f"{words}: got int"):
            call(**options)


def test_an_unknown_recording_is_answered_with_the_right_one():
    with pytest.raises(nc.InvalidInput, match=r"which: got 'trafic'\. Did you mean 'traffic'"):
        recording("trafic")
