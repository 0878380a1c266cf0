"""What stands between the journal and the federation: numbers of any size, scores, states of agents, bounds."""

import numpy as np
import pytest

from nashcast import Intervals, default_agents
from nashcast.service.http.bodies import LARGEST
from nashcast.service.journal.entries import LABEL, OBSERVATION, Entry, Outcome, read_entry, read_outcome
from nashcast.service.streams.settings import load_served
from nashcast.service.workers.factory import make_federation
from nashcast.service.workers.live import Live, agent_state
from nashcast.service.workers.scores import FIRST_AGENT, Scores
from support.service.served import DEFAULT, FILE, PAPERS, federation_file, series

AGENTS = """
[[agents]]
encoder = "linear"
lags = 2
[[agents]]
encoder = "linear"
forgetting = 1.0
ridge = 1e-8
[[agents]]
encoder = "echo_state"
features = 4
"""


def wild(rng, size: int) -> np.ndarray:
    """The largest, the smallest, nothing, and everything between."""
    kinds = (
        lambda: rng.choice([LARGEST, -LARGEST], size),
        lambda: np.zeros(size),
        lambda: np.full(size, 5e-324),
        lambda: rng.normal(size=size) * 10.0 ** rng.integers(-300, 15),
        lambda: rng.normal(size=size),
    )
    return kinds[int(rng.integers(len(kinds)))]()


JOINT = """
[[agents]]
encoder = "quadratic"
[[agents]]
encoder = "reservoir"
[[agents]]
encoder = "analogs"
"""
DESCRIBED = PAPERS + AGENTS


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("text", "agents"),
    [
        (DESCRIBED, 6),
        (DESCRIBED.replace("lookback = 2", 'lookback = 3\nplacement = "spread"'), 6),
        (FILE + JOINT, 8),
        (DEFAULT, 10),
    ],
    ids=["central", "spread", "joint", "default"],
)
def test_no_number_that_is_let_in_stops_the_service(seed, text, agents, tmp_path):
    rng = np.random.default_rng(seed)
    text = text.replace("dim = 1", "dim = 2")
    config = load_served(federation_file(tmp_path, text))
    live, seq, missing = Live(make_federation(config), config.serve), 0, []
    for step in range(60):
        x, y = wild(rng, 2), wild(rng, 2) if step == 0 or rng.random() > 0.2 else None
        x[0] = np.nan if rng.random() < 0.1 else x[0]
        entries = [(OBSERVATION, step, x, y)]
        missing += [step] if y is None else []
        if missing and rng.random() < 0.5:
            entries.append((LABEL, missing.pop(), None, wild(rng, 2)))
        for kind, of, given, target in entries:
            seq += 1
            live.learn(Entry(seq, kind, of, None, given, target, 0.0))
            outcome = live.predict()
            assert np.isfinite(outcome.forecast).all()
    assert len(live.agents()) == agents


def test_scores_are_means_over_the_window_and_over_everything():
    rng = np.random.default_rng(1)
    scores, errors = Scores(2, window=10), []
    for t in range(37):
        target, forecasts = rng.normal(size=3), rng.normal(size=(FIRST_AGENT + 2, 3))
        forecasts[2] = np.nan  # no game runs beside
        forecasts[4] = np.nan if t % 3 else forecasts[4]
        scores.add(target, forecasts)
        errors.append(np.mean((forecasts - target) ** 2, axis=1))
        if t == 20:
            kept = Scores(2, window=10)
            kept.restore(scores.save())
            scores = kept
    np.testing.assert_allclose(scores.recent()[[0, 1, 3]], np.mean(errors[-10:], axis=0)[[0, 1, 3]])
    np.testing.assert_allclose(scores.recent()[4], np.nanmean([row[4] for row in errors[-10:]]))
    np.testing.assert_allclose(scores.totals()[:2], np.mean(errors, axis=0)[:2])
    assert np.isnan(scores.recent()[2])
    longer = Scores(2, window=25)
    longer.restore(scores.save())
    np.testing.assert_allclose(longer.recent()[0], scores.recent()[0])


def observed(live: Live, values, first: int = 0) -> list[Outcome]:
    """Each step's forecast of the next."""
    found = []
    for step, value in enumerate(values, start=first):
        live.learn(Entry(step + 1, OBSERVATION, step, None, np.array([value]), np.array([value]), 0.0))
        found.append(live.predict())
    return found


def test_bounds_are_those_of_the_librarys_intervals_and_cover_as_often_as_they_say(tmp_path):
    config = load_served(federation_file(tmp_path))
    values = series(1500, seed=4)
    outcomes = observed(Live(make_federation(config), config.serve), values)
    assert np.isinf(outcomes[0].bounds).all()
    forecasts = np.array([outcome.forecast for outcome in outcomes])[:-1]
    expected = Intervals(1, (0.5, 0.9)).replay(forecasts, values[1:, None])
    np.testing.assert_array_equal(np.array([outcome.bounds for outcome in outcomes])[:-1], expected)
    covered = (expected[:, :, 0, 0] <= values[1:, None]) & (values[1:, None] <= expected[:, :, 1, 0])
    np.testing.assert_allclose(covered.mean(axis=0), [0.5, 0.9], atol=0.02)


def test_the_default_federation_is_served_where_no_agents_are_named(tmp_path):
    config = load_served(federation_file(tmp_path, DEFAULT))
    live, values = Live(make_federation(config), config.serve), series(200)
    outcome = observed(live, values)[-1]
    names = [agent.name for agent in default_agents()]
    assert [agent.name for agent in live.agents()] == ["baselines", *names, "joint game"]
    np.testing.assert_allclose(sum(agent.weight for agent in live.agents()), 1.0)
    np.testing.assert_allclose(outcome.weights @ outcome.agents, outcome.forecast)
    assert (outcome.played, outcome.absent) == (True, {})
    assert outcome.beside != outcome.forecast
    assert live.counts() == {"missing labels": 0, "late labels": 0, "suspect labels": 0}
    live.learn(Entry(201, OBSERVATION, 200, None, np.zeros(1), np.zeros(1), 0.0))
    (tmp_path / "saved").mkdir()
    live.save(tmp_path / "saved")
    again = Live(make_federation(config), config.serve)
    again.load(tmp_path / "saved")
    assert again.counts() == live.counts()
    quiet = load_served(federation_file(tmp_path, "game = false\n" + DEFAULT))
    assert make_federation(quiet).beside is None
    assert quiet.identity() != config.identity()


@pytest.mark.parametrize("text", [FILE, PAPERS, DEFAULT], ids=["joint", "paper", "default"])
@pytest.mark.parametrize("waits", [0, 2])
def test_a_late_label_reaches_the_step_it_belongs_to(text, waits, tmp_path):
    config, values = load_served(federation_file(tmp_path, text)), series(40, seed=2)
    live, first, late = Live(make_federation(config), config.serve), 5, 30  # a journal need not begin at step 0
    for place, value in enumerate(values[: late + waits + 1]):
        y = None if place == late else np.array([value])
        live.learn(Entry(place + 1, OBSERVATION, first + place, None, np.array([value]), y, 0.0))
        live.predict()

    def last_targets() -> np.ndarray:
        if text is PAPERS:
            return live._federation.loop.state.window.targets[-waits - 1 :, 0]
        history = live._federation._loop.history
        return history.targets[history.now - waits : history.now + 1, 0]

    assert last_targets()[0] != values[late]
    live.learn(Entry(late + waits + 2, LABEL, first + late, None, None, values[late : late + 1], 0.0))
    np.testing.assert_array_equal(last_targets(), values[late : late + waits + 1])
    assert live.counts()["late labels"] == 1


@pytest.mark.parametrize(
    ("reason", "missed", "state"),
    [
        (None, 0, "in"),
        ("ValueError: no", 1, "benched"),
        ("its answer took 2 s, longer than the deadline of 1 s", 2, "late"),
        ("ValueError: no", 3, "gone"),
    ],
)
def test_states_of_agents(reason, missed, state):
    assert agent_state(reason, missed) == state


def test_rows_are_read_as_they_were_written():
    value = series(3)
    for entry in (
        Entry(5, OBSERVATION, 4, "a", np.array([1.0, np.nan]), None, 1.5),
        Entry(6, LABEL, 4, None, None, value, 2.5),
    ):
        found = read_entry(entry.row(0))
        assert found[:4] == entry[:4]
        assert found.same_content(entry.x, entry.y)
        assert not found.same_content(entry.x, np.zeros(3))
    outcome = Outcome(
        3, 9, value, np.full((1, 2, 3), np.nan), value[:2], np.ones((2, 3)), None, {"a": "b"}, True, False
    )
    found = read_outcome(outcome.row(), 2, 3)
    for before, after in zip(outcome, found, strict=True):
        np.testing.assert_array_equal(before, after)
