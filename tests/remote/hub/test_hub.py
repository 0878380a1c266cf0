"""A hub and agents in processes of their own, over a real broker with mutual TLS: the numbers of one process."""

import logging

import numpy as np
import pytest

import nashcast as nc
from nashcast.remote import Hub, serve_agent
from nashcast.remote.owner.catch_up import missed_inputs
from support.remote.brokers import broker, found
from support.remote.elsewhere import MIXED, assert_same, make_agents, make_stream
from support.remote.processes.crew import LONG
from support.remote.processes.crew_processes import end, fork

NAMES = [f"agent-{i}" for i in range(5)]
STEPS, SPREAD_STEPS = 200, 100
CASES = {
    "central": (1, ("features",) * 6, {"game": nc.LookbackGame(lookback=3)}),
    "central, mixed": (2, MIXED, {"game": nc.LookbackGame(lookback=2, every=2)}),
    "spread": (1, ("sums",) * 6, {"game": nc.LookbackGame(lookback=3, placement="spread")}),
    "spread, mixed": (2, MIXED, {"game": nc.LookbackGame(lookback=2, placement="spread")}),
    "anchored": (2, MIXED, {"game": None, "anchored": True}),
    "no game": (1, MIXED, {"game": None}),
}


def serve(i, y_dim, shares, url, folder, state):
    """One agent, by the library."""
    logging.basicConfig(level=logging.INFO)
    agent = make_agents(y_dim, shares)[i]
    serve_agent(agent, url, key=f"{folder}/{agent.name}.seed", certs=f"{folder}/certs", state=state)


@pytest.fixture
def forked():
    """Starts processes, and ends them with the test."""
    processes = []

    def start(*arguments, **options):
        processes.append(fork(*arguments, **options))
        return processes[-1]

    yield start
    end(*processes)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A broker with mutual TLS for all of these tests, one after the other."""
    with broker(found(tmp_path_factory.mktemp("federation"), *NAMES, tls=True), tls=True) as running:
        yield running


def hub_at(running, folder, settings, **options):
    # A deadline that no machine misses: who is late is another test's matter.
    options = {"url": running.url, "certs": running.folder / "certs", "deadline": LONG, **options}
    return Hub(running.folder, state=folder / "hub.npz", **options, **settings)


# Two of them always, the others with the slow tests: five processes each.
@pytest.mark.parametrize(
    "case",
    [case if case in ("central", "spread, mixed") else pytest.param(case, marks=pytest.mark.slow) for case in CASES],
)
def test_five_processes_give_the_numbers_of_one(case, tmp_path, running, forked):
    y_dim, shares, game = CASES[case]
    X, Y = make_stream(y_dim, steps=SPREAD_STEPS if "spread" in case else STEPS)
    settings = {**game, "y_dim": y_dim, "start": np.zeros(y_dim), "seed": 3, "ridge": 0.7}
    with hub_at(running, tmp_path, settings) as hub:
        assert hub.url == f"{running.url}/tide"
        assert hub.url.startswith("tls://")
        for i in range(5):
            state = tmp_path / f"{i}.npz" if i % 2 else None
            forked(serve, i, y_dim, shares, hub.url, running.folder, state, log=tmp_path / f"{i}.log")
        assert hub.wait_for_agents(LONG) == []
        remote = hub.federation.replay(X, Y)
        plain = nc.paper_federation(make_agents(y_dim, shares)[:5], **settings)
        assert_same(remote, plain.replay(X, Y))
        assert hub.federation.health == plain.health
        assert hub.federation.health["absences"] == {}


def test_a_hub_goes_on_from_its_file_or_begins_anew(tmp_path, running, forked):
    X, Y = make_stream(1, steps=30)
    settings = {"game": nc.LookbackGame(lookback=3, placement="spread"), "start": 0.0, "seed": 3, "agents": NAMES[:2]}
    plain = nc.paper_federation(make_agents(1)[:2], **{key: settings[key] for key in ("game", "start", "seed")})
    expected = plain.replay(X, Y).forecasts[:, 0]
    for i in range(2):
        url = f"{running.url}/tide"
        forked(serve, i, 1, ("features",) * 6, url, running.folder, None, log=tmp_path / f"{i}.log")
    forecasts, runs = [], []
    for part in (range(10), range(10, 20), range(20, 30)):
        with hub_at(running, tmp_path, settings) as hub:
            assert hub.federation.step == part[0]
            assert hub.names == NAMES[:2]
            assert hub.wait_for_agents(LONG) == []
            assert hub.federation.present is None
            for t in part:
                forecasts.append(hub.federation.predict_one(X[t]))
                assert hub.federation.present.forecast == forecasts[-1]
                low, high = hub.federation.interval(0.9)
                assert low <= forecasts[-1] <= high
                # Asked for in between, and killed before it is learnt: as if never.
                hub.federation.predict_one(X[t] + 1)
                hub.federation.predict_one(X[t])
                hub.federation.learn_one(X[t], Y[t])
            kept = hub._line.run(missed_inputs(hub._line.client, "tide", hub.run, 0, part[-1]))
            np.testing.assert_array_equal(kept, X[: part[-1] + 1])  # what agents that miss steps will see
            hub.federation.predict_one(X[0])
            runs.append(hub.run)
    np.testing.assert_array_equal(forecasts, expected)
    with pytest.raises(nc.NashcastError, match="this hub is closed"):
        hub.federation.predict_one(X[5])
    with hub_at(running, tmp_path, settings, fresh=True) as hub:
        assert hub.federation.step == 0
        assert hub.wait_for_agents(LONG) == []
        np.testing.assert_array_equal(hub.federation.replay(X[:5], Y[:5]).forecasts[:, 0], expected[:5])
        runs.append(hub.run)
    assert len(set(runs[:3])) == 1
    assert len(set(runs)) == 2
    with pytest.raises(nc.InvalidInput, match="path: got the state of another federation"):
        hub_at(running, tmp_path, {**settings, "agents": NAMES[:3]})


def test_who_is_not_enrolled_cannot_be_asked(tmp_path, running):
    with pytest.raises(nc.InvalidInput, match=r"agents: got 'nobody', who is not enrolled. Enrolled are: agent-0, "):
        hub_at(running, tmp_path, {"agents": ["agent-0", "nobody"]})
