"""The federation online: its placements, its purity, its memory, and what goes wrong in real streams."""

import gc
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.agents.protocol import Participant
from nashcast.mixing.mixture_weights import mixture_weights
from support.encoding import encode_step
from support.federations import random_agents, random_settings, random_stream

HERE = Path(__file__).parent
LINEAR = nc.encoders.Linear()


def made(seed, **change):
    """The same federation each time it is made: agents hold what they learn, so every run needs its own."""
    rng = np.random.default_rng(seed)
    y_dim = int(rng.integers(1, 4))
    settings = {**random_settings(rng, y_dim), "start": np.zeros(y_dim), **change}
    return nc.paper_federation(random_agents(rng, y_dim), **settings), random_stream(rng, y_dim)


def spread(seed):
    federation, stream = made(seed)
    game = federation._factory.settings.game
    if game is None:
        return federation, stream
    placed = nc.LookbackGame(lookback=game.lookback, every=game.every, placement="spread")
    return made(seed, game=placed)


@pytest.mark.parametrize("seed", range(50))
def test_spread_and_central_games_agree_on_every_step(seed):
    central, (X, Y) = made(seed)
    one = central.replay(X, Y)
    other = spread(seed)[0].replay(X, Y)
    np.testing.assert_allclose(other.forecasts, one.forecasts, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(other.agents, one.agents, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_predicting_changes_nothing(seed):
    plain, (X, Y) = made(seed)
    curious, _ = made(seed)
    for x, y in zip(X, Y, strict=True):
        expected = plain.predict_one(x)
        curious.predict_one(x + 1)
        curious.predict_one(x)
        np.testing.assert_array_equal(curious.predict_one(x), expected)
        plain.learn_one(x, y)
        curious.predict_one(x - 1)
        curious.learn_one(x, y)


@pytest.mark.parametrize("seed", range(20))
def test_the_future_changes_no_earlier_forecast(seed):
    one, (X, Y) = made(seed)
    other, _ = made(seed)
    cut = 12
    X2, Y2 = X.copy(), Y.copy()
    X2[cut + 1 :] += 5
    Y2[cut:] -= 7
    np.testing.assert_array_equal(one.replay(X, Y).forecasts[: cut + 1], other.replay(X2, Y2).forecasts[: cut + 1])


CONTINUE = """
import sys
sys.path[:0] = [{tests!r}, {here!r}]
import numpy as np
from test_federation import made
federation, (X, Y) = made({seed})
federation.load({path!r})
np.save({out!r}, federation.replay(X[{cut}:], Y[{cut}:]).forecasts)
"""


@pytest.mark.parametrize("seed", [1, 4, 7])
def test_saved_and_loaded_in_a_new_process_it_continues_bit_for_bit(seed, tmp_path):
    whole, (X, Y) = made(seed)
    expected = whole.replay(X, Y).forecasts
    cut = int(np.random.default_rng(seed).integers(3, 20))
    first, _ = made(seed)
    first.replay(X[:cut], Y[:cut])
    path, out = tmp_path / "state.state", tmp_path / "out.npy"
    first.save(path)
    code = CONTINUE.format(
        tests=str(HERE.parent), here=str(HERE), seed=seed, path=str(path), out=str(out), cut=cut
    )  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True)
    np.testing.assert_array_equal(np.load(out), expected[cut:])


def test_bad_saved_files_are_refused(tmp_path):
    federation, (X, Y) = made(1)
    with pytest.raises(nc.NashcastError, match="has not begun"):
        federation.save(tmp_path / "early.state")
    federation.replay(X, Y)
    path = tmp_path / "state.state"
    federation.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(nc.InvalidInput, match="cannot be read"):
        made(1)[0].load(path)
    with pytest.raises(nc.InvalidInput, match=r"no file missing\.state"):
        made(1)[0].load(tmp_path / "missing.state")
    path.write_bytes(whole)
    other = nc.paper_federation([PaperAgent(nc.encoders.Persistence())], y_dim=federation.y_dim)
    with pytest.raises(nc.InvalidInput, match="another federation"):
        other.load(path)
    with pytest.raises(nc.InvalidInput, match=r"path: got .*Choose a folder"):
        federation.save(tmp_path / "no folder" / "state.state")
    assert not list(tmp_path.glob("*.partial"))


class Guarded:
    """An agent of which only the protocol can be touched."""

    ALLOWED = frozenset(name for name in dir(Participant) if not name.startswith("_"))

    def __init__(self, agent):
        object.__setattr__(self, "_inside", agent)

    def __getattribute__(self, name):
        if name not in Guarded.ALLOWED:
            raise AssertionError(f"the server touched {name!r}, which is not in the protocol")
        return getattr(object.__getattribute__(self, "_inside"), name)

    def __setattr__(self, name, value):
        raise AssertionError(f"the server set {name!r} on an agent")


@pytest.mark.parametrize("placement", ["central", "spread"])
def test_the_server_touches_only_the_protocol(placement, tmp_path):
    rng = np.random.default_rng(3)
    agents = [Guarded(agent) for agent in random_agents(rng, 2, count=4)]
    federation = nc.paper_federation(
        agents, game=nc.LookbackGame(lookback=2, placement=placement), y_dim=2, start=[0, 0]
    )
    X, Y = random_stream(rng, 2)
    federation.replay(X, Y)
    federation.learn_late(20, [1.0, 1.0])
    federation.save(tmp_path / "state.state")
    federation.load(tmp_path / "state.state")
    assert federation.health["games"] == 23


def run_with_transcript(features, agents=3, lookback=3):
    made_agents = [PaperAgent(nc.encoders.RandomFeatures(features=features, seed=i), ridge=1.7) for i in range(agents)]
    game = nc.LookbackGame(lookback=lookback, placement="spread")
    federation = nc.paper_federation(made_agents, game=game, start=0.0, transcript=True)
    rng = np.random.default_rng(0)
    X, Y = random_stream(rng, 1, steps=6, x_dim=2)
    federation.replay(X, Y)
    return federation, made_agents


def test_a_spread_game_lets_nothing_out_but_terms_of_sums():
    federation, agents = run_with_transcript(features=5)
    kinds = {message.kind for message in federation.transcript if message.sender != "server"}
    assert kinds == {"forecast", "varies", "backward", "finish_game"}
    sent = np.concatenate([value.ravel() for _, value in federation.loop.post.values])
    for agent in agents:
        private = [agent._features, agent._decoder, agent._window_moments[0], agent._window_moments[1], agent._ridge]
        for values in private:
            for number in np.atleast_1d(values).ravel():
                if number not in (0.0, 1.0):
                    assert not np.any(sent == number)


def test_messages_of_a_spread_game_do_not_depend_on_the_feature_size():
    def sizes(features):
        messages = [m for m in run_with_transcript(features)[0].transcript if m.step == 5]
        return [(m.sender, m.receiver, m.kind, m.bytes) for m in messages]

    assert sizes(1) == sizes(12)
    game = [size for size in sizes(2) if size[2] == "backward" and size[0] != "server"]
    assert len(game) == 3 * 3  # each of three agents, three steps backwards


def shared_run(shares, placement="central", steps=20, **change):
    """Agents that differ in what they share, and what each of them sent."""
    encoders = [nc.encoders.RandomFeatures(features=2 + i, seed=i, noise=0.3) for i in range(len(shares))]
    agents = [PaperAgent(e, name=f"a{i}", share=s) for i, (e, s) in enumerate(zip(encoders, shares, strict=True))]
    game = nc.LookbackGame(lookback=2, placement=placement)
    federation = nc.paper_federation(agents, **{"game": game, "start": 0.0, "transcript": True, **change})
    X, Y = random_stream(np.random.default_rng(8), 1, steps=steps, x_dim=2)
    result = federation.replay(X, Y)
    sent = {agent.name: set() for agent in agents}
    for message in federation.transcript:
        if message.sender != "server":
            sent[message.sender].add(message.kind)
    return federation, agents, result, sent


GREEDY, CENTRAL = {"forecast"}, {"forecast", "view", "adopt"}
SPREAD = {"forecast", "varies", "backward", "finish_game"}


@pytest.mark.parametrize(("placement", "plays"), [
    ("central", {"forecasts": GREEDY, "sums": GREEDY, "moments": CENTRAL, "features": CENTRAL}),
    ("spread", {"forecasts": GREEDY, "sums": SPREAD, "moments": SPREAD, "features": SPREAD}),
])  # fmt: skip
def test_an_agent_plays_where_it_shares_enough_and_is_mixed_everywhere(placement, plays):
    federation, _, result, sent = shared_run(list(plays), placement)
    assert sent == {f"a{i}": kinds for i, kinds in enumerate(plays.values())}
    assert federation.health["games"] == 18
    assert federation.health["absences"] == {}
    assert np.all(result.weights[5:] != 0.0)


def test_who_plays_no_game_forecasts_as_without_one():
    mixed = shared_run(["forecasts", "features", "features"])[2]
    greedy = shared_run(["forecasts", "features", "features"], game=None)[2]
    np.testing.assert_array_equal(mixed.agents[:, 0], greedy.agents[:, 0])
    assert not np.allclose(mixed.agents[:, 1], greedy.agents[:, 1])
    nobody, _, result, _ = shared_run(["forecasts"] * 3)
    np.testing.assert_array_equal(result.forecasts, greedy.forecasts)
    assert (nobody.health["games"], nobody.health["fallbacks"]) == (0, 0)


def test_moments_stand_in_for_features_that_vary_and_only_for_those():
    _, agents, _, _ = shared_run(["moments", "features"])
    for agent in agents:
        view = agent.view()
        drawn = agent._last(agent._features)
        np.testing.assert_array_equal(view.features, drawn if agent.share == "features" else view.means)
        assert not np.allclose(view.means, drawn)
    certain = PaperAgent(LINEAR, share="moments")
    certain.begin(2, np.zeros(1), 1, 2)
    certain.forecast(np.ones(2))
    certain.learn(np.ones(1))
    view = certain.view()
    assert view.means is None
    assert view.features[-1].any()


def test_features_that_are_certain_give_the_same_game_whether_shared_or_not():
    X, Y = random_stream(np.random.default_rng(9), 1, x_dim=2)

    def run(share):
        agents = [PaperAgent(nc.encoders.Linear(lags=i), share=share, name=f"a{i}") for i in (1, 2)]
        return nc.paper_federation(agents, game=nc.LookbackGame(lookback=2), start=0.0).replay(X, Y)

    np.testing.assert_array_equal(run("moments").forecasts, run("features").forecasts)
    assert not np.allclose(run("sums").forecasts, run("features").forecasts)


def test_an_anchor_that_overflows_leaves_the_greedy_step():
    def huge(x):
        return np.array([1e300 * x[0]])

    agents = [PaperAgent(nc.encoders.Callable(huge, features=1), name="wild"), PaperAgent(nc.encoders.Persistence())]
    federation = nc.paper_federation(agents, game=None, anchored=True, start=0.0)
    for x, y in ((1e-300, 5.0), (1e-300, 9.0), (1e8, 2.0), (1e-300, 2.0)):
        assert np.isfinite(federation.predict_one(x))
        federation.learn_one(x, y)


class Fails(nc.encoders.BuiltEncoder):
    """Random features that fail at given steps, in a given way."""

    def __init__(self, inner, pattern):
        self.inner, self.pattern = inner, pattern

    def build(self, x_dim, y_dim):
        self.built = self.inner.build(x_dim, y_dim)
        self.features = self.built.features
        return self

    def encode(self, context):
        way = self.pattern.get(context.noise.step)
        if way == "raises":
            raise RuntimeError("the vendor is down")
        Z = self.built.encode(context)
        return {"nan": Z * np.nan, "shape": Z[:, :-1], None: Z}[way]

    def moments(self, inputs, features, noise):
        return self.built.moments(inputs, features, noise)


def reference_with_absences(X, Y, encoders, patterns, lookback, keys, ridge, window):
    """Algorithm 1 written out plainly, in which absent agents are not there at all in the steps they miss."""
    steps, N = len(X), len(encoders)
    here = np.array([[t not in patterns[i] for i in range(N)] for t in range(steps)])
    Z = np.zeros((N, steps), dtype=object)
    y = np.concatenate([[0.0], Y[:, 0]])
    present, forecasts = np.zeros(N), np.zeros(steps)
    states, weights = np.zeros((steps, N)), np.zeros((steps, N))
    for t in range(steps):
        players = [i for i in range(N) if here[t, i]]
        nxt, drawn = present.copy(), {}
        for i in players:
            drawn[i], _ = encode_step(encoders[i], X[t], None, nc.encoders.Noise(keys[i], t))
            past = list(range(max(0, t - window), t))
            rows = [Z[i, s][0] if here[s, i] else np.zeros(encoders[i].features) for s in past]
            right = [y[s + 1] - states[s, i] if here[s, i] else 0.0 for s in past]
            beta = np.zeros(encoders[i].features)
            if past:
                A = np.array(rows)
                beta = np.linalg.solve(A.T @ A + ridge * np.eye(A.shape[1]), A.T @ np.array(right))
            nxt[i] = present[i] + drawn[i][0] @ beta
        now = present.copy()
        if players:
            w = np.zeros(N)
            w[players] = mixture_weights(present[players][None], y[t : t + 1], ridge=1.0)
            if t >= lookback:
                span = range(t - lookback, t)
                blank = {i: np.zeros((1, encoders[i].features)) for i in players}
                feats = [np.array([Z[i, s] if here[s, i] else blank[i] for s in span]) for i in players]
                moments = [encoders[i].moments(X[t - lookback : t], None, None) for i in players]
                mask = [np.array([here[s, i] for s in span]) for i in players]
                means = [m.mean * k[:, None, None] for m, k in zip(moments, mask, strict=True)]
                spread = [m.covariance * k[:, None, None, None, None] for m, k in zip(moments, mask, strict=True)]
                w_past, y_past = weights[t - lookback : t][:, players], y[t - lookback + 1 : t + 1, None]
                start = y[t - lookback : t - lookback + 1]
                solved = nc.solve_game(feats, w_past, y_past, start, ridge=ridge, means=means, covariance=spread)
                for place, i in enumerate(players):
                    now[i] = solved.forecasts[-1, place, 0]
                    nxt[i] = now[i] + drawn[i][0] @ solved.decoders[place][-1]
            weights[t] = w
            forecasts[t] = w @ nxt
        else:
            forecasts[t] = y[t]
        for i in players:
            Z[i, t] = drawn[i]
            states[t, i] = now[i]
        present = nxt
    return forecasts


@pytest.mark.parametrize("seed", range(100))
def test_agents_that_fail_are_as_good_as_not_there(seed):
    rng = np.random.default_rng(seed)
    N, steps, lookback, window, ridge = 3, 18, 2, 4, 0.8
    patterns = [
        {int(t): str(rng.choice(["raises", "nan", "shape"])) for t in range(steps) if rng.random() < 0.25}
        for _ in range(N)
    ]
    inner = [nc.encoders.RandomFeatures(features=2 + i, seed=i, noise=0.2) for i in range(N)]
    agents = [
        PaperAgent(Fails(e, p), ridge=ridge, window=window, name=f"a{i}")
        for i, (e, p) in enumerate(zip(inner, patterns, strict=True))
    ]
    federation = nc.paper_federation(agents, game=nc.LookbackGame(lookback=lookback), start=0.0)
    X, Y = random_stream(rng, 1, steps=steps, x_dim=2)
    result = federation.replay(X, Y)
    built = [encoder.build(2, 1) for encoder in inner]
    expected = reference_with_absences(X, Y, built, patterns, lookback, federation._factory.keys, ridge, window)
    np.testing.assert_allclose(result.forecasts[:, 0], expected, rtol=1e-9, atol=1e-9)
    absences = federation.health["absences"]
    assert absences == {f"a{i}": len(pattern) for i, pattern in enumerate(patterns) if pattern}
    for reason in federation.health["reasons"].values():
        assert any(words in reason for words in ("the vendor is down", "nan", "shape"))


def test_a_slow_agent_sits_out():
    import time

    def slow(x):
        time.sleep(0.05)
        return x

    agents = [
        PaperAgent(nc.encoders.Callable(slow, features=1), name="slow"),
        PaperAgent(nc.encoders.Linear(), name="quick"),
    ]
    federation = nc.paper_federation(agents, start=0.0, deadline=0.02)
    federation.replay(np.ones((4, 1)), np.ones((4, 1)))
    assert federation.health["absences"] == {"slow": 4}
    assert "longer than the deadline of 0.02 s" in federation.health["reasons"]["slow"]
    assert federation.weights["slow"] == 0.0


def test_nobody_there_means_the_last_target():
    def broken(x):
        raise OSError("no line")

    federation = nc.paper_federation([PaperAgent(nc.encoders.Callable(broken, features=1))], start=3.0)
    assert federation.predict_one(1.0) == 3.0
    federation.learn_one(1.0, 4.0)
    assert federation.predict_one(1.0) == 4.0


def simple(**settings):
    agents = [
        PaperAgent(nc.encoders.Linear(), name="linear"),
        PaperAgent(nc.encoders.RandomFeatures(features=3, seed=1)),
    ]
    return nc.paper_federation(agents, **{"start": 0.0, **settings})


@pytest.mark.parametrize("missing", [None, np.nan])
def test_without_a_label_nothing_is_learnt_and_forecasts_go_on(missing):
    federation = simple()
    X, Y = random_stream(np.random.default_rng(1), 1, steps=20, x_dim=1)
    for t in range(20):
        forecast = federation.predict_one(X[t])
        assert np.isfinite(forecast)
        federation.learn_one(X[t], missing if t in (5, 6, 11) else Y[t, 0])
        if t == 5:
            before = federation.weights
        if t == 6:
            assert federation.weights == before  # nothing to weigh by
    assert federation.health["missing labels"] == 3


@pytest.mark.parametrize(
    "settings", [{"game": None, "anchored": True}, {"game": None}, {"game": nc.LookbackGame(lookback=3)}]
)
@pytest.mark.parametrize("forgetting", [None, 0.9])
def test_a_label_that_comes_late_but_before_it_is_needed_is_as_good_as_one_in_time(settings, forgetting):
    X, Y = random_stream(np.random.default_rng(2), 1, steps=30, x_dim=1)

    def fresh():
        encoder = nc.encoders.RandomFeatures(features=3, seed=1)
        agents = [PaperAgent(nc.encoders.Linear(), name="linear"), PaperAgent(encoder, forgetting=forgetting)]
        return nc.paper_federation(agents, start=0.0, **settings)

    in_time = fresh().replay(X, Y)
    late = fresh()
    late.replay(X[:10], Y[:10])
    late.learn_one(X[10], None)
    assert late.learn_late(10, Y[10, 0])
    rest = late.replay(X[11:], Y[11:])
    np.testing.assert_allclose(rest.forecasts, in_time.forecasts[11:], rtol=1e-11, atol=1e-12)
    assert late.health["late labels"] == 1


def test_a_federation_saved_before_a_late_label_learns_it_the_same(tmp_path):
    X, Y = random_stream(np.random.default_rng(4), 1, steps=30, x_dim=1)

    def fresh():
        agents = [PaperAgent(nc.encoders.Linear()), PaperAgent(nc.encoders.RandomFeatures(features=3, seed=1))]
        return nc.paper_federation(agents, game=nc.LookbackGame(lookback=3), start=0.0)

    whole = fresh()
    whole.replay(X[:10], Y[:10])
    whole.learn_one(X[10], None)
    whole.save(tmp_path / "state")
    resumed = fresh()
    resumed.load(tmp_path / "state")
    for federation in (whole, resumed):
        federation.learn_late(10, Y[10, 0])
    np.testing.assert_array_equal(whole.replay(X[11:], Y[11:]).forecasts, resumed.replay(X[11:], Y[11:]).forecasts)


def test_the_step_that_stands_is_there_between_forecast_and_label():
    X, Y = random_stream(np.random.default_rng(5), 1, steps=8, x_dim=1)
    federation = nc.paper_federation(
        [PaperAgent(nc.encoders.Linear()), PaperAgent(nc.encoders.Persistence())], start=0.0
    )
    assert federation.present is None
    for x, y in zip(X, Y[:, 0], strict=True):
        forecast = federation.predict_one(x)
        step = federation.present
        assert step.forecast[0, 0] == forecast == pytest.approx(step.weights @ step.own[:, 0])
        federation.learn_one(x, y)
        assert federation.present is None
        assert list(federation.weights.values()) == step.weights.tolist()


def test_a_label_that_comes_too_late_or_too_early_is_told():
    X, Y = random_stream(np.random.default_rng(2), 1, steps=12, x_dim=1)
    federation = simple()
    federation.replay(X, Y)
    assert not federation.learn_late(3, 1.0)  # forgotten long ago
    with pytest.raises(nc.InvalidInput, match=r"step: got 12\. Pass a step before the present one, 12"):
        federation.learn_late(12, 0.0)


def test_a_wild_game_leaves_the_greedy_step_and_is_counted(monkeypatch):
    from nashcast.federation.lookback import placements

    exact = placements.solve_views

    def wild(views, window, *rest):
        solved = exact(views, window, *rest)
        return solved._replace(decoders=np.full_like(solved.decoders, np.inf))

    X, Y = random_stream(np.random.default_rng(3), 1, steps=8, x_dim=1)
    greedy = simple(game=None).replay(X, Y)
    monkeypatch.setattr(placements, "solve_views", wild)
    federation = simple()
    np.testing.assert_array_equal(federation.replay(X, Y).forecasts, greedy.forecasts)
    assert federation.health["fallbacks"] == 8 - 3
    assert federation.health["fell back"] == {"a forecast after it is not finite": 5}


def test_reasons_to_fall_back_are_counted_and_stay_few(monkeypatch):
    from nashcast.federation.lookback import algorithm

    def never(players, window, post, rewrite_past):
        never.calls += 1
        raise algorithm.NoGame(f"reason {never.calls}")

    never.calls = 0
    X, Y = random_stream(np.random.default_rng(3), 1, steps=40, x_dim=1)
    monkeypatch.setitem(algorithm.PLACEMENTS, "central", never)
    federation = simple()
    federation.replay(X, Y)
    assert federation.health["fell back"] == {f"reason {i}": 1 for i in range(1, 21)} | {"other reasons": 17}
    assert federation.health["fallbacks"] == 37


@pytest.mark.parametrize("encoder", [nc.encoders.Trend(), nc.encoders.Analogs(), nc.encoders.SeasonalSmoothing()])
def test_encoders_of_past_rows_are_refused(encoder):
    federation = nc.paper_federation([nc.Agent(encoder, name="desk")], start=0.0)
    with pytest.raises(nc.InvalidInput, match=r"encoder: got a \w+ of agent 'desk', which looks at past rows"):
        federation.predict_one([1.0])


def test_missing_inputs_bench_those_who_cannot_do_without():
    class Copes(nc.encoders.BuiltEncoder):
        features, accepts_missing = 1, True

        def build(self, x_dim, y_dim):
            return self

        def encode(self, context):
            return np.nan_to_num(context.x[:1, None])

    agents = [PaperAgent(Copes(), name="copes"), PaperAgent(nc.encoders.Linear(), name="linear")]
    federation = nc.paper_federation(agents, start=0.0)
    federation.learn_one({"a": 1.0, "b": 2.0}, 1.0)
    federation.learn_one({"a": 1.0}, 1.0)
    federation.learn_one({"a": None, "b": 2.0}, 1.0)
    assert federation.health["absences"] == {"linear": 2}


def test_a_singular_game_falls_back_to_the_greedy_step_and_is_counted(monkeypatch):
    from nashcast.federation.lookback import placements

    def singular(*_, **__):
        raise nc.SingularGame(0, np.inf)

    X, Y = random_stream(np.random.default_rng(3), 1, steps=8, x_dim=1)
    greedy = simple(game=None).replay(X, Y)
    monkeypatch.setattr(placements, "solve_views", singular)
    federation = simple()
    np.testing.assert_array_equal(federation.replay(X, Y).forecasts, greedy.forecasts)
    assert federation.health["fallbacks"] == 8 - 3
    assert federation.health["fell back"] == {"it has no unique equilibrium": 5}
    assert federation.health["games"] == 0


@pytest.mark.slow
def test_memory_does_not_grow_once_the_windows_are_full():
    federation = simple(history=50)
    rng = np.random.default_rng(0)

    def stream(steps):
        for x, y in zip(rng.standard_normal((steps, 1)), rng.standard_normal(steps), strict=True):
            federation.predict_one(x)
            federation.learn_one(x, y)

    stream(500)
    tracemalloc.start()
    try:
        stream(2500)  # until the cache of noise, which is bounded, is full
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        stream(3000)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()


def test_certificate_weights_and_names():
    federation = simple()
    with pytest.raises(nc.NashcastError, match="no game has been played"):
        federation.certificate()
    assert federation.weights == {}
    X, Y = random_stream(np.random.default_rng(4), 1, x_dim=1)
    federation.replay(X, Y)
    assert federation.certificate().worst < 1e-9
    assert sum(federation.weights.values()) == pytest.approx(1.0)
    assert federation.members == ["linear", "RandomFeatures"]
    assert federation.step == len(X)
    assert federation.history[-1].step == len(X) - 1


def test_rewriting_the_past_changes_what_greedy_agents_learn_from():
    X, Y = random_stream(np.random.default_rng(5), 1, x_dim=1)
    plain = simple(game=nc.LookbackGame(lookback=3, every=2)).replay(X, Y)
    rewritten = simple(game=nc.LookbackGame(lookback=3, every=2, rewrite_past=True)).replay(X, Y)
    assert not np.allclose(plain.forecasts, rewritten.forecasts)


def test_without_a_start_the_first_label_is_it():
    X, Y = random_stream(np.random.default_rng(6), 1, x_dim=1)
    federation = simple(start=None)
    assert federation.predict_one(X[0]) == 0.0
    federation.learn_one(X[0], Y[0, 0])
    other = simple(start=Y[0, 0])
    assert federation.predict_one(X[1]) == other.predict_one(X[1])


def test_several_targets_as_dicts():
    agents = [PaperAgent(nc.encoders.Linear())]
    federation = nc.paper_federation(agents, y_dim=2)
    federation.learn_one({"x": 1.0}, {"a": 1.0, "b": 2.0})
    assert federation.predict_one({"x": 1.0}) == {"a": 1.0, "b": 2.0}
    with pytest.raises(nc.InvalidInput, match=r"y: got the unknown key 'c'\. Pass the keys a, b"):
        federation.learn_one({"x": 1.0}, {"a": 1.0, "c": 2.0})


BAD = [
    (lambda: nc.paper_federation([]), "agents", "at least one"),
    (lambda: nc.paper_federation([LINEAR]), "agents[0]", "nashcast.Agent"),
    (lambda: nc.paper_federation([PaperAgent(LINEAR)] * 2), "agents", "one agent for each place"),
    (lambda: nc.paper_federation([PaperAgent(LINEAR)], game=3), "game", "nashcast.LookbackGame"),
    (lambda: nc.paper_federation([PaperAgent(LINEAR)], anchored=True), "anchored", "game=None"),
    (lambda: nc.paper_federation([PaperAgent(LINEAR)], ridge=0), "ridge", "> 0"),
    (lambda: nc.paper_federation([PaperAgent(LINEAR)], y_dim=0), "y_dim", "≥ 1"),
    (lambda: nc.paper_federation([PaperAgent(LINEAR)], start=[1, 2]), "start", "(y_dim,) = (1,)"),
    (lambda: nc.paper_federation([PaperAgent(LINEAR)], deadline=0), "deadline", "> 0"),
    (lambda: nc.LookbackGame(lookback=0), "lookback", "≥ 1"),
    (lambda: nc.LookbackGame(every=0), "every", "≥ 1"),
    (lambda: nc.LookbackGame(placement="cloud"), "placement", "central, spread"),
    (lambda: nc.LookbackGame(placement="spread", rewrite_past=True), "rewrite_past", "central"),
    (lambda: PaperAgent(lambda x: x), "encoder", "nashcast.encoders"),
    (lambda: PaperAgent(LINEAR, ridge=-1), "ridge", "> 0"),
    (lambda: PaperAgent(LINEAR, decay=-1), "decay", "≥ 0"),
    (lambda: PaperAgent(LINEAR, window=0), "window", "≥ 1"),
    (lambda: PaperAgent(LINEAR, forgetting=1.5), "forgetting", "≤ 1"),
    (lambda: PaperAgent(LINEAR, share="all"), "share", "forecasts, sums, moments, features"),
    (lambda: nc.encoders.RandomFeatures(features=0, seed=1), "features", "≥ 1"),
    (lambda: nc.encoders.RandomFeatures(features=2, seed=-1), "run_seed", "≥ 0"),
    (lambda: nc.encoders.EchoState(features=2, seed=1, activation="step"), "activation", "hard_sigmoid"),
    (lambda: nc.encoders.EchoState(features=2, seed=1, spectral_radius=0), "spectral_radius", "> 0"),
    (lambda: nc.encoders.Linear(lags=0), "lags", "≥ 1"),
    (lambda: nc.encoders.Callable(3, features=1), "function", "can be called"),
    (lambda: simple().predict_one([1.0, "a"]), "x", "Pass numbers"),
    (lambda: simple().learn_one(1.0, np.inf), "y", "not finite"),
]


@pytest.mark.parametrize(("call", "argument", "words"), BAD)
def test_bad_configuration_names_the_argument_and_the_remedy(call, argument, words):
    with pytest.raises(nc.InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(f"{argument}: got ")
    assert words in str(caught.value)


def test_changing_the_shape_of_inputs_is_refused():
    federation = simple()
    federation.learn_one([1.0, 2.0], 1.0)
    with pytest.raises(nc.InvalidInput, match="x: got shape"):
        federation.predict_one([1.0])
    with pytest.raises(nc.InvalidInput, match="an array as before"):
        federation.predict_one({"a": 1.0, "b": 1.0})
