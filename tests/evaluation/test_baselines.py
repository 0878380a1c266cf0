"""The baselines against brute force written from their definitions, and under changes of units and of the future."""

import pickle
from math import inf
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast import seeds
from nashcast.datasets import Stream, concept_shift, open_stream
from nashcast.evaluation.peers import recursive_least_squares as least_squares
from nashcast.evaluation.peers.baselines import BASELINES, baselines, best_baseline, mse

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "baselines.md"
NAMES = list(BASELINES)


def walk(steps, y_dim=1, x_dim=2, seed=0):
    """A wandering target with a season of 6, beside its own two lags and other inputs."""
    rng = np.random.default_rng(seed)
    season = np.sin(np.arange(steps + 2) * np.pi / 3)[:, None] * rng.uniform(0.5, 2, y_dim)
    y = 5 + season + rng.standard_normal((steps + 2, y_dim)).cumsum(axis=0) * 0.3
    x = np.hstack([y[1:-1], y[:-2], rng.standard_normal((steps, x_dim)).cumsum(axis=0)])
    return Stream("walk", x, y[2:], y[1])


STREAMS = {
    "one target": walk(70),
    "three targets": walk(60, y_dim=3, x_dim=4, seed=1),
    "concept shift": concept_shift(80),
    "one input that never changes": Stream("still", np.ones((40, 1)), walk(40, seed=2).targets, np.array([5.0])),
}


def batch_forecast(phi, r, forgetting, ridge):
    """The last row of phi times the weighted ridge solution on the rows before, by one stacked least-squares system."""
    t, d = len(phi) - 1, phi.shape[1]
    if t == 0:
        return np.zeros(r.shape[1])
    root = np.sqrt(forgetting ** np.arange(t - 1.0, -1.0, -1.0))[:, None]
    penalty = np.diag(np.sqrt(ridge * d * np.mean(phi**2, axis=0)))
    stacked = np.vstack([root * phi[:t], penalty]), np.vstack([root * r[:t], np.zeros((d, r.shape[1]))])
    return phi[t] @ np.linalg.lstsq(*stacked, rcond=None)[0]


@pytest.mark.parametrize("forgetting", [1.0, 0.99, 0.8])
@pytest.mark.parametrize("ridge", [1e-3, 0.3, 10.0])
@pytest.mark.parametrize("d", [1, 4, 9])
def test_recursive_least_squares_is_batch_weighted_ridge_at_every_step(forgetting, ridge, d):
    rng = np.random.default_rng(d)
    phi, r = rng.standard_normal((60, d)) * rng.uniform(0.1, 30, d), rng.standard_normal((59, 2))
    forecasts = least_squares.rls(phi, r, forgetting=forgetting, ridge=ridge)
    expected = [batch_forecast(phi[: t + 1], r[:t], forgetting, ridge) for t in range(60)]
    np.testing.assert_allclose(forecasts, expected, rtol=1e-9, atol=1e-9)


def test_recursive_least_squares_stays_right_over_thousands_of_steps_and_silent_features():
    """Where the textbook recursion for the inverse blows up: forgetting, with nothing new about some features."""
    rng = np.random.default_rng(0)
    phi, r = rng.standard_normal((5000, 4)), rng.standard_normal((4999, 1))
    phi[500:, 1] = 0.0
    phi[:, 2] = 0.0
    phi[:, 3] = phi[:, 0]
    phi[4990:, 1] = 1.0
    forecasts = least_squares.rls(phi, r, forgetting=0.95, ridge=0.1)
    for t in (499, 500, 3000, 4989, 4990, 4999):
        expected = batch_forecast(phi[: t + 1], r[:t], 0.95, 0.1)
        np.testing.assert_allclose(forecasts[t], expected, rtol=1e-9, atol=1e-9)
    assert np.abs(forecasts).max() < 10


def written_out(name, stream, steps):
    """The five feature sets step by step, from nothing but what is known at that step; forecasts at some steps."""
    x, start, y = stream.inputs, stream.start, stream.targets
    p, q = len(start), x.shape[1]
    rng = seeds.generator(2024, "baselines", "random features")
    A, b = rng.standard_normal((p + q, 50)) / np.sqrt(p + q), rng.standard_normal(50)
    ridge = 0.3 if name in ("RLS lags", "RLS increments", "RLS inputs") else 0.1
    rows, forecasts = [], []
    for t in range(len(y)):
        past = [start, *y[:t]]
        target = [past[max(t - lag, 0)] - past[0] for lag in range(5)]
        if name == "RLS lags":
            row = [[1.0], *target[:4]]
        elif name == "RLS increments":
            row = [target[lag] - target[lag + 1] for lag in range(4)] + [x[t] - x[max(t - 1, 0)]]
        elif name == "RLS inputs":
            row = [[1.0], *target[:2], x[t] - x[0]]
        elif name == "RLS quadratic":
            u = np.concatenate([*target[:2], x[t] - x[0]])
            first = u[:12]
            row = [[1.0], u, [first[i] * first[j] for i in range(len(first)) for j in range(i, len(first))]]
        else:
            seen = np.hstack([past, x[: t + 1]])
            deviation = seen.std(axis=0)
            z = np.where(deviation > 0, seen[-1] - seen.mean(axis=0), 0) / np.where(deviation > 0, deviation, 1)
            row = [[1.0], seen[-1] - seen[0], np.maximum(z @ A + b, 0)]
        rows.append(np.concatenate(row))
        if t in steps:
            changes = np.diff(past, axis=0).reshape(t, p)
            forecasts.append(past[-1] + batch_forecast(np.array(rows), changes, 0.99, ridge))
    return np.array(forecasts)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("RLS")])
@pytest.mark.parametrize("stream", STREAMS)
def test_least_squares_baselines_equal_their_features_written_out(name, stream):
    stream = STREAMS[stream]
    steps = [0, 1, 2, 3, 4, 6, 11, 25, len(stream.targets) - 1]
    got = BASELINES[name](stream)[steps]
    np.testing.assert_allclose(got, written_out(name, stream, steps), rtol=1e-9, atol=1e-9)


def test_running_standardisation_is_that_of_each_prefix():
    x = np.random.default_rng(3).standard_normal((50, 3)) * [1e-3, 1.0, 1e4] + [7.0, 0.0, 1e6]
    x[:, 1] = 4.0
    got = least_squares.standardised(x)
    for t in range(1, 50):
        seen = x[: t + 1, [0, 2]]
        np.testing.assert_allclose(got[t, [0, 2]], (seen[-1] - seen.mean(axis=0)) / seen.std(axis=0), rtol=1e-8)
    assert not got[0].any()
    assert not got[:, 1].any()


def seasonal_loop(values, t):
    known = values[: t + 1]
    best, least = 1, inf
    for lag in range(1, 65):
        if lag > 1 and 2 * lag > len(known):
            break
        squares = [(known[s] - known[s - lag]) ** 2 for s in range(lag, t + 1)][-128:]
        mean = sum(squares) / len(squares) if squares else 0.0
        if mean < least:
            best, least = lag, mean
    return known[t + 1 - best]


def test_seasonal_naive_against_a_plain_loop():
    stream = walk(330, y_dim=2, seed=4)
    known = np.vstack([stream.start, stream.targets[:-1]])
    expected = [[seasonal_loop(known[:, k].tolist(), t) for k in range(2)] for t in range(330)]
    got = BASELINES["seasonal naive"](stream)
    np.testing.assert_array_equal(got, expected)
    assert 0 < np.mean(got != known) < 1  # neither always persistence nor never


@pytest.mark.parametrize("period", [2, 4, 7, 24, 64])
def test_seasonal_naive_is_exact_once_the_season_was_seen_twice(period):
    cycle = np.random.default_rng(period).standard_normal((period, 2))
    y = np.tile(cycle, (6, 1))
    y[:, 1] = np.tile([0.3, 0.9, -2.0], 2 * period)  # each target may have its own season
    stream = Stream("cycle", y[:-1], y[1:], y[0])
    forecasts = BASELINES["seasonal naive"](stream)
    late = slice(2 * max(period, 3), None)
    np.testing.assert_array_equal(forecasts[late], stream.targets[late])


def test_seasonal_naive_is_persistence_where_nothing_repeats():
    y = np.exp(0.01 * np.arange(200.0))[:, None]
    stream = Stream("growth", y[:-1], y[1:], y[0])
    np.testing.assert_array_equal(BASELINES["seasonal naive"](stream), y[:-1])


def test_holt_and_smoothing_by_hand():
    y = np.array([[11.0], [13.0], [0.0]])
    stream = Stream("hand", np.zeros((3, 1)), y, np.array([10.0]))
    # level 10, slope 0; then level 0.8·11 + 0.2·10 = 10.8 and slope 0.2·0.8 = 0.16;
    # then level 0.8·13 + 0.2·10.96 = 12.592 and slope 0.2·1.792 + 0.8·0.16 = 0.4864.
    np.testing.assert_allclose(BASELINES["Holt trend"](stream)[:, 0], [10.0, 10.96, 13.0784], rtol=1e-14)
    np.testing.assert_allclose(BASELINES["exponential smoothing"](stream)[:, 0], [10.0, 10.5, 11.75], rtol=1e-14)


def test_persistence_and_extrapolation_are_their_formulas():
    stream = STREAMS["three targets"]
    y = np.vstack([stream.start, stream.targets])
    np.testing.assert_array_equal(BASELINES["persistence"](stream), y[:-1])
    got = BASELINES["linear extrapolation"](stream)
    np.testing.assert_array_equal(got[0], stream.start)
    np.testing.assert_allclose(got[1:], 2 * y[1:-1] - y[:-2], rtol=1e-13)


def test_extrapolation_is_exact_on_a_line_and_holt_in_the_long_run():
    y = np.outer(np.arange(301.0), [0.5, -3.0]) + np.array([2.0, 1.0])
    stream = Stream("line", y[:-1], y[1:], y[0])
    np.testing.assert_allclose(BASELINES["linear extrapolation"](stream)[1:], y[2:], rtol=1e-12)
    np.testing.assert_allclose(BASELINES["Holt trend"](stream)[-50:], y[-50:], rtol=1e-9)


def oscillation(steps):
    """Noiseless, of order 2 in its lags: y_{t+1} = 2 cos(ω) y_t - y_{t-1}."""
    y = [1.0, 0.3]
    for _ in range(steps):
        y.append(2 * np.cos(0.7) * y[-1] - y[-2])
    y = np.array(y)[:, None]
    return Stream("oscillation", np.zeros((steps + 1, 1)), y[1:], y[0])


def test_autoregression_finds_a_noiseless_one_in_the_long_run():
    stream = oscillation(2000)
    late = slice(1000, None)
    known = np.vstack([stream.start, stream.targets[:-1]])
    lags = np.hstack([known, np.vstack([known[:1], known[:-1]])])
    exact = known + least_squares.rls(lags, np.diff(known, axis=0), forgetting=0.95, ridge=1e-9)
    np.testing.assert_allclose(exact[late], stream.targets[late], atol=1e-9)
    # With the fixed settings the ridge stays worth 0.3 steps a feature, so the error falls by orders and not to 0.
    persistence = mse(known[late], stream.targets[late])
    assert mse(BASELINES["RLS lags"](stream)[late], stream.targets[late]) < 1e-2 * persistence
    assert mse(BASELINES["RLS increments"](stream)[late], stream.targets[late]) < 1e-2 * persistence


def test_quadratic_and_random_features_find_a_map_that_lines_cannot():
    y = [0.4]
    for _ in range(400):
        y.append(3.9 * y[-1] * (1 - y[-1]))
    y = np.array(y)[:, None]
    stream = Stream("map", y[:-1], y[1:], y[0])
    errors = {name: mse(f[200:], stream.targets[200:]) for name, f in baselines(stream).items()}
    assert errors["RLS quadratic"] < 1e-2 * errors["RLS inputs"]
    assert errors["RLS random features"] < 1e-1 * errors["RLS inputs"]


@pytest.mark.parametrize("stream", STREAMS)
def test_the_future_changes_no_forecast_made_before_it(stream):
    stream = STREAMS[stream]
    before = baselines(stream)
    rng = np.random.default_rng(5)
    for t in (0, 1, 2, 7, 20, len(stream.targets) - 1):
        inputs, targets = stream.inputs.copy(), stream.targets.copy()
        targets[t:] = 100 * rng.standard_normal(targets[t:].shape)
        inputs[t + 1 :] = 100 * rng.standard_normal(inputs[t + 1 :].shape)
        after = baselines(stream._replace(inputs=inputs, targets=targets))
        for name in NAMES:
            np.testing.assert_array_equal(after[name][: t + 1], before[name][: t + 1], err_msg=name)
            if t + 1 < len(targets):
                assert np.all(np.any(after[name][t + 1 :] != before[name][t + 1 :], axis=1)), name


@pytest.mark.parametrize("stream", ["one target", "three targets"])
@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (1e-5, 0.0), (-1.0, 0.0), (1.0, 40.0), (0.3, -7.0)])
def test_forecasts_follow_the_units_of_the_targets(stream, scale, shift):
    """Inputs that are lags of the targets change their units with them."""
    stream = STREAMS[stream]
    lags = 2 * len(stream.start)
    inputs = stream.inputs.copy()
    inputs[:, :lags] = scale * inputs[:, :lags] + shift
    moved = stream._replace(inputs=inputs, targets=scale * stream.targets + shift, start=scale * stream.start + shift)
    before, after = baselines(stream), baselines(moved)
    for name in NAMES:
        if name == "RLS random features" and scale < 0:
            continue  # random directions have a sign
        np.testing.assert_allclose((after[name] - shift) / scale, before[name], rtol=1e-7, err_msg=name)


def test_forecasts_do_not_depend_on_the_units_of_the_inputs():
    stream = STREAMS["three targets"]
    units = np.random.default_rng(6).uniform(1e-3, 1e3, stream.inputs.shape[1])
    before, after = baselines(stream), baselines(stream._replace(inputs=units * stream.inputs + 3.0))
    for name in NAMES:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-7, err_msg=name)


def test_one_by_one_or_all_at_once_with_nothing_changed():
    stream = STREAMS["three targets"]
    kept = pickle.loads(pickle.dumps(stream))
    all_at_once = baselines(stream)
    assert list(all_at_once) == NAMES
    for name, forecasts in all_at_once.items():
        assert forecasts.shape == stream.targets.shape
        assert np.isfinite(forecasts).all()
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(BASELINES[name]))(stream), forecasts)
        forecasts[:] = 0.0
    for now, then in zip(stream[1:], kept[1:], strict=True):
        np.testing.assert_array_equal(now, then)


def test_the_best_baseline_has_the_least_error():
    stream = STREAMS["concept shift"]
    errors = {name: mse(forecasts, stream.targets) for name, forecasts in baselines(stream).items()}
    name, error = best_baseline(stream)
    assert error == errors[name] == min(errors.values())


def test_error_is_the_mean_over_steps_and_entries_and_infinite_when_not_finite():
    targets = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert mse(targets + np.array([[1.0, 0.0], [0.0, 3.0]]), targets) == 2.5
    for bad in (np.nan, np.inf, -np.inf, 1e200):
        forecasts = targets.copy()
        forecasts[1, 0] = bad
        assert mse(forecasts, targets) == inf


def test_numbers_too_large_to_square_are_an_infinite_error_and_no_crash():
    stream = STREAMS["three targets"]
    for size in (1e160, 1e300):
        huge = stream._replace(inputs=size * stream.inputs, targets=size * stream.targets, start=size * stream.start)
        forecasts = baselines(huge)
        np.testing.assert_array_equal(forecasts["persistence"][1:], huge.targets[:-1])
        assert best_baseline(huge) == ("persistence", inf)


def stream_of(**changes):
    good = {"name": "s", "inputs": np.ones((3, 2)), "targets": np.ones((3, 1)), "start": np.ones(1)}
    return Stream(**{**good, **changes})


BAD = [
    (stream_of(targets=[[1.0], [np.nan], [2.0]]), "targets", "nan at index (1, 0)"),
    (stream_of(targets=np.ones(3)), "targets", "(steps, y_dim)"),
    (stream_of(targets=np.ones((1, 1)), inputs=np.ones((1, 2))), "targets", "at least 2 steps"),
    (stream_of(targets=np.ones((0, 1)), inputs=np.ones((0, 2))), "targets", "at least 1"),
    (stream_of(inputs=[[1.0, 1.0], [1.0, np.inf], [1.0, 1.0]]), "inputs", "inf at index (1, 1)"),
    (stream_of(inputs=np.ones((2, 2))), "inputs", "(steps, x_dim) = (3, 2)"),
    (stream_of(inputs=[["a"], ["b"], ["c"]]), "inputs", "Pass numbers"),
    (stream_of(start=[np.nan]), "start", "nan at index (0,)"),
    (stream_of(start=np.ones(2)), "start", "(y_dim,) = (1,)"),
    (np.ones((3, 1)), "stream", "nashcast.datasets.Stream"),
]


@pytest.mark.parametrize(("stream", "argument", "words"), BAD)
def test_bad_streams_are_named_with_the_remedy(stream, argument, words):
    for call in (baselines, best_baseline, *BASELINES.values()):
        with pytest.raises(nc.InvalidInput) as caught:
            call(stream)
        assert str(caught.value).startswith(f"{argument}: got ")
        assert words in str(caught.value)


def test_bad_arguments_of_the_error_and_of_least_squares():
    with pytest.raises(nc.InvalidInput, match=r"forecasts: got shape \(2, 1\).*\(3, 1\)"):
        mse(np.ones((2, 1)), np.ones((3, 1)))
    with pytest.raises(nc.InvalidInput, match=r"responses: got shape \(3, 1\).*\(steps - 1, y_dim\) = \(2, y_dim\)"):
        least_squares.rls(np.ones((3, 2)), np.ones((3, 1)), forgetting=1.0, ridge=1.0)
    with pytest.raises(nc.InvalidInput, match=r"forgetting: got 1\.5"):
        least_squares.rls(np.ones((3, 2)), np.ones((2, 1)), forgetting=1.5, ridge=1.0)
    with pytest.raises(nc.InvalidInput, match="ridge: got 0"):
        least_squares.rls(np.ones((3, 2)), np.ones((2, 1)), forgetting=1.0, ridge=0.0)


def test_the_documented_scores_are_the_measured_ones():
    """Those that need no recorded file."""
    table = [
        [cell.strip() for cell in line.strip("|\n").split("|")]
        for line in DOCS.read_text(encoding="utf-8").partition("## Scores")[2].partition("\n\nOn ")[0].splitlines()
        if line.startswith("|")
    ]
    columns, rows = table[0][1:], {row[0]: row[1:] for row in table[2:]}
    assert list(rows) == NAMES
    for name in ("periodic", "logistic", "concept", "concept-y2"):
        stream = open_stream(name)
        for baseline, forecasts in baselines(stream).items():
            written = float(rows[baseline][columns.index(name)])
            assert mse(forecasts, stream.targets) == pytest.approx(written, rel=0.01), (name, baseline)
