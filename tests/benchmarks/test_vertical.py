"""The task of published vertical forecasting: windows, scaling and scores against plain computations."""

from importlib.util import find_spec

import numpy as np
import pytest
from private_information import vertical

from nashcast.datasets import Stream, air_quality
from support.extras import skip_if
from support.recorded import recorded_folder


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setenv("NASHCAST_DATA", str(recorded_folder()))


def toy(rows=20):
    rng = np.random.default_rng(3)
    return Stream(
        "toy",
        rng.uniform(5, 9, (rows, 2)),
        rng.uniform(-3, 4, (rows, 1)),
        np.array([1.0]),
        owners={"a": (0,), "b": (1,)},
    )


def test_scaled_by_what_is_learnt_from():
    stream = toy()
    found = vertical.scaled(stream)
    for raw, shares in ((stream.inputs, found.inputs), (stream.targets, found.targets)):
        low, high = raw[:16].min(axis=0), raw[:16].max(axis=0)
        np.testing.assert_allclose(shares, (raw - low) / (high - low))
        assert shares[:16].min() == 0.0
        assert shares[:16].max() == 1.0
    changed = stream._replace(targets=np.vstack([stream.targets[:16], stream.targets[16:] * 9]))
    np.testing.assert_array_equal(vertical.scaled(changed).targets[:16], found.targets[:16])


def test_windows_are_rows_of_the_recording(recorded):
    whole = air_quality("CO", "same", warmup=2)
    streams = vertical.windows(50, places=3)
    starts = [0, (len(whole.targets) - 50) // 2, len(whole.targets) - 50]
    assert [each.dates for each in streams] == [whole.dates[first : first + 50] for first in starts]
    assert all(each.inputs.shape == (50, 8) for each in streams)
    second = vertical.cut(whole, starts[1], 50)
    np.testing.assert_array_equal(second.start, whole.targets[starts[1] - 1])


@pytest.mark.slow
def test_sarimax_knows_no_target_before_it_is_forecast(recorded):
    skip_if("" if find_spec("statsmodels") else "needs nashcast[peers]")
    stream = vertical.windows(50, places=1)[0]
    targets = stream.targets.copy()
    targets[45:] = 3.0
    was, now = (vertical.sarimax(each).values for each in (stream, stream._replace(targets=targets)))
    assert was.shape == (10,)
    np.testing.assert_allclose(was[:6], now[:6], rtol=1e-9)
    assert not np.allclose(was[6:], now[6:])


def test_rows_against_plain_numbers(monkeypatch):
    streams = [toy(20), toy(20)._replace(start=np.zeros(1))]
    monkeypatch.setattr(vertical, "windows", lambda length, places: streams)
    constant = vertical.Forecasts(np.zeros(4), 2.0, 1, 8)
    monkeypatch.setattr(vertical, "METHODS", {vertical.SARIMAX: lambda _: constant, "last": vertical.persistent})
    first, second = vertical.vertical_rows((20,), 2)
    wanted = [np.mean(each.targets[16:] ** 2) for each in streams]
    last = [np.mean((each.targets[16:] - each.targets[15:19]) ** 2) for each in streams]
    assert first["mse"] == pytest.approx(np.mean(wanted))
    assert (first["ratio"], first["better_on"], first["seconds"]) == (1.0, 0, 2.0)
    assert second["ratio"] == pytest.approx(np.mean(last) / np.mean(wanted))
    assert second["better_on"] == sum(a < b for a, b in zip(last, wanted, strict=True))
