"""The service in front of a hub: agents in processes of their own, killed on either side; save points; refusals."""

import re
import shutil
import socket
import threading
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from demos.organisations import Organisation, Party, found

from nashcast import LookbackGame, paper_federation
from nashcast.cli.main import main
from nashcast.client import ServiceRefused
from nashcast.config.hub_config import load
from nashcast.remote.broker.enrolling import enrolment
from nashcast.service.streams.settings import load_served
from support.service.served import Served, entries, recorded, series

MEMBERS = (
    Organisation("rain-lab", "random_features", {"features": 3, "noise": 0.1}, "sums", window=6),
    Organisation("river-office", "echo_state", {"features": 3, "noise": 0.1}, "moments", window=6),
    Organisation("tide-desk", "linear", {}, "features", window=6),
)
NAMES = [member.name for member in MEMBERS]
FILE = """
name = "three organisations"
seed = 5
[serve]
x_dim = 1
y_dim = 1
[game]
lookback = 2
placement = "spread"
[hub]
folder = "operator/demo"
certs = "operator/certs"
wait = 120.0
# That no machine misses: who is late is another test's matter.
deadline = 60.0
"""
VALUES = series(200)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


PORT = free_port()


class Stage:
    """Organisations beside a service that runs its broker itself."""

    def __init__(self, folder):
        self.folder = folder
        home = found(folder, "demo", MEMBERS)
        # Any port that is free, the same from one start to the next.
        enrolled = enrolment.read(home)
        enrolment.save(home, enrolled._replace(settings=enrolled.settings._replace(port=PORT)))
        hub = f"tls://127.0.0.1:{PORT}/demo"
        self.parties = {member.name: Party(member, folder / member.name, hub, 5) for member in MEMBERS}

    def serve(self) -> Served:
        """Once the agents are there."""
        served, until = Served(self.folder, text=FILE), time.monotonic() + 120
        with served.client() as client:
            while client.status()["state"] != "live":
                assert time.monotonic() < until, served.log()
                time.sleep(0.05)
        return served


@contextmanager
def staged(folder):
    stage = Stage(folder)
    for party in stage.parties.values():
        party.start()
    try:
        yield stage
    finally:
        for party in stage.parties.values():
            party.stop()


def states(client) -> list[str]:
    return [agent["state"] for agent in client.agents()]


def expected(kept: list) -> dict[int, list[float]]:
    """What the same agents in this process forecast, if nobody is ever away."""
    agents = [member.agent(5) for member in MEMBERS]
    federation, forecasts, x = paper_federation(agents, game=LookbackGame(2, placement="spread"), seed=5), {}, None
    for entry in kept:
        federation.learn_one(entry.x if x is None else x, entry.y)
        x = entry.x
        forecasts[entry.step + 1] = np.atleast_1d(federation.predict_one(x)).tolist()
    return forecasts


def observe_until(client, step: int, wanted: list[str]) -> int:
    """Post until agents are in these states; returns the next step."""
    end = time.monotonic() + 120
    while True:
        client.observe(VALUES[step % 200], VALUES[step % 200], step=step)
        step += 1
        if states(client) == wanted:
            return step
        assert time.monotonic() < end, states(client)
        time.sleep(0.05)


@pytest.mark.slow
def test_a_service_that_is_killed_goes_on_with_agents_elsewhere_as_if_nothing_had_been(tmp_path):
    with staged(tmp_path) as stage:
        served, step = stage.serve(), 0
        for stop in (25, 26, 60):
            with served.client() as client:
                while step < stop:
                    client.observe(VALUES[step], VALUES[step], step=step)
                    step += 1
            served.kill()
            served = stage.serve()
        # In the middle of a batch, which is in the journal as a whole by then.
        batch = [(v, v) for v in VALUES[60:160]]
        with served.client(retries=0) as client:
            poster = threading.Thread(target=lambda: suppressed(client.observe_many, batch, first_step=60))
            poster.start()
            while len(entries(served.journal)) < 160:
                time.sleep(0.01)
            time.sleep(0.2)
            served.kill()
            poster.join()
        with stage.serve() as served, served.client() as client:
            assert client.observe_many(batch, first_step=60).step == 160
            assert [(agent["state"], agent["absences"]) for agent in client.agents()] == [("in", 0)] * 3
            assert recorded(client) == expected(entries(served.journal))
            assert client.status()["settings"]["agents"] == NAMES
            starts = [row["text"] for row in client.log() if row["kind"] == "start"]
            assert 0 < int(starts[-1].split()[-3]) < 100, starts


def suppressed(call, *arguments, **options) -> None:
    with suppress(ServiceRefused):
        call(*arguments, **options)


@pytest.mark.slow
def test_agents_begin_anew_where_the_service_goes_back(tmp_path):
    with staged(tmp_path) as stage:
        with stage.serve() as served, served.client() as client:
            client.observe_many([(v, v) for v in VALUES[:30]], first_step=0)
        shutil.copytree(tmp_path / "journal", tmp_path / "copy")
        with stage.serve() as served, served.client() as client:
            client.save_point("here")
            client.observe_many([(v, v) for v in VALUES[30:50]], first_step=30)
            client.restore("here")
            assert client.forecast().step == 30
            assert states(client) == ["in"] * 3
            served.kill()
        # Before the next observation: it is at the save point again, and so are they.
        with stage.serve() as served, served.client() as client:
            client.observe_many([(v, v) for v in VALUES[30:60]], first_step=30)
            assert states(client) == ["in"] * 3
        shutil.rmtree(tmp_path / "journal")
        (tmp_path / "copy").rename(tmp_path / "journal")
        with stage.serve() as served, served.client() as client:
            assert states(client) == ["in"] * 3
            for step in range(30, 40):
                answer = client.observe(VALUES[step], VALUES[step], step=step)
                assert answer.absent == {}
            assert "agents" in [row["kind"] for row in client.log()]


@pytest.mark.slow
def test_an_agent_that_is_killed_is_gone_and_comes_back_by_itself(tmp_path):
    with staged(tmp_path) as stage, stage.serve() as served, served.client() as client:
        client.observe_many([(v, v) for v in VALUES[:20]], first_step=0)
        stage.parties["river-office"].kill()
        step = observe_until(client, 20, ["in", "gone", "in"])
        away = client.forecast()
        assert list(away.absent) == ["river-office"]
        assert away.weights["river-office"] == 0.0
        assert sum(away.weights.values()) == pytest.approx(1.0)
        stage.parties["river-office"].start()
        observe_until(client, step, ["in"] * 3)
        kinds = [row["kind"] for row in client.log()]
        assert kinds.index("agent gone") < kinds.index("agent back")
        with urllib.request.urlopen(f"{served.url}/metrics") as answer:
            days = re.findall(r'nashcast_certificate_days\{.*certificate="(\w+)"\} ([\d.e+]+)', answer.read().decode())
        assert {name: round(float(left)) for name, left in days} == {"ca": 3650, "broker": 365, "hub": 365}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("[hub]", '[[agents]]\nencoder = "linear"\n[hub]'), "hub: got a hub beside tables of agents"),
        (("wait = 120.0", "pace = 0.1"), "hub.pace: got 0.1. Leave it out: observations set the pace."),
        (("y_dim = 1", "y_dim = 1\ndeadline = 0.5"), "serve.deadline: got 0.5 with a hub. Set it in the table [hub]."),
        (('folder = "operator/demo"', ""), "hub.folder: got nothing. Add the folder that `nashcast enroll create`"),
        (('"operator/demo"', '"nowhere"'), "without enrolment.json. Make one: nashcast enroll create"),
    ],
)
def test_a_hub_that_cannot_be_is_refused(change, words, tmp_path, capsys):
    (tmp_path / "federation.toml").write_text(FILE.replace(*change))
    journal = str(tmp_path / "journal")
    assert main(["serve", str(tmp_path / "federation.toml"), "--journal", journal, "--port", "0", "--no-auth"]) == 1
    assert words in capsys.readouterr().err


def test_the_file_of_the_documentation_can_be_served(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "serve.md").read_text()
    text = re.search(r"```toml\n(.*?)```", page.partition("## Agents elsewhere")[2], flags=re.S)[1]
    found(tmp_path, "tide", [member._replace(name=f"desk-{i}") for i, member in enumerate(MEMBERS, start=1)])
    (tmp_path / "tide.toml").write_text(text)
    assert load_served(tmp_path / "tide.toml").hub.agents == ("desk-1", "desk-2")


def test_the_same_file_is_for_the_hub_too(tmp_path):
    found(tmp_path, "demo", MEMBERS[:1])
    path = tmp_path / "federation.toml"
    path.write_text(FILE + '[stream]\nname = "concept-y2"\n')
    config = load_served(path)
    assert config.hub.agents == ("rain-lab",)
    assert load(path).hub == config.hub.folder
    before = config.identity()
    path.write_text(path.read_text().replace("wait = 120.0", "wait = 1.0").replace("60.0", "0.5"))
    assert load_served(path).identity() == before
    path.write_text(path.read_text().replace("wait = 1.0", 'agents = ["rain-lab", "other"]'))
    assert load_served(path).identity() != before
