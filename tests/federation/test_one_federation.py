"""The federation's verbs: shapes, horizons, late and missing labels, states, hostile input."""

import threading

import numpy as np
import pytest

import nashcast as nc
from nashcast.encoders import BuiltEncoder
from support.streams_of_owners import four_owners


class Broken:
    """An encoder that does as told from a step on."""

    def __init__(self, act, since=10):
        self.act, self.since = act, since

    def build(self, x_dim, y_dim):
        return _Broken(self.act, self.since, y_dim)


class _Broken(BuiltEncoder):
    features = 1

    def __init__(self, act, since, y_dim):
        self._act, self._since, self._y_dim, self._calls = act, since, y_dim, 0

    def encode(self, context):
        self._calls += 1
        if self._calls > self._since:
            return self._act(context)
        return np.full((self._y_dim, 1), context.x[0])


def agents(y_dim=1):
    return [
        nc.Agent(nc.encoders.Trend()),
        nc.Agent(nc.encoders.Callable(lambda x: np.repeat(x[0], y_dim), features=1), name="vendor"),
        nc.Agent([nc.encoders.Seasonal(), nc.encoders.Reservoir(hidden=6, seed=1)], name="rich", inputs=[1, 2]),
        nc.Agent(nc.encoders.SeasonalSmoothing(), name="smoothing"),
        nc.Agent(nc.encoders.Analogs(memory=64), name="analogs"),
    ]


def as_target(row):
    return row if len(row) > 1 else float(row[0])


def run(federation, X, Y, first=0):
    said = []
    for x, y in zip(X[first:], Y[first:], strict=True):
        said.append(np.array(federation.predict_one(x)))
        federation.learn_one(x, as_target(y))
    return np.array(said)


@pytest.mark.parametrize(("horizon", "y_dim", "shape"), [(1, 1, ()), (1, 2, (2,)), (5, 1, (5,)), (5, 2, (5, 2))])
def test_shapes_of_forecasts_and_intervals(horizon, y_dim, shape):
    X, Y = four_owners(0.3, y_dim, steps=40)
    federation = nc.Federation(agents(y_dim), horizon=horizon, y_dim=y_dim)
    assert np.shape(federation.predict_one(X[0])) == shape
    run(federation, X, Y)
    forecast = np.array(federation.predict_one(X[0]))
    low, high = federation.interval(0.8)
    assert forecast.shape == np.shape(low) == np.shape(high) == shape
    assert (low <= forecast).all()
    assert (forecast <= high).all()


def test_horizons_beat_persistence_where_the_series_is_predictable():
    t = np.arange(700)
    y = (
        np.sin(2 * np.pi * t / 24)
        + 0.3 * np.sin(2 * np.pi * t / 7)
        + 0.05 * np.random.default_rng(1).standard_normal(700)
    )
    federation = nc.Federation(nc.default_agents(), horizon=12)
    said = []
    for value in y:
        said.append(federation.predict_one(None))
        federation.learn_one(None, value)
    said = np.array(said)
    for h in (1, 4, 8, 12):
        # Row t of `said` was made when y[t - 1] was known, and its column h - 1 is of y[t + h - 1].
        rows = np.arange(400, 700 - h)
        error = ((said[rows, h - 1] - y[rows + h - 1]) ** 2).mean()
        persistence = ((y[rows - 1] - y[rows + h - 1]) ** 2).mean()
        assert error < 0.3 * persistence


def test_predicting_learns_nothing():
    X, Y = four_owners(0.3, steps=60)
    plain, curious = nc.Federation(agents()), nc.Federation(agents())
    run(plain, X, Y)
    for x, y in zip(X, Y, strict=True):
        curious.predict_one(-x)
        curious.predict_one(x)
        curious.predict_one(x)
        curious.learn_one(x, y[0])
    assert plain.predict_one(X[0]) == curious.predict_one(X[0])


@pytest.mark.parametrize(
    "settings", [{}, {"horizon": 4}, {"y_dim": 2}, {"game": None}, {"mixing": "boa"}, {"agent_intervals": True}]
)
def test_a_saved_federation_continues_bit_for_bit(settings, tmp_path):
    X, Y = four_owners(0.3, settings.get("y_dim", 1), steps=120)
    one, other = (nc.Federation(agents(settings.get("y_dim", 1)), **settings) for _ in range(2))
    run(one, X[:70], Y[:70])
    one.learn_one(X[70], None)
    one.save(tmp_path / "state")
    other.load(tmp_path / "state")
    for federation in (one, other):
        assert federation.learn_late(70, as_target(Y[70]))
    np.testing.assert_array_equal(run(one, X, Y, 71), run(other, X, Y, 71))
    one.predict_one(X[0]), other.predict_one(X[0])
    np.testing.assert_array_equal(one.interval(0.9), other.interval(0.9))
    assert one.health == other.health
    assert one.weights == other.weights
    assert [record.step for record in one.history] == [record.step for record in other.history]
    np.testing.assert_equal([tuple(row) for row in one.trust()], [tuple(row) for row in other.trust()])


def test_a_refused_file_changes_nothing(tmp_path):
    X, Y = four_owners(0.3, steps=60)
    federation = nc.Federation(agents())
    run(federation, X, Y)
    federation.save(tmp_path / "mine")
    before = federation.predict_one(X[0])
    other = nc.Federation([nc.Agent(nc.encoders.Trend())])
    run(other, X, Y)
    other.save(tmp_path / "other")
    (tmp_path / "damaged").write_bytes((tmp_path / "mine").read_bytes()[:-7])
    for name in ("other", "damaged", "none"):
        with pytest.raises(nc.InvalidInput, match="path"):
            federation.load(tmp_path / name)
        assert federation.predict_one(X[0]) == before
        assert federation.step == 60


def test_labels_late_at_once_are_labels_in_time():
    X, Y = four_owners(0.3, steps=200)
    on_time, late = nc.Federation(agents()), nc.Federation(agents())
    for x, y in zip(X, Y, strict=True):
        np.testing.assert_allclose(on_time.predict_one(x), late.predict_one(x), rtol=1e-9, atol=1e-11)
        on_time.learn_one(x, y[0])
        step = late.step
        late.learn_one(x, None)
        assert late.learn_late(step, y[0])
    assert late.health["late labels"] == 200


@pytest.mark.parametrize("delay", [1, 24])
def test_labels_late_from_the_first_step_teach(delay):
    t = np.arange(500)
    y = 3.0 + np.sin(2 * np.pi * t / 12)
    federation = nc.Federation([nc.Agent(nc.encoders.Seasonal()), nc.Agent(nc.encoders.Lags())])
    said = []
    for step in range(500):
        said.append(federation.predict_one(None))
        federation.learn_one(None, None)
        if step >= delay:
            assert federation.learn_late(step - delay, y[step - delay])
    error = ((np.array(said)[300:] - y[300:]) ** 2).mean()
    # What stood there when the last label that was known then came.
    stale = ((y[300 - delay - 1 : 500 - delay - 1] - y[300:]) ** 2).mean()
    assert error < 0.2 * stale


def test_missing_labels_and_inputs_are_survived_and_counted():
    X, Y = four_owners(0.3, steps=200)
    federation = nc.Federation(agents())
    for t, (x, y) in enumerate(zip(X, Y, strict=True)):
        x = np.where(np.arange(4) == t % 9, np.nan, x)
        assert np.isfinite(federation.predict_one(x))
        federation.learn_one(x, None if t % 7 == 3 else y[0])
    assert federation.health["missing labels"] == len(range(3, 200, 7))
    assert set(federation.health["absences"]) == {"vendor"}


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
def test_one_wild_target_is_quarantined_and_forgotten(size):
    t = np.arange(600)
    y = np.sin(2 * np.pi * t / 24) + 0.1 * np.random.default_rng(2).standard_normal(600)
    errors = {}
    for wild in (0.0, size):
        federation, said = nc.default_federation(0), []
        for step in range(600):
            said.append(federation.predict_one(None))
            federation.learn_one(None, y[step] + (wild if step == 300 else 0.0))
        errors[wild] = (np.array(said) - y) ** 2
        assert federation.health["suspect labels"] == (wild > 0.0)
    near = slice(301, 401)
    assert errors[size][near].mean() <= 1.5 * errors[0.0][near].mean()
    assert errors[size][401:].mean() == pytest.approx(errors[0.0][401:].mean(), rel=0.05)


def test_a_new_level_is_accepted_after_three_labels():
    y = np.concatenate([np.sin(np.arange(200)), 1e6 + np.sin(np.arange(200))])
    federation, said = nc.default_federation(0), []
    for value in y:
        said.append(federation.predict_one(None))
        federation.learn_one(None, value)
    assert federation.health["suspect labels"] == 2
    assert np.abs(np.array(said)[300:] - y[300:]).max() < 3.0


def _raise(context):
    raise RuntimeError("the vendor's model is down")


def _write(context):
    context.x[:] = 0.0
    return np.zeros((1, 1))


@pytest.mark.parametrize(
    "act",
    [
        _raise,
        _write,
        lambda context: np.full((1, 1), np.nan),
        lambda context: np.full((1, 1), np.inf),
        lambda context: np.zeros((3, 3)),
        lambda context: "features",
        lambda context: None,
    ],
)
def test_an_encoder_that_fails_sits_out_and_harms_no_other(act):
    X, Y = four_owners(0.3, steps=80)
    alone = nc.Federation([nc.Agent(nc.encoders.Trend()), nc.Agent(Broken(act, since=0), name="broken")])
    good = run(alone, X, Y)
    assert alone.health["absences"] == {"broken": 80 - 1}
    assert alone.health["reasons"]["broken"]
    assert np.isfinite(good).all()


def test_features_of_any_size_are_survived():
    X, Y = four_owners(0.3, steps=120)
    plain = run(nc.Federation([nc.Agent(nc.encoders.Lags())]), X, Y)
    wild = nc.Agent(Broken(lambda context: np.full((1, 1), 1e99), since=60), name="wild")
    beside = run(nc.Federation([nc.Agent(nc.encoders.Lags()), wild]), X, Y)
    assert np.isfinite(beside).all()
    y = Y[:, 0]
    assert ((beside - y)[70:] ** 2).mean() < 1.5 * ((plain - y)[70:] ** 2).mean()


def test_a_buffer_that_is_used_again_changes_nothing():
    X, Y = four_owners(0.3, steps=60)
    fresh, reused = nc.Federation(agents()), nc.Federation(agents())
    buffer, target = np.empty(4), np.empty(1)
    for x, y in zip(X, Y, strict=True):
        buffer[:], target[:] = x, y
        assert fresh.predict_one(x) == reused.predict_one(buffer)
        fresh.learn_one(x, y)
        reused.learn_one(buffer, target)
        buffer[:], target[:] = 1e9, 1e9


def test_two_threads_take_turns():
    X, Y = four_owners(0.3, steps=400)
    federation, failures = nc.Federation(agents()), []

    def work():
        try:
            for x, y in zip(X[:150], Y[:150], strict=True):
                federation.predict_one(x)
                federation.learn_one(x, y[0])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert federation.step == 450


def test_refused_input_changes_nothing():
    federation = nc.Federation(agents())
    for x, y in (([1.0, 2.0, 3.0], "two"), ({"a": "b"}, 1.0), (np.ma.masked_array([1.0]), 1.0), ([1j], 1.0)):
        with pytest.raises(nc.InvalidInput):
            federation.learn_one(x, y)
    X, Y = four_owners(0.3, steps=20)
    run(federation, X, Y)
    assert federation.step == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"agents": []}, "agents"),
        ({"agents": [nc.encoders.Trend()]}, r"agents\[0\]"),
        ({"game": True}, "game"),
        ({"mixing": "best"}, "mixing"),
        ({"horizon": 0}, "horizon"),
        ({"season": 1}, "season"),
        ({"season": 10_000}, "season"),
        ({"seed": -1}, "seed"),
    ],
)
def test_settings_are_refused_by_name(arguments, message):
    settings = {"agents": agents(), **arguments}
    with pytest.raises(nc.InvalidInput, match=message):
        nc.Federation(settings.pop("agents"), **settings)


def test_inputs_of_agents_are_refused_by_name():
    X, _ = four_owners(0.3, steps=20)
    federation = nc.Federation([nc.Agent(nc.encoders.Lags(), name="desk", inputs=[7])], start=0.0)
    with pytest.raises(nc.InvalidInput, match="inputs of agent 'desk'"):
        federation.predict_one(X[0])
    by_name = nc.Federation([nc.Agent(nc.encoders.Lags(), inputs=["b"])], start=0.0)
    by_name.predict_one({"a": 1.0, "b": 2.0})
    wrong = nc.Federation([nc.Agent(nc.encoders.Lags(), inputs=["c"])], start=0.0)
    with pytest.raises(nc.InvalidInput, match="'c'"):
        wrong.predict_one({"a": 1.0, "b": 2.0})


def test_a_given_season_is_used_from_the_start():
    y = np.tile([1.0, 5.0, 2.0, 8.0, 3.0], 8)
    federation, said = nc.Federation([nc.Agent(nc.encoders.Seasonal())], season=5), []
    for value in y:
        said.append(federation.predict_one(None))
        federation.learn_one(None, value)
    assert federation.season == 5
    np.testing.assert_allclose(said[-5:], y[-5:], atol=0.05)


def test_members_of_one_name_are_told_apart():
    names = ["baselines", "joint game", "desk", "desk", "desk 2"]
    federation = nc.Federation([nc.Agent(nc.encoders.Trend(), name=name) for name in names], start=0.0)
    for y in (1.0, 2.0, 3.0):
        federation.learn_one(None, y)
    wanted = ["baselines", "baselines 1", "joint game 1", "desk 1", "desk 3", "desk 2", "joint game"]
    assert federation.members == list(federation.weights) == wanted
    assert sum(federation.weights.values()) == pytest.approx(1.0)
