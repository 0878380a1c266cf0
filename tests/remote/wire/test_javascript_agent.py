"""The example agent in JavaScript, in a real federation: over a real broker with mutual TLS, beside agents of ours."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import nashcast as nc
from nashcast.remote import Hub, serve_agent
from support.extras import skip_if
from support.remote.brokers import FEDERATION, broker, found
from support.remote.joint_teams import run
from support.remote.processes.crew import LONG
from support.remote.processes.crew_processes import end, fork

EXAMPLE = Path(__file__).parents[3] / "examples" / "javascript" / "agent.mjs"
NAMES = ["ada", "bob", "node"]

pytestmark = pytest.mark.slow


def serve(name, url, folder):
    agent = nc.Agent(nc.encoders.Linear(lags=1), inputs=[NAMES.index(name)], name=name, share="forecasts")
    serve_agent(agent, url, key=f"{folder}/{name}.seed", certs=f"{folder}/certs")


@pytest.fixture
def start_node(tmp_path):
    """Starts the agent in JavaScript, and ends it with the test."""
    node, processes = shutil.which("node"), []
    skip_if("" if node else "node is not installed: apt install nodejs")

    def start(running, name="node"):
        words = [node, EXAMPLE, f"{running.url}/{FEDERATION}", name, "--key", running.folder / f"{name}.seed"]
        log = (tmp_path / "node.log").open("ab")
        processes.append(subprocess.Popen([*words, "--certs", running.folder / "certs"], stderr=log))
        log.close()
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def running(tmp_path):
    folder = found(tmp_path / "federation", *NAMES, tls=True)
    with broker(folder, tls=True) as running:
        yield running


@pytest.fixture
def python_agents(running, tmp_path):
    url = f"{running.url}/{FEDERATION}"
    processes = [fork(serve, name, url, str(running.folder), log=tmp_path / f"{name}.log") for name in ("ada", "bob")]
    yield processes
    end(*processes)


def make_stream(steps, y_dim):
    """Changes follow the last two, and an input of their own; two inputs are noise that the others see."""
    rng = np.random.default_rng(4)
    X, changes = rng.standard_normal((steps, 3)), np.zeros((steps, y_dim))
    for t in range(2, steps):
        changes[t] = 0.8 * changes[t - 1] - 0.5 * changes[t - 2] + X[t, 2] + 0.2 * rng.standard_normal(y_dim)
    return X, np.cumsum(changes, axis=0)


def forecasts_of_node(Y, X):
    """What examples/javascript/forecaster.mjs says one step ahead, by least squares from scratch; of one target."""
    y = np.concatenate([[0.0], Y[:, 0]])
    changes = np.concatenate([np.zeros(3), np.diff(y)])  # three before the first row
    Z = np.column_stack([np.ones(len(X)), changes[2:-1], changes[1:-2], changes[:-3], X])
    said = [y[0]]
    for t in range(1, len(X)):
        w = np.linalg.solve(Z[:t].T @ Z[:t] + np.eye(Z.shape[1]), Z[:t].T @ changes[3 : 3 + t])
        said.append(y[t] + Z[t] @ w)
    return np.array(said)


def hub_at(running, **settings):
    options = {"url": running.url, "certs": running.folder / "certs", "deadline": LONG, "state": False}
    return Hub(running.folder, **options, **settings)


def test_its_forecasts_arrive_to_the_bit_and_get_weight(running, python_agents, start_node):
    X, Y = make_stream(200, 1)
    process, got, own = start_node(running), [], []
    with hub_at(running, start=0.0) as hub:
        assert hub.wait_for_agents(LONG) == []
        for t, (x, y) in enumerate(zip(X, Y[:, 0], strict=True)):
            if t == 150:
                process.kill()
                process.wait()
            if t == 152:  # it reads the log, and forecasts as if it had never been gone
                start_node(running)
                assert hub.wait_for_agents(LONG) == []
            got.append(hub.federation.predict_one(x))
            own.append(hub._remote.loop.own_forecasts()[hub.members.index("node"), 0, 0])
            hub.federation.learn_one(x, y)
        assert hub.federation.health["absences"] == {"node": 2}
        assert hub.federation.weights["node"] > 0.5
    expected, before = forecasts_of_node(Y, X), np.concatenate([[0.0], Y[:-1, 0]])
    furthest = np.maximum.accumulate(np.abs(Y[:, 0] - before))
    held = np.concatenate([[False], np.abs(expected - before)[1:] < furthest[:-1]])  # no further than it ever moved
    held[150:152] = False
    assert held[20:].mean() > 0.9
    assert np.abs(np.array(own) - expected)[held].max() < 1e-9
    assert np.abs(np.array(got) - Y[:, 0])[100:].mean() < 0.4 * np.abs(np.diff(Y[99:, 0])).mean()


def test_several_targets_and_horizons_and_a_late_label(running, python_agents, start_node):
    X, Y = make_stream(160, 2)
    late = {103: {100: Y[100].copy()}}  # asked for in a round of its own
    Y[100] = np.nan
    start_node(running)
    with hub_at(running, horizon=3, y_dim=2, start=np.zeros(2)) as hub:
        assert hub.wait_for_agents(LONG) == []
        run(hub.federation, X, Y, late)
        assert hub.federation.health["absences"] == {}
        assert hub.federation.weights["node"] > 0.3


def test_a_key_that_is_not_enrolled_ends_it(running, start_node, tmp_path):
    from nashcast.remote.broker.enrolling import enrolment

    enrolment.revoke(running.folder, "node")
    process = start_node(running)
    assert process.wait(LONG) == 1
    assert "does not know the key U" in (tmp_path / "node.log").read_text()
