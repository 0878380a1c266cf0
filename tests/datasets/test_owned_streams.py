"""Streams whose inputs belong to several owners: against their files read another way, and against their formulas."""

import csv
from datetime import datetime
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast.datasets import Stream, air_quality, bank_of_canada, ett, four_owners, open_stream, simulated_owners, tmy3
from nashcast.datasets.owners import check_owners
from nashcast.datasets.recorded.air_quality_file import read_air_quality
from support.extras import skip_if

SIGNS = np.array([1.0, -1.0, 1.0, -1.0])


def in_first_units(values, warmup):
    """Each column less its mean and divided by its standard deviation in the first rows."""
    first = values[:warmup]
    return (values - first.mean(axis=0)) / first.std(axis=0)


@pytest.mark.parametrize(("target", "column"), [("temperature", "Dry-bulb (C)"), ("irradiance", "GHI (W/m^2)")])
def test_weather_is_the_file_of_pvlib(target, column):
    skip_if("" if find_spec("pvlib") else "needs nashcast[recordings]")
    path = Path(next(iter(find_spec("pvlib").submodule_search_locations))) / "data" / "723170TYA.CSV"
    rows = list(csv.reader(path.read_text().splitlines()))
    place = {name: i for i, name in enumerate(rows[1])}
    hours = rows[2:]

    def values(name):
        return np.array([float(row[place[name]]) for row in hours])

    stream = tmy3(target)
    np.testing.assert_allclose(stream.in_units(stream.targets)[:, 0], values(column)[100:], rtol=1e-12)
    assert list(stream.owners) == ["thermometer", "hygrometer", "barometer", "anemometer", "pyranometer", "clouds"]
    pressure = in_first_units(values("Pressure (mbar)")[:, None], 100)[99:-1, 0]
    np.testing.assert_allclose(stream.inputs[:, stream.owners["barometer"][0]], pressure, rtol=1e-9, atol=1e-9)
    angle = np.radians(values("Wdir (degrees)"))
    sine = in_first_units(np.sin(angle)[:, None], 100)[99:-1, 0]
    np.testing.assert_allclose(stream.inputs[:, stream.owners["anemometer"][1]], sine, atol=1e-9)
    assert tmy3(steps=5).targets.shape == (5, 1)
    with pytest.raises(nc.InvalidInput, match="target: got str 'snow'"):
        tmy3("snow")


def test_air_quality_is_the_file_without_its_gaps(recorded):
    rows = list(csv.DictReader((recorded / "AirQualityUCI.csv").read_text().splitlines()))
    wanted = ["PT08.S1(CO)", "PT08.S2(NMHC)", "PT08.S3(NOx)", "PT08.S4(NO2)", "PT08.S5(O3)", "T", "RH", "AH"]
    kept = [row for row in rows if all(float(row[name]) != -200 for name in [*wanted, "NO2(GT)"])]
    x = np.array([[float(row[name]) for name in wanted] for row in kept])
    y = np.array([float(row["NO2(GT)"]) for row in kept])
    following, same = (air_quality("NO2", hour, path=recorded) for hour in ("next", "same"))
    np.testing.assert_allclose(following.in_units(following.targets)[:, 0], y[100:], rtol=1e-12)
    np.testing.assert_allclose(following.inputs, in_first_units(x, 100)[99:-1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(same.in_units(same.targets)[:, 0], y[100:-1], rtol=1e-12)
    np.testing.assert_allclose(same.inputs, in_first_units(x[1:], 100)[99:-1], rtol=1e-9, atol=1e-9)
    day, hour = kept[100]["Date"], kept[100]["Time"]
    assert following.dates[0] == same.dates[0] == str(datetime.strptime(f"{day} {hour}", "%d/%m/%Y %H.%M.%S"))
    assert following.owners["weather"] == (5, 6, 7)
    assert check_owners(following) == {**{name: (i,) for i, name in enumerate(wanted[:5])}, "weather": (5, 6, 7)}


def published_form(text):
    """The same with semicolons and decimal commas, and with the empty rows that end the published file."""
    lines = [line.replace(".", "#").replace(",", ";").replace("#", ",") for line in text.splitlines() if line]
    # Points separate hours, minutes and seconds in both forms, and stand in names of columns.
    lines = [lines[0].replace(",", ".")] + [
        ";".join(cell.replace(",", ".") if i == 1 else cell for i, cell in enumerate(line.split(";")))
        for line in lines[1:]
    ]
    return "\n".join([*lines, *[";" * 16] * 3]) + "\n"


def test_both_forms_of_the_file_are_read_alike(recorded, tmp_path):
    text = "".join((recorded / "AirQualityUCI.csv").read_text().splitlines(keepends=True)[:400])
    (tmp_path / "commas.csv").write_text(text)
    (tmp_path / "semicolons.csv").write_text(published_form(text))
    one, other = (read_air_quality(tmp_path / f"{name}.csv") for name in ("commas", "semicolons"))
    np.testing.assert_array_equal(one.numbers, other.numbers)
    assert one.dates == other.dates
    assert len(one.dates) == 399
    assert all(a < b for a, b in pairwise(one.dates))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda row: row.replace("10/03/2004", "2004-03-10"), "Write dates as 31/12/2004 and times as 18.00.00."),
        (lambda row: row.replace("19.00.00", "17.00.00"), "Sort the file by 'Date', oldest first."),
        (lambda row: "," + row.split(",", 1)[1], "a row without a date"),
        (lambda row: row.replace("1292", "many"), "column 'PT08.S1(CO)'"),
    ],
)
def test_a_damaged_file_is_refused_by_place(recorded, tmp_path, change, words):
    lines = (recorded / "AirQualityUCI.csv").read_text().splitlines()[:3]
    (tmp_path / "bad.csv").write_text("\n".join([*lines[:2], change(lines[2])]) + "\n")
    with pytest.raises(nc.InvalidInput) as caught:
        read_air_quality(tmp_path / "bad.csv")
    assert words in str(caught.value)


def test_simulated_owners_are_the_sums_they_say():
    plain = simulated_owners(noise=0.0, steps=2000)
    np.testing.assert_allclose(plain.targets[:, 0], plain.inputs @ SIGNS, atol=1e-12)
    assert plain.owners == {f"owner {i + 1}": (i,) for i in range(4)}
    redundant = simulated_owners("redundant", noise=0.0, steps=50)
    np.testing.assert_array_equal(redundant.inputs[:, :2], redundant.inputs[:, 2:])
    np.testing.assert_allclose(redundant.targets[:, 0], redundant.inputs @ SIGNS, atol=1e-12)
    changing = simulated_owners("changing", noise=0.0, steps=2000)
    turned = SIGNS * np.cos(2 * np.pi * np.arange(1, 2001)[:, None] / 1500 + np.arange(4) * np.pi / 4)
    np.testing.assert_allclose(changing.targets[:, 0], (turned * changing.inputs).sum(axis=1), atol=1e-12)


def test_a_fifth_owner_changes_neither_target_nor_the_others():
    plain = simulated_owners(steps=3000)
    for case in ("useless", "lying"):
        stream = simulated_owners(case, steps=3000)
        np.testing.assert_array_equal(stream.targets, plain.targets)
        np.testing.assert_array_equal(stream.inputs[:, :4], plain.inputs)
    assert abs(np.corrcoef(simulated_owners("useless").inputs[:, 4], plain.targets[:, 0])[0, 1]) < 0.06
    told = (simulated_owners("lying").inputs[:, 4] / plain.inputs[:, 0]).round(9)
    np.testing.assert_allclose(told[:599], 1.0)
    assert set(told) == {1.0, -3.0}
    assert 0.3 < np.mean(told[600:] < 0) < 0.7
    assert 20 < np.count_nonzero(np.diff(told[600:])) < 80  # 2400 steps, 50 the same on average
    with pytest.raises(nc.InvalidInput, match="case: got str 'honest'"):
        simulated_owners("honest")


def test_four_owners_is_the_plain_case():
    for one, other in zip(four_owners(40), simulated_owners("plain", 40, correlation=0.5), strict=True):
        np.testing.assert_array_equal(one, other)


def test_recorded_streams_split_by_owner(recorded):
    stream = bank_of_canada(20, path=recorded)
    assert stream.owners == {"AUD": (0, 4), "EUR": (1, 5), "GBP": (2, 6), "JPY": (3, 7), "USD": (8, 9)}
    np.testing.assert_array_equal(stream.inputs[1:, 8], stream.targets[:-1, 0])  # the dollar's own rate
    np.testing.assert_array_equal(stream.inputs[1:, 4:8], stream.inputs[:-1, :4])
    stream = ett(20, path=recorded, scale="none")
    assert stream.owners["oil"] == (18, 19)
    np.testing.assert_array_equal(stream.inputs[1:, 18], stream.targets[:-1, 0])
    for places in stream.owners.values():  # an owner's lags are of its own columns
        own = stream.inputs[:, places]
        width = 2 if len(places) == 6 else 1
        np.testing.assert_array_equal(own[1:, width : 2 * width], own[:-1, :width])
    assert sorted(place for places in stream.owners.values() for place in places) == list(range(20))


@pytest.mark.parametrize("owners", [{}, {"a": ()}, {"a": (0, 1), "b": (1,)}, {"a": (0, 0)}, {"a": (2,)}, {"a": (-1,)}])
def test_owners_that_own_nothing_or_the_same_are_refused(owners):
    stream = Stream("toy", np.zeros((5, 2)), np.zeros((5, 1)), np.zeros(1), owners=owners)
    with pytest.raises(nc.InvalidInput, match="stream 'toy': got"):
        check_owners(stream)


def test_every_stream_with_owners_gives_each_input_to_one(recorded, monkeypatch):
    monkeypatch.setenv("NASHCAST_DATA", str(recorded))
    for name in ("owners-lying", "air-co-same", "ett", "boc-validation", "ecb-desks"):
        stream = open_stream(name)
        places = sorted(place for places in check_owners(stream).values() for place in places)
        assert places == list(range(stream.inputs.shape[1])), name
