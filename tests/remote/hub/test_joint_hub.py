"""The joint game over a real broker with mutual TLS, each owner in a process of its own."""

import logging

import numpy as np
import pytest

import nashcast as nc
from nashcast.remote import Hub, serve_agent
from nashcast.remote.broker.enrolling.enrolment import read
from support.remote.brokers import FEDERATION, broker, found
from support.remote.joint_teams import make_stream, make_team, run
from support.remote.processes.crew import LONG
from support.remote.processes.crew_processes import end, fork

NAMES = [f"agent-{i:02}" for i in range(4)]


def serve(i, share, url, folder, state, trusted):
    logging.basicConfig(level=logging.INFO, force=True)
    agent = make_team(len(NAMES), share)[i]
    key, certs = f"{folder}/{agent.name}.seed", f"{folder}/certs"
    serve_agent(agent, url, key=key, certs=certs, state=state, trusted=trusted)


@pytest.fixture
def forked(tmp_path):
    """Starts agents, and ends them with the test."""
    processes = []

    def start(running, i, share="forecasts", state=None):
        trusted = running.folder / "trusted.toml" if share == "joint" else None
        url = f"{running.url}/{FEDERATION}"
        log = tmp_path / f"{i}.log"
        processes.append(fork(serve, i, share, url, str(running.folder), state, trusted, log=log))
        return processes[-1]

    yield start
    end(*processes)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = found(tmp_path_factory.mktemp("federation"), *NAMES, tls=True)
    keys = "\n".join(f'{name} = "{key}"' for name, key in read(folder).agents.items())
    (folder / "trusted.toml").write_text(f"[agents]\n{keys}\n")
    with broker(folder, tls=True) as running:
        yield running


def hub_at(running, **settings):
    options = {"url": running.url, "certs": running.folder / "certs", "deadline": LONG, "state": False}
    return Hub(running.folder, **options | settings)


@pytest.mark.slow
@pytest.mark.parametrize(("horizon", "y_dim"), [(1, 1), (3, 2)])
def test_over_a_broker_the_numbers_are_those_of_one_process(running, forked, tmp_path, horizon, y_dim):
    X, Y = make_stream(300, y_dim, missing=0.03)
    settings = {"horizon": horizon, "y_dim": y_dim, "start": np.zeros(y_dim)}
    late = {t: {t - 5: np.nan_to_num(Y[t - 6])} for t in range(20, 290) if np.isnan(Y[t - 5]).any()}
    for i in range(4):
        forked(running, i)
    with hub_at(running, **settings) as hub:
        assert hub.wait_for_agents(LONG) == []
        got = run(hub.federation, X, Y, late)
        assert hub.federation.health["absences"] == {}
        assert hub.traffic["turns"] < 1.2 * len(X)
    said = (tmp_path / "0.log").read_text()
    assert "begins" in said or "ends" in said
    assert "missed events" not in said  # messages come in their order, and none has to be read from the log
    expected = run(nc.Federation(make_team(), **settings), X, Y, late)
    assert np.abs((got - expected) / np.maximum(1.0, np.abs(expected))).max() <= 1e-12


@pytest.mark.slow
def test_masked_over_a_broker(running, forked):
    X, Y = make_stream(150)
    for i in range(4):
        forked(running, i, "joint")
    with hub_at(running, start=0.0) as hub:
        assert hub.wait_for_agents(LONG) == []
        got = run(hub.federation, X, Y)
        assert hub.federation.health["absences"] == {}
    assert np.abs(got[80:, 0] - Y[80:, 0]).mean() < 0.5 * np.abs(np.diff(Y[79:, 0])).mean()


@pytest.mark.slow
def test_killed_agent_and_killed_hub_go_on(running, forked, tmp_path):
    """An agent that was killed reads the broker's log; a hub that was ended goes on from its state."""
    X, Y = make_stream(160)
    agents = [forked(running, i, state=str(tmp_path / f"{i}.state")) for i in range(4)]
    state = tmp_path / "hub.state"
    with hub_at(running, start=0.0, state=state, deadline=5.0) as hub:
        assert hub.wait_for_agents(LONG) == []
        got = [run(hub.federation, X[:50], Y[:50])]
        agents[1].kill()
        agents[1].join()
        got.append(run(hub.federation, X[50:60], Y[50:60]))
        forked(running, 1, state=str(tmp_path / "1.state"))
        assert hub.wait_for_agents(LONG) == []
        got.append(run(hub.federation, X[60:100], Y[60:100]))
        assert hub.federation.health["absences"] == {"agent-01": 10}
    with hub_at(running, start=0.0, state=state, deadline=LONG) as hub:
        assert hub.federation.step == 100
        assert hub.wait_for_agents(LONG) == []
        got.append(run(hub.federation, X[100:], Y[100:]))
        assert hub.federation.health["absences"] == {"agent-01": 10}
    assert np.abs(np.concatenate(got)[100:, 0] - Y[100:, 0]).mean() < 0.5 * np.abs(np.diff(Y[99:, 0])).mean()
