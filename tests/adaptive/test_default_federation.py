"""The default federation: its verbs, what must not matter to it, and what it remembers."""

import numpy as np
import pytest

import nashcast as nc
from nashcast import streams
from nashcast.adaptive.learning import relearn
from nashcast.adaptive.memory import CAPACITY, ROWS
from nashcast.adaptive.plan import AGENTS
from outsiders import Outsider


def wave(steps, seed=0, y_dim=1, x_dim=2):
    rng = np.random.default_rng(seed)
    t = np.arange(steps)[:, None]
    X = rng.standard_normal((steps, x_dim))
    Y = np.sin(t / 5.0 + np.arange(y_dim)) + 0.1 * rng.standard_normal((steps, y_dim)) + 0.3 * X[:, :1]
    return X, Y


def run(federation, X, Y):
    return federation.replay(X, Y).forecasts


def test_predicting_learns_nothing_and_replay_is_the_same_loop():
    X, Y = wave(60, y_dim=2)
    federation, looked_twice = nc.default_federation(2, 2), nc.default_federation(2, 2)
    replayed = run(nc.default_federation(2, 2), X, Y)
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        forecast = federation.predict_one(x)
        if t:
            np.testing.assert_array_equal(forecast, replayed[t])
        federation.learn_one(x, y)
        looked_twice.predict_one(x)
        looked_twice.predict_one(100.0 * x)
        looked_twice.learn_one(x, y)
    np.testing.assert_array_equal(federation.predict_one(X[0]), looked_twice.predict_one(X[0]))
    assert federation.health == looked_twice.health


def test_without_a_start_the_first_label_is_it_and_with_one_the_first_step_counts():
    federation = nc.default_federation(1)
    assert federation.predict_one(0.3) == 0.0
    assert federation.weights == {}
    federation.learn_one(0.3, 5.0)
    assert federation.predict_one(0.3) == 5.0
    assert federation.step == 0
    assert nc.default_federation(1, start=5.0).predict_one(0.3) == 5.0


@pytest.mark.parametrize("at", [3, 25, 200])
def test_saved_and_loaded_it_goes_on_bit_for_bit(tmp_path, at):
    X, Y = wave(at + 40, y_dim=2)
    said = Y + 0.2
    make = lambda: nc.default_federation(2, 2, agents=[Outsider(said)], seed=3)  # noqa: E731
    first, second = make(), make()
    run(first, X[:at], Y[:at])
    first.save(tmp_path / "state.state")
    second.load(tmp_path / "state.state")
    assert second.step == first.step
    assert second.weights == first.weights
    np.testing.assert_array_equal(run(first, X[at:], Y[at:]), run(second, X[at:], Y[at:]))
    for name, mine in first._memory._asdict().items():
        np.testing.assert_array_equal(mine, getattr(second._memory, name), err_msg=name)


def test_dicts_go_in_and_come_out():
    federation = nc.default_federation(2, 2, start={"b": 1.0, "a": 2.0})
    assert federation.predict_one({"u": 1.0, "v": 2.0}) == {"a": 2.0, "b": 1.0}
    federation.learn_one({"u": 1.0, "v": 2.0}, {"a": 2.5, "b": 1.0})
    with pytest.raises(nc.InvalidInput, match="keys"):
        federation.predict_one({"w": 1.0})


def test_units_do_not_matter():
    stream = streams.logistic_map(120)
    plain = run(nc.default_federation(1, start=stream.start), stream.inputs, stream.targets)
    scaled = run(
        nc.default_federation(1, start=1e4 * stream.start - 3e4), 0.01 * stream.inputs + 7, 1e4 * stream.targets - 3e4
    )
    # Rounding grows along the stream: decoders with next to no ridge are nearly singular.
    np.testing.assert_allclose((scaled[:60] + 3e4) / 1e4, plain[:60], atol=1e-4)
    error = [np.mean((f - stream.targets) ** 2) for f in (plain, (scaled + 3e4) / 1e4)]
    assert error[1] == pytest.approx(error[0], rel=0.05)


def test_every_agents_weight_is_told_and_is_that_of_its_variants():
    X, Y = wave(50)
    federation = nc.default_federation(2)
    replayed = federation.replay(X, Y)
    assert federation.agents == list(AGENTS)
    assert list(federation.weights) == list(AGENTS)
    assert sum(federation.weights.values()) == pytest.approx(1.0)
    np.testing.assert_allclose(replayed.weights[-1], list(federation.weights.values()))
    np.testing.assert_allclose(replayed.weights[1:].sum(axis=1), 1.0)
    # The forecast is the agents' own, as they are weighed.
    mixed = (replayed.weights[:, :, None] * replayed.agents).sum(axis=1)
    np.testing.assert_allclose(mixed[1:], replayed.forecasts[1:], atol=1e-12)
    echo = sum(w for name, w in federation.variant_weights.items() if name.startswith("echo state"))
    assert echo == pytest.approx(federation.weights["echo state"])
    assert len(federation.history) == federation.step


def test_memories_are_the_sums_they_stand_for():
    X, Y = wave(70, y_dim=2)
    federation = nc.default_federation(2, 2)
    run(federation, X, Y)
    memory = federation._memory
    gram, cross = memory.gram.copy(), memory.cross.copy()
    # Learnt again from the rows, nothing changes: features, scales and season are those of now.
    relearn(federation._plan, memory, 0)
    np.testing.assert_allclose(memory.gram, gram, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(memory.cross, cross, rtol=1e-9, atol=1e-9)


def test_a_variants_forecast_is_ridge_on_all_it_has_seen():
    X, Y = wave(40)
    federation = nc.default_federation(2, start=0.0, game=False)
    run(federation, X, Y)
    plan, memory = federation._plan, federation._memory
    rows, size = int(memory.counts[ROWS]), memory.target_scales[2, 0]
    y = memory.targets[:rows, 0]
    federation.predict_one(X[0])
    change = np.diff(y, prepend=y[0])
    z = np.column_stack([np.concatenate([np.zeros(lag), change[: rows - lag]]) for lag in range(4)]) / size
    inputs = np.vstack([X, X[:1]])
    moved = np.diff(inputs, axis=0, prepend=inputs[:1]) / memory.input_scales[2]
    z = np.column_stack([z, moved])
    response = np.diff(y) / size
    for v, (learner, m) in enumerate(plan.variants):
        if learner == 0:
            fading = plan.forgetting[m] ** np.arange(rows - 2, -1, -1)
            past = z[:-1] * np.sqrt(fading)[:, None]
            penalty, centre = plan.ridge[v] * z.shape[1], np.zeros(z.shape[1])
            centre[0] = plan.centre[v]
            M = past.T @ past + penalty * np.eye(z.shape[1])
            beta = np.linalg.solve(M, past.T @ (response * np.sqrt(fading)) + penalty * centre)
            leverage = z[-1] @ np.linalg.solve(M, z[-1])
            share = 1.0 / max(1.0, leverage / 5.0)
            wanted = y[-1] + size * z[-1] @ (centre + share * (beta - centre))
            wanted = np.clip(wanted, y[-1] - memory.largest[0], y[-1] + memory.largest[0])
            expert = 4 + v
            assert memory.forecasts[0, expert] == pytest.approx(wanted, rel=1e-6)
            assert memory.reach[0, expert] == pytest.approx(1.0 + leverage, rel=1e-5)


def test_a_label_that_comes_late_teaches_as_if_it_had_come_in_time():
    X, Y = wave(60)
    late, in_time = nc.default_federation(2, start=0.0), nc.default_federation(2, start=0.0)
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        late.learn_one(x, None if t == 50 else y)
        in_time.learn_one(x, y)
    assert late.health["missing labels"] == 1
    assert late.learn_late(50, Y[50])
    assert late.health["late labels"] == 1
    memory, other = late._memory, in_time._memory
    np.testing.assert_array_equal(memory.targets[:61], other.targets[:61])
    relearn(late._plan, other, 0)
    np.testing.assert_allclose(memory.gram, other.gram, rtol=1e-9)
    with pytest.raises(nc.InvalidInput, match="before the present one, 60"):
        late.learn_late(60, 0.0)


def test_missing_labels_and_inputs_are_lived_with_and_counted():
    X, Y = wave(200)
    X, Y = X.copy(), Y.copy()
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < 0.05] = np.nan
    gaps = Y.copy()
    gaps[rng.random(200) < 0.1] = np.nan
    federation = nc.default_federation(2)
    forecasts = federation.replay(X, gaps).forecasts
    assert np.isfinite(forecasts).all()
    # Better than to go on with the last label that was seen.
    seen = np.maximum.accumulate(np.where(np.isnan(gaps[:, 0]), 0, np.arange(200)))
    carried = np.vstack([Y[:1], Y[seen][:-1]])
    assert np.mean((forecasts[50:] - Y[50:]) ** 2) < 0.5 * np.mean((carried[50:] - Y[50:]) ** 2)
    health = federation.health
    assert health["missing labels"] == int(np.isnan(gaps[1:]).sum())
    assert health["missing inputs"] == int(np.isnan(X[1:]).any(axis=1).sum())


def test_no_inputs_many_inputs_and_many_targets():
    Y = np.tile([[1.0], [3.0], [2.0]], (20, 1))
    federation = nc.default_federation(0)
    assert federation.predict_one(None) == federation.predict_one([]) == 0.0
    forecasts = run(federation, np.empty((60, 0)), Y)
    np.testing.assert_allclose(forecasts[-9:], Y[-9:], atol=1e-3)
    X, Y = wave(80, x_dim=60, y_dim=4)
    result = nc.default_federation(60, 4).replay(X, Y)
    before = np.vstack([Y[:1], Y[:-1]])
    assert result.mse < np.mean((Y - before) ** 2)


@pytest.mark.parametrize(
    "series",
    [
        lambda t: np.full(len(t), 3.0),
        lambda t: np.where(t < 30, 0.0, 5.0),
        lambda t: np.exp(t / 5.0),
        lambda t: 1e150 * np.cos(t * t),
        lambda t: 1e-200 * np.cos(t * t),
        lambda t: 1e12 + np.cos(t * t),
        lambda t: np.where(t == 40, 1e9, 0.1 * np.cos(t * t)),
    ],
)
def test_odd_series_give_forecasts_all_the_same(series):
    Y = series(np.arange(60.0))[:, None]
    forecasts = run(nc.default_federation(0), np.empty((60, 0)), Y)
    assert np.isfinite(forecasts).all()
    before = np.vstack([Y[:1], Y[:-1]]) / np.abs(Y).max()
    ours, persistence = (
        np.mean((forecasts / np.abs(Y).max() - Y / np.abs(Y).max())[1:] ** 2),
        np.mean((before - Y / np.abs(Y).max())[1:] ** 2),
    )
    assert ours <= 1.2 * persistence + 1e-25


def test_the_season_is_found_or_taken_as_given():
    rng = np.random.default_rng(4)
    Y = (5.0 * rng.standard_normal(12))[np.arange(200) % 12][:, None] + 0.1 * rng.standard_normal((200, 1))
    federation = nc.default_federation(0)
    found = federation.replay(np.empty((200, 0)), Y)
    assert federation.season == 12
    assert federation.weights["seasonal"] > 0.5
    given = nc.default_federation(0, season=12)
    known = given.replay(np.empty((200, 0)), Y)
    errors = [((r.forecasts - Y) ** 2)[14:40].mean() for r in (found, known)]
    assert errors[1] < errors[0]
    assert nc.default_federation(0).season is None


def test_a_long_season_is_not_taken_for_a_short_lag_at_which_changes_go_together_too():
    t, noise = np.arange(900), 0.2 * np.random.default_rng(1).standard_normal(903)
    level = 3.0 * np.sin(2 * np.pi * t / 52) + 0.03 * t + noise[:900] + 0.3 * noise[3:]
    federation = nc.default_federation(0)
    for y in level:
        federation.learn_one(None, y)
    change = np.diff(level)
    assert np.corrcoef(change[3:], change[:-3])[0, 1] > np.corrcoef(change[52:], change[:-52])[0, 1] > 0.3
    assert 46 <= federation.season <= 58


def test_it_goes_on_beyond_the_rows_it_keeps(tmp_path):
    steps = CAPACITY + 60
    Y = np.sin(np.arange(steps) * 0.7)[:, None]
    federation, X = nc.default_federation(0), np.empty((steps, 0))
    for y in Y[:-50]:
        federation.learn_one(None, y)
    forecasts = run(federation, X[-50:], Y[-50:])
    assert federation.step == steps - 1
    assert federation._memory.counts[ROWS] < CAPACITY
    assert np.abs(forecasts - Y[-50:]).max() < 1e-3
    federation.save(tmp_path / "long.state")
    other = nc.default_federation(0)
    other.load(tmp_path / "long.state")
    np.testing.assert_array_equal(run(federation, X[:20], Y[:20]), run(other, X[:20], Y[:20]))
    assert not federation.learn_late(1, 0.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nc.default_federation(-1), "x_dim: got int -1"),
        (lambda: nc.default_federation(1, 0), "y_dim: got int 0"),
        (lambda: nc.default_federation(1, season=1), "season: got int 1"),
        (lambda: nc.default_federation(1, season=500), "season: got 500. Pass at most 168"),
        (lambda: nc.default_federation(1, agents=[3]), r"agents\[0\]: got int 3. Pass nashcast.Agent"),
        (lambda: nc.default_federation(1, agents=[a := Outsider([[0.0]]), a]), "the same agent twice"),
        (lambda: nc.default_federation(1, start=[1.0, 2.0]), "start: got shape"),
        (lambda: nc.default_federation(2).predict_one([1.0]), "x: got shape"),
        (lambda: nc.default_federation(2).replay(np.zeros((3, 1)), np.zeros((3, 1))), "inputs: got shape"),
    ],
)
def test_bad_arguments_are_refused(make, words):
    with pytest.raises(nc.InvalidInput, match=words):
        make()


def test_another_federations_state_is_refused(tmp_path):
    federation = nc.default_federation(1)
    with pytest.raises(nc.NashcastError, match="has not begun"):
        federation.save(tmp_path / "state.state")
    federation.learn_one(0.0, 1.0)
    federation.learn_one(0.0, 2.0)
    federation.save(tmp_path / "state.state")
    with pytest.raises(nc.InvalidInput, match="another federation"):
        nc.default_federation(2).load(tmp_path / "state.state")
    with pytest.raises(nc.InvalidInput, match="another federation"):
        nc.default_federation(1, game=False).load(tmp_path / "state.state")
