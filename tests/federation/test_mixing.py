"""Federations that mix by a rule with memory, and their intervals: online, asleep, late, saved."""

import numpy as np
import pytest

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.federation.compiled.replay import replay
from nashcast.mixing.aggregation import RULES

WITH_MEMORY = [name for name in RULES if name != "paper"]


def stream(steps=80, seed=0):
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.standard_normal((steps, 2)), axis=0)
    return x, np.stack([np.sin(x[:, 0]), 0.3 * x[:, 1] + 0.1 * rng.standard_normal(steps)], axis=1)


def make(mixing="paper", game=None, broken=None, **settings):
    agents = [
        PaperAgent(nc.encoders.Linear(), forgetting=0.98, name="linear"),
        PaperAgent(nc.encoders.RandomFeatures(features=6, seed=1), forgetting=0.98, name="random"),
        PaperAgent(nc.encoders.Persistence(), name="still"),
    ]
    if broken is not None:
        agents.append(PaperAgent(nc.encoders.Callable(broken, features=1), name="broken"))
    anchored = game is None
    return nc.paper_federation(
        agents, game=game, anchored=anchored, y_dim=2, mixing=mixing, start=[0.0, 0.0], **settings
    )


@pytest.mark.parametrize("game", [None, nc.LookbackGame(lookback=2)])
@pytest.mark.parametrize("name", WITH_MEMORY)
def test_the_federation_weighs_as_the_rule_does(name, game):
    X, Y = stream()
    result = make(name, game).replay(X, Y)
    rule = nc.aggregation_rule(name, 3, 2)
    for t in range(len(Y)):
        weights = rule.weights(None, result.agents[t])
        np.testing.assert_allclose(result.weights[t], weights, atol=1e-12)
        np.testing.assert_allclose(result.forecasts[t], weights @ result.agents[t], atol=1e-12)
        rule.learn(result.agents[t], Y[t])
    assert np.ptp(result.weights, axis=0).max() > 0.05


def test_the_papers_mixing_is_the_default_and_unchanged():
    X, Y = stream()
    compiled = replay(make("paper"), X, Y).forecasts
    np.testing.assert_allclose(make().replay(X, Y).forecasts, compiled, atol=1e-14)


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_compiled_replay_refuses_and_says_what_to_do(name):
    X, Y = stream()
    with pytest.raises(nc.InvalidInput, match=f"mixing: got '{name}'. Replay it online: Federation.replay."):
        replay(make(name), X, Y)


@pytest.mark.parametrize("name", RULES)
def test_an_agent_that_sits_out_weighs_nothing_and_comes_back(name):
    X, Y = stream()

    def broken(x):
        if x[1] > 0.0:
            raise RuntimeError("no")
        return np.repeat(x[0], 2)

    federation = make(name, broken=broken)
    result = federation.replay(X, Y)
    out = X[:, 1] > 0.0
    assert 5 < out.sum() < 75
    assert (result.weights[out, 3] == 0.0).all()
    assert federation.health["absences"] == {"broken": int(out.sum())}
    np.testing.assert_allclose(result.weights.sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize("name", RULES)
def test_asking_twice_changes_nothing_and_saved_it_continues_bit_for_bit(name, tmp_path):
    X, Y = stream()
    whole, asked = make(name, agent_intervals=True), make(name, agent_intervals=True)
    result = whole.replay(X, Y)
    for t in range(40):
        asked.predict_one(X[t])
        asked.interval(0.9)
        asked.predict_one(X[t] + 1.0)
        asked.learn_one(X[t], Y[t])
    asked.save(tmp_path / "state.state")
    resumed = make(name, agent_intervals=True)
    resumed.load(tmp_path / "state.state")
    np.testing.assert_array_equal(resumed.replay(X[40:], Y[40:]).forecasts, result.forecasts[40:])
    resumed.predict_one(X[0])
    whole.predict_one(X[0])
    np.testing.assert_array_equal(resumed.interval(0.95), whole.interval(0.95))
    np.testing.assert_array_equal(resumed.interval(0.8, agent="random"), whole.interval(0.8, agent="random"))


def test_a_saved_state_is_refused_by_another_rule(tmp_path):
    X, Y = stream(10)
    federation = make("boa")
    federation.replay(X, Y)
    federation.save(tmp_path / "state.state")
    with pytest.raises(nc.InvalidInput, match="the state of another federation"):
        make("ml-poly").load(tmp_path / "state.state")
    with pytest.raises(nc.InvalidInput, match="the state of another federation"):
        make().load(tmp_path / "state.state")


@pytest.mark.parametrize("name", ["boa", "windowed"])
def test_a_label_one_step_late_teaches_the_rule_and_the_intervals_the_same(name):
    X, Y = stream()
    on_time, late = make(name), make(name)
    for x, y in zip(X, Y, strict=True):
        on_time.learn_one(x, y)
        late.learn_one(x, None)
        late.learn_late(late.step - 1, y)
    on_time.predict_one(X[0])
    late.predict_one(X[0])
    np.testing.assert_array_equal(late.interval(0.9)[1] - late.predict_one(X[0]),
                                  on_time.interval(0.9)[1] - on_time.predict_one(X[0]))  # fmt: skip


def test_intervals_are_those_of_the_standalone_class_for_the_federation_and_each_agent():
    X, Y = stream(120)
    federation = make("ml-poly", agent_intervals=True, coverages=(0.5, 0.9))
    result = make("ml-poly").replay(X, Y)
    ours = nc.Intervals(2, coverages=(0.5, 0.9)).replay(result.forecasts, Y)
    theirs = nc.Intervals(2, coverages=(0.5, 0.9)).replay(np.ascontiguousarray(result.agents[:, 1]), Y)
    for t in range(120):
        federation.predict_one(X[t])
        np.testing.assert_allclose(federation.interval(0.9), ours[t, 1], rtol=1e-12)
        np.testing.assert_allclose(federation.interval(0.5, agent="random"), theirs[t, 0], rtol=1e-12)
        federation.learn_one(X[t], Y[t])
    assert np.isfinite(ours[1:]).all()


def test_one_target_gives_numbers_and_named_targets_give_names():
    agent = [PaperAgent(nc.encoders.Linear(), name="a")]
    federation = nc.paper_federation(agent, game=None, start=0.0)
    for t in range(10):
        federation.predict_one([t / 3])
        low, high = federation.interval()
        assert isinstance(low, float)
        assert low < high
        federation.learn_one([t / 3], np.sin(t / 3) + 0.1)
    named = nc.paper_federation(
        [PaperAgent(nc.encoders.Linear())], game=None, start={"rain": 0.0, "wind": 1.0}, y_dim=2
    )
    named.predict_one([1.0])
    assert set(named.interval()[0]) == {"rain", "wind"}


BAD = [
    (lambda: make("hedge"), "mixing: got 'hedge'. Pass one of paper, windowed"),
    (lambda: make("boa", budget=0.5), "budget: got 0.5 with mixing='boa'. Pass 1"),
    (lambda: make(coverages=(2.0,)), "coverages: got tuple (2.0,)"),
    (lambda: make().interval(), "call predict_one(x) first"),
    (lambda: predicted(coverages=()).interval(), "made without intervals: pass coverages="),
    (lambda: predicted().interval(0.99), "coverage: got 0.99. Pass one of 0.8, 0.9, 0.95, or make the federation"),
    (lambda: predicted().interval(0.9, agent="x"), "agent: got 'x'. Pass one of linear, random, still."),
    (lambda: predicted().interval(0.9, agent="still"), "Make the federation with agent_intervals=True."),
]


def predicted(**settings):
    federation = make(**settings)
    federation.predict_one([0.0, 0.0])
    return federation


@pytest.mark.parametrize(("call", "words"), BAD)
def test_bad_input_names_the_argument_and_the_remedy(call, words):
    with pytest.raises(nc.NashcastError) as caught:
        call()
    assert words in str(caught.value)
