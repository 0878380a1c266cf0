"""The state of the paper's federation: what is damaged is refused, and a refused file changes nothing."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.federation.saving.state_file import read_arrays, write_arrays
from support.federations import random_stream

STEPS = 14


def made(mixing="paper", forgetting=None, **settings):
    agents = [
        PaperAgent(nc.encoders.Linear(lags=2), name="linear", forgetting=forgetting),
        PaperAgent(nc.encoders.EchoState(features=2, seed=2, noise=0.2, samples=5), name="echo"),
        PaperAgent(nc.encoders.RandomFeatures(features=3, seed=1, noise=0.3), name="random"),
    ]
    game = nc.LookbackGame(lookback=3)
    return nc.paper_federation(agents, game=game, y_dim=2, mixing=mixing, agent_intervals=True, **settings)


def stream():
    return random_stream(np.random.default_rng(3), 2, steps=2 * STEPS, x_dim=2)


@pytest.fixture(scope="module", params=["paper", "boa"])
def kept(request, tmp_path_factory):
    """Settings, arrays and description of a federation whose last label is missing."""
    X, Y = stream()
    settings = {"mixing": request.param, "forgetting": 0.9 if request.param == "boa" else None}
    federation = made(**settings)
    federation.replay(X[:STEPS], Y[:STEPS])
    federation.learn_one(X[STEPS], None)
    path = tmp_path_factory.mktemp("state") / "sound"
    federation.save(path)
    return settings, *read_arrays(path)


def rest(federation, X, Y):
    """All that a federation says from here on."""
    rows = [np.array([federation.learn_late(federation.step - 1, Y[STEPS])])]
    for x, y in zip(X[STEPS + 1 :], Y[STEPS + 1 :], strict=True):
        rows += [federation.predict_one(x), *federation.interval(0.9), *federation.interval(0.8, agent="echo")]
        federation.learn_one(x, y)
    return np.concatenate([np.ravel(row) for row in rows])


def test_resumed_it_says_the_same_with_health_history_and_weights(kept, tmp_path):
    X, Y = stream()
    settings, arrays, about = kept
    whole, resumed = made(**settings), made(**settings)
    whole.replay(X[:STEPS], Y[:STEPS])
    whole.learn_one(X[STEPS], None)
    write_arrays(tmp_path / "state", arrays, about)
    resumed.load(tmp_path / "state")
    assert resumed.health == whole.health
    assert resumed.health["games"] == STEPS - 3
    assert (resumed.weights, resumed.step) == (whole.weights, whole.step)
    for one, other in zip(resumed.history, whole.history, strict=True):
        np.testing.assert_array_equal(one.forecast, other.forecast)
        np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_array_equal(rest(resumed, X, Y), rest(whole, X, Y))


def damaged(arrays):
    """Each array missing, of another type, of another shape, and with numbers that it cannot have."""
    for name, value in arrays.items():
        less = {other: kept for other, kept in arrays.items() if other != name}
        yield f"{name} missing", less
        yield f"{name} of another type", less | {name: value.astype(np.float32 if value.dtype != bool else np.uint8)}
        if value.size:
            yield (
                f"{name} longer",
                less | {name: np.concatenate([np.atleast_1d(value)] * 2 + [np.atleast_1d(value)[:1]])},
            )
        if value.dtype == np.int64 and value.size:
            yield f"{name} negative", less | {name: np.full_like(value, -1)}
        if name.startswith(("loop.", "last_weights")) and value.dtype == np.float64 and value.size:
            yield f"{name} NaN", less | {name: np.full_like(value, np.nan)}
    yield "an unknown array", arrays | {"loop.more": np.zeros(2)}
    yield "an unknown array of an agent", arrays | {"loop.agents.0.more": np.zeros(2)}
    yield "other features", arrays | {"loop.features": arrays["loop.features"] + 1}


# NaN is what these hold where something is missing, or what an overflow leaves; the agent then sits out.
MAY_BE_NAN = ("inputs", "targets", "presents", "decoder", "gram", "cross")


# What an encoder or an expert rule keeps is for itself to judge.
OF_THEIR_OWN = (".encoder.", "loop.mixing.")


def attempt(federation, arrays, about):
    """Whether this state is accepted; without a file, whose damage is tested elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nashcast.federation.federation.read_arrays", lambda path: (arrays, about))
        try:
            federation.load("state")
        except nc.InvalidInput:
            return False
    return True


def test_a_damaged_file_is_refused_and_changes_nothing(kept):
    X, Y = stream()
    settings, arrays, about = kept
    federation, twin, tried = made(**settings), made(**settings), 0
    for each in (federation, twin):
        each.replay(X[STEPS:], Y[STEPS:])
        each.predict_one(X[0])
    for what, changed in damaged(arrays):
        name, way = what.rsplit(" ", 1)
        if any(part in name for part in OF_THEIR_OWN):
            continue
        if way == "NaN" and (name.rsplit(".", 1)[-1] in MAY_BE_NAN or name == "last_weights"):
            continue
        assert not attempt(federation, changed, about), what
        tried += 1
    assert tried > 150
    for changed in ({**about, "members": ["linear", "echo", "other"]}, {**about, "made": {}}, {**about, "health": 3}):
        assert not attempt(federation, arrays, changed)
    # All of the above was refused by a federation in the middle of a step: it goes on as if nothing had been.
    assert federation.health == twin.health
    for each in (federation, twin):
        each.learn_one(X[0], Y[0])
    np.testing.assert_array_equal(federation.replay(X, Y).forecasts, twin.replay(X, Y).forecasts)
    np.testing.assert_array_equal(federation.certificate().worst, twin.certificate().worst)
    # And the sound file is loaded after them.
    fresh = made(**settings)
    assert attempt(federation, arrays, about)
    assert attempt(fresh, arrays, about)
    np.testing.assert_array_equal(rest(federation, X, Y), rest(fresh, X, Y))


def test_what_only_an_encoder_or_a_rule_can_judge_is_refused_or_survived(kept):
    X, Y = stream()
    settings, arrays, about = kept
    refused = 0
    tried = [each for each in damaged(arrays) if any(part in each[0] for part in OF_THEIR_OWN)]
    for what, changed in tried:
        federation = made(**settings)
        if not attempt(federation, changed, about):
            refused += 1
            continue
        assert np.isfinite(federation.replay(X[:6], Y[:6]).forecasts).all(), what
    assert len(tried) > refused >= len(tried) / 2


def test_labels_that_come_before_the_stream_begins(tmp_path):
    X, Y = stream()
    federation = made()
    federation.learn_one(X[0], None)
    federation.learn_one(X[1], None)
    assert federation.step == 2
    assert federation.learn_late(0, Y[0])  # the stream begins with it; the second input is forecast from
    assert (federation.step, federation.loop.state.step) == (2, 1)
    assert not federation.learn_late(0, Y[0])  # it is the start: there is no forecast of it
    assert federation.learn_late(1, Y[1])
    other = made(start=Y[0])
    other.learn_one(X[1], Y[1])
    np.testing.assert_array_equal(federation.replay(X[2:], Y[2:]).forecasts, other.replay(X[2:], Y[2:]).forecasts)


def test_it_takes_tables_and_gives_quantiles():
    X, Y = stream()
    federation = nc.paper_federation([nc.Agent(nc.encoders.Linear()), nc.Agent(nc.encoders.RandomFeatures(3, seed=1))])
    table = {"a": X[:, 0], "b": X[:, 1], "load": Y[:, 0]}
    result = federation.backtest(table, target="load", inputs=["a", "b"], burn_in=5, progress=False)
    assert np.isfinite(result.summary["MAE"])
    assert np.isfinite(federation.forecast()["load"]).all()
    assert len(federation.predict_quantiles([0.1, 0.5, 0.9])) == 3
    assert federation.own_forecasts().shape == (2, 1, 1)


def test_trust_is_each_members_error_and_what_would_be_lost_without_it():
    X, Y = stream()
    down = {5, 6, 11}

    def flaky(x):
        flaky.calls += 1
        if flaky.calls - 1 in down:
            raise OSError("down")
        return np.repeat(x[:1], 2)

    flaky.calls = 0
    agents = [
        PaperAgent(nc.encoders.Linear(), name="linear"),
        PaperAgent(nc.encoders.Callable(flaky, features=1), name="flaky"),
        PaperAgent(nc.encoders.RandomFeatures(features=3, seed=1), name="random"),
    ]
    federation = nc.paper_federation(agents, y_dim=2, start=[0.0, 0.0])
    found = federation.replay(X, Y)
    own, mixed, without, fading = [[], [], []], 0.0, np.zeros(3), 0.99
    for t, y in enumerate(Y):
        here = [i for i in range(3) if i != 1 or t not in down]
        mixed = fading * mixed + np.mean((found.forecasts[t] - y) ** 2)
        for i in range(3):
            others = [j for j in here if j != i]
            weights = {j: found.weights[t, j] + found.weights[t, i] / len(others) for j in others}
            rest = sum(weights[j] * found.agents[t, j] for j in others) if i in here else found.forecasts[t]
            without[i] = fading * without[i] + np.mean((rest - y) ** 2)
            if i in here:
                own[i].append(np.mean((found.agents[t, i] - y) ** 2))
    told = federation.trust()
    assert [one.name for one in told] == ["linear", "flaky", "random"]
    np.testing.assert_allclose([one.error for one in told], [np.mean(errors) for errors in own], rtol=1e-12)
    np.testing.assert_allclose([one.loss_without for one in told], without / mixed - 1.0, rtol=1e-9)
    assert [one.weight for one in told] == found.weights[-1].tolist()
    assert all(one.included for one in told)


def test_a_lookback_game_has_its_own_call():
    agents = [nc.Agent(nc.encoders.Linear())]
    with pytest.raises(nc.InvalidInput, match=r"game: got LookbackGame.*call nashcast\.paper_federation"):
        nc.Federation(agents, game=nc.LookbackGame())
