"""The families of standardised rows and the two forecasters, against loops over plain lists that share no code."""

import math

import numpy as np
import pytest

from nashcast.agents.history import PAD, History
from nashcast.encoders import Analogs, Lags, Quadratic, RandomLags, Reservoir, Seasonal, SeasonalSmoothing, Trend
from nashcast.encoders.base import Noise

STEPS, SEASON = 60, 5


def recorded(x_dim, y_dim, season=SEASON, steps=STEPS, seed=3):
    """A history, with its targets and inputs as lists; the last input is the present one."""
    rng = np.random.default_rng(seed)
    Y, X = rng.standard_normal((steps + 1, y_dim)).cumsum(axis=0) + 7.0, 3.0 * rng.standard_normal((steps + 1, x_dim))
    history = History(x_dim, Y[0], season)
    for t in range(steps):
        history.put_input(X[t])
        history.append(Y[t + 1], True)
        history.revise_scales()
    history.put_input(X[steps])
    return history, Y, X


class Plain:
    """Standard scores by their definition, from the scales that the history holds."""

    def __init__(self, history, Y, X):
        self.Y, self.X = Y, X
        self.mean, self.spread, self.usual = history.scales
        self.x_mean, self.x_spread, self.x_usual = history.input_scales

    def score(self, number):
        return max(-16.0, min(16.0, number))

    def value(self, t, k):
        return self.score((self.Y[max(t, 0)][k] - self.mean[k]) / self.spread[k])

    def change(self, t, k):
        return 0.0 if t < 1 else self.score((self.Y[t][k] - self.Y[t - 1][k]) / self.usual[k])

    def inputs(self, t):
        return [self.score((x - m) / s) for x, m, s in zip(self.X[t], self.x_mean, self.x_spread, strict=True)]

    def input_changes(self, t):
        before = self.X[max(t - 1, 0)]
        return [self.score((x - b) / u) for x, b, u in zip(self.X[t], before, self.x_usual, strict=True)]


def encoded(family, history, x_dim, y_dim):
    """Features of all rows, as one call gives them."""
    built = family.build(x_dim, y_dim)
    return built, built.encode_rows(history.rows_between(PAD, history.now + 1), built.start())[0]


def others(y_dim, k):
    return [j for j in range(y_dim) if j != k]


def trend(plain, t, k, y_dim):
    lags = [plain.change(t - lag, k) for lag in range(4)]
    return [*lags, *(plain.change(t, j) for j in others(y_dim, k)), *plain.input_changes(t)]


def lags(plain, t, k, y_dim):
    own = [1.0, *(plain.value(t - lag, k) for lag in range(4))]
    beside = [plain.value(t - lag, j) for lag in range(2) for j in others(y_dim, k)]
    return [*own, *beside, *plain.inputs(t), *plain.input_changes(t)]


def seasonal(plain, t, k, y_dim):
    before = t + 1 - SEASON
    change = plain.score((plain.Y[before][k] - plain.Y[t][k]) / plain.usual[k]) if before >= 0 else 0.0
    angles = [2.0 * math.pi * harmonic * (t % SEASON) / SEASON for harmonic in (1, 2, 3, 4)]
    # Five steps hold two harmonics.
    waves = [wave(angle) if place < 2 else 0.0 for wave in (math.sin, math.cos) for place, angle in enumerate(angles)]
    return [change, 1.0, *(plain.value(t - lag, k) for lag in range(3)), *waves, *plain.inputs(t)]


def quadratic(plain, t, k, y_dim):
    factors = [plain.value(t, k), plain.value(t - 1, k), *(plain.value(t, j) for j in others(y_dim, k))]
    factors = [*factors, *plain.inputs(t)][:5]
    products = [a * b for place, a in enumerate(factors) for b in factors[place:]]
    return [1.0, *factors, *products]


FAMILIES = {
    "trend": (Trend(), trend), "lags": (Lags(changes=True), lags), "seasonal": (Seasonal(), seasonal),
    "quadratic": (Quadratic(), quadratic),
}  # fmt: skip


@pytest.mark.parametrize(("x_dim", "y_dim"), [(0, 1), (3, 1), (2, 3)])
@pytest.mark.parametrize("name", FAMILIES)
def test_features_are_those_of_the_definition(name, x_dim, y_dim):
    family, definition = FAMILIES[name]
    history, Y, X = recorded(x_dim, y_dim)
    built, features = encoded(family, history, x_dim, y_dim)
    plain = Plain(history, Y, X)
    for t in range(len(Y)):
        for k in range(y_dim):
            wanted = definition(plain, t, k, y_dim)
            assert len(wanted) == built.features
            np.testing.assert_allclose(features[t, k], wanted, rtol=1e-12, atol=1e-12)


def test_random_features_and_reservoirs_are_those_of_their_weights():
    history, Y, X = recorded(3, 2)
    plain = Plain(history, Y, X)
    relu, features = encoded(RandomLags(hidden=7, seed=5), history, 3, 2)
    net, states = encoded(Reservoir(hidden=6, seed=5), history, 3, 2)
    state = [0.0] * 6
    for t in range(len(Y)):
        values = [[plain.value(t - lag, k) for k in range(2)] for lag in range(2)]
        seen = [*values[0], *values[1], *plain.inputs(t)]
        hidden = [
            max(0.0, bias + sum(s * w for s, w in zip(seen, column, strict=True)))
            for bias, column in zip(relu._bias, relu._weights.T, strict=True)
        ]
        seen = [*values[0], *plain.inputs(t)]
        state = [
            math.tanh(
                net._bias[i]
                + sum(s * w for s, w in zip(seen, net._weights[:, i], strict=True))
                + sum(s * w for s, w in zip(state, net._recurrent[:, i], strict=True))
            )
            for i in range(6)
        ]
        for k in range(2):
            np.testing.assert_allclose(features[t, k], [1.0, values[0][k], *hidden], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(states[t, k], [1.0, values[0][k], *state], rtol=1e-9, atol=1e-12)
    assert np.abs(np.linalg.eigvals(net._recurrent)).max() == pytest.approx(0.9)


@pytest.mark.parametrize("family", [Trend(), Lags(), Seasonal(), Quadratic(), RandomLags(), Reservoir()])
def test_features_do_not_depend_on_units(family):
    history, Y, X = recorded(3, 2)
    other = History(3, 1e6 * Y[0] - 5e6, SEASON)
    for t in range(STEPS):
        other.put_input(1e-4 * X[t] + 2.0)
        other.append(1e6 * Y[t + 1] - 5e6, True)
        other.revise_scales()
    other.put_input(1e-4 * X[STEPS] + 2.0)
    np.testing.assert_allclose(encoded(family, other, 3, 2)[1], encoded(family, history, 3, 2)[1], atol=1e-7)


def forecasts_of(family, history, x, x_dim, y_dim, horizon, state=None):
    built = family.build(x_dim, y_dim)
    rows = history.rows_between(history.now, history.now + 1)
    context = history.context(rows, x, None, (built.past_inputs, built.past_targets), Noise(0, history.step))
    return built.forecast(context._replace(state=state), horizon)


def analogs(Y, X, k, scales, input_scales, horizon):
    """Six forecasts of target k: for each kind of window the mean of five neighbours and a local ridge line."""
    series, now = Y[:, k], len(Y) - 1

    def window(kind, t):
        if kind == 0:
            return [series[t - lag] / scales.spread[k] for lag in range(4)]
        if kind == 1:
            return [(series[t - lag] - series[t - lag - 1]) / scales.change[k] for lag in range(4)]
        inputs = [x / s for x, s in zip(X[t][:6], input_scales.spread[:6], strict=True)]
        return [series[t] / scales.spread[k], series[t - 1] / scales.spread[k], *inputs]

    found = []
    for kind in range(3):
        here = np.array(window(kind, now))
        past = range(4, now)
        by_distance = sorted(past, key=lambda t: float(((np.array(window(kind, t)) - here) ** 2).sum()))
        near = by_distance[:24]
        differences = np.array([np.array(window(kind, t)) - here for t in near])
        for method in ("mean", "line"):
            said = []
            for h in range(1, horizon + 1):
                known = [series[t + h] - series[t] if t + h <= now else None for t in near]
                mean = np.mean([c for c in known if c is not None]) if any(c is not None for c in known) else 0.0
                followed = np.array([mean if c is None else c for c in known])
                if method == "mean":
                    said.append(series[now] + followed[:5].mean())
                    continue
                # min Σ (followed - a - bᵀd)² + r ‖b‖², r a tenth of the mean squared distance
                r = 0.1 * (differences**2).sum() / len(near) + 1e-12
                design = np.column_stack([np.ones(len(near)), differences])
                padded = np.vstack([design, np.sqrt(r) * np.eye(design.shape[1])[1:]])
                solution = np.linalg.lstsq(padded, np.r_[followed, np.zeros(design.shape[1] - 1)], rcond=None)[0]
                said.append(series[now] + solution[0])
            found.append(said)
    return np.array(found)


@pytest.mark.parametrize(("x_dim", "y_dim", "horizon"), [(0, 1, 1), (2, 1, 3), (8, 2, 4)])
def test_analogs_are_the_nearest_windows(x_dim, y_dim, horizon):
    history, Y, X = recorded(x_dim, y_dim)
    said = forecasts_of(Analogs(), history, X[-1], x_dim, y_dim, horizon)
    assert said.shape == (6, horizon, y_dim)
    for k in range(y_dim):
        wanted = analogs(Y, X, k, history.scales, history.input_scales, horizon)
        np.testing.assert_allclose(said[:, :, k], wanted, rtol=1e-9)


def test_analogs_search_only_their_memory():
    history, Y, X = recorded(2, 1)
    said = forecasts_of(Analogs(memory=30), history, X[-1], 2, 1, 2)
    wanted = analogs(Y[-35:], X[-35:], 0, history.scales, history.input_scales, 2)
    np.testing.assert_allclose(said[:, :, 0], wanted, rtol=1e-9)


@pytest.mark.parametrize("season", [None, SEASON])
def test_seasonal_smoothing_is_holt_winters_without_trend(season):
    """Level and season updated by hand from the first target on, each in its own loop."""
    rates = ((0.3, 0.1), (0.9, 0.4))
    history, Y, X = recorded(0, 2, season)
    built = SeasonalSmoothing(rates).build(0, 2)
    rows = history.rows_between(history.now, history.now + 1)
    context = history.context(rows, X[-1], None, (0, built.past_targets), Noise(0, 0))
    state = built.advance(context._replace(state=built.start(), season=season or 0))
    said = built.forecast(context._replace(state=state), 7)
    for i, (a, g) in enumerate(rates):
        for k in range(2):
            y = Y[:, k].tolist()
            if season:
                level = sum(y[: 2 * season]) / (2 * season)
                pattern = [(y[p] + y[p + season]) / 2 - level for p in range(season)]
            else:
                level, pattern = y[0], [0.0]
            for t, value in enumerate(y):
                place = t % len(pattern)
                level = level + a * (value - pattern[place] - level)
                if season:
                    pattern[place] += g * (value - level - pattern[place])
            wanted = [level + pattern[(len(y) + h) % len(pattern)] for h in range(7)]
            np.testing.assert_allclose(said[i, :, k], wanted, rtol=1e-10)
