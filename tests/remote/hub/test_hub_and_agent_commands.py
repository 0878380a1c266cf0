"""`nashcast hub` and `nashcast agent` as their users meet them: commands that work, are refused, stopped, or killed."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from nashcast.cli.main import main
from nashcast.records.runs import read_run
from nashcast.remote.broker.enrolling import enrolment
from nashcast.remote.broker.running.server import reload_broker, running_broker
from nashcast.runs.hub_run import STATE
from support.remote.brokers import alive, broker, found
from support.remote.processes.crew import LONG, wait_until
from support.remote.processes.crew_processes import command, end

pytestmark = pytest.mark.slow

NAMES = ("desk-1", "desk-2")
HUB = """
name = "Two desks"
seed = 4
steps = 60
[stream]
name = "concept-y2"
[game]
lookback = 2
placement = "spread"
[hub]
folder = "tide"
certs = "tide/certs"
wait = 60
deadline = 30
"""


class Commands:
    """A folder with a federation of two, and commands in it."""

    def __init__(self, folder):
        self.folder, self.tide, self._processes = folder, found(folder / "tide", *NAMES, tls=True), []
        (folder / "hub.toml").write_text(HUB)
        port = enrolment.read(self.tide).settings.port
        self.url = f"tls://127.0.0.1:{port}/tide"

    def start(self, *words, log):
        self._processes.append(command(*words, log=self.folder / log, folder=self.folder))
        return self._processes[-1]

    def hub(self, *more):
        return self.start("hub", "hub.toml", *more, log="hub.log")

    def agent(self, name, *more, log=None):
        return self.start(*self.agent_words(name), *more, log=log or f"{name}.log")

    def agent_words(self, name, encoder="linear"):
        files = ["--key", str(self.tide / f"{name}.seed"), "--certs", str(self.tide / "certs")]
        return ["agent", encoder, "--game", "lookback", "--hub", self.url, "--name", name, *files]

    def said(self, log):
        path = self.folder / log
        return path.read_text() if path.exists() else ""

    def until_said(self, log, words, times=1):
        wait_until(lambda: self.said(log).count(words) >= times, f"{words!r} is in {log}: {self.said(log)[-1000:]}")

    def close(self):
        end(*self._processes)


@pytest.fixture
def here(tmp_path):
    commands = Commands(tmp_path)
    yield commands
    commands.close()


def exit_code(process):
    process.join(LONG)
    return process.exitcode


def test_a_hub_and_two_agents_from_beginning_to_end(here):
    agents = [
        here.agent("desk-1", "--state", "desk-1.npz", "--log", "desk-1.sent", "--ridge", "2", "--window", "3"),
        here.start(*here.agent_words("desk-2", "random_features"), "--set", "features=3", "--seed", "5", "--json",
                   log="desk-2.log"),
    ]  # fmt: skip
    assert exit_code(here.hub()) == 0, here.said("hub.log")
    page = here.said("hub.log")
    assert re.search(r"hub of tide at tls://127\.0\.0\.1:\d+/tide, for desk-1, desk-2\n", page)
    assert "Two desks: concept shift, 60 steps\n" in page
    assert re.search(r"\n  agent +MSE +last weight +sat out\n  desk-1 +\S+ +\S+ +0\n  desk-2 +\S+ +\S+ +0\n", page)
    assert re.search(r"a forecast took \d+\.\d ms \(median\), \d+\.\d ms \(99 %\)", page)
    assert re.search(r"since it started: \d+ turns, [\d,]+ bytes down, [\d,]+ up", page)
    assert page.endswith("record: runs/two-desks\nreport: nashcast report runs/two-desks\n")
    record = read_run(here.folder / "runs" / "two-desks")
    assert record.arrays["present"].all()
    assert record.about["command"] == "nashcast hub hub.toml"
    assert record.about["summary"]["engine"] == "remote"
    assert main(["report", str(here.folder / "runs" / "two-desks"), "--output", str(here.folder / "report")]) == 0

    # Done again, there is nothing to do, and nobody is waited for.
    for name in NAMES:
        here.until_said(f"{name}.log", "step 60, ends")
    for agent in agents:
        os.kill(agent.pid, signal.SIGTERM if agent is agents[0] else signal.SIGINT)
        assert exit_code(agent) == 0
    assert re.search(
        r"desk-1 shares sums\. Bytes sent, by kind of message:\n( +\w+ +[\d,]+\n)+", here.said("desk-1.log")
    )
    sent = json.loads(here.said("desk-2.log").splitlines()[-1])["sent"]
    assert set(sent) == {"begin", "forecast", "backward", "finish_game", "envelope"}
    assert exit_code(here.hub("--json")) == 0
    again = json.loads(here.said("hub.log").splitlines()[-1])
    assert again["summary"]["mse"] == record.about["summary"]["mse"]
    assert again["summary"]["traffic"]["turns"] == 0
    lines = (here.folder / "desk-1.sent").read_text().splitlines()
    assert re.fullmatch(r"\d{4}-\S+ hello: desk-1, shares sums, at step -1 of run -1; \d+ bytes", lines[0])
    assert any(re.search(r" step 0: begin \(.*\), forecast \(forecast \(1,\)\); \d+ bytes", line) for line in lines)
    assert running_broker(here.tide) is None

    # Other settings in the same folder are refused, unless it is begun anew; and then nobody comes.
    assert exit_code(here.hub("--set", "seed=5")) == 1
    assert "--output: got runs/two-desks, with a run of other settings. Pass another folder, or --fresh." in here.said(
        "hub.log"
    )
    assert exit_code(here.hub("--fresh", "--set", "seed=5", "--set", "hub.wait=0.3")) == 1
    assert "waiting up to 0.3 s for desk-1, desk-2" in here.said("hub.log")
    assert re.search(
        r"nashcast: no agent has connected within 0\.3 s\. Start them: nashcast agent ENCODER --hub tls://127\.0\.0\.1:\d+/"
        r"tide --name NAME --key FILE\.\n", here.said("hub.log"),
    )  # fmt: skip


def test_a_hub_with_a_broker_of_its_own_is_killed_and_goes_on(here):
    for name in NAMES:
        here.agent(name, "--state", f"{name}.npz")
    steps = here.folder / "out" / "steps.f64"
    width = 8 * (1 + 2 * 2 + 2 * 1 + 1 + 1)  # forecast, weights, own, present, game not played, seconds
    options = ("--output", "out", "--set", "hub.pace=0.03")
    for k in range(3):
        hub = here.hub(*options)
        wait_until(
            lambda k=k: steps.exists() and steps.stat().st_size > 10 * (k + 1) * width, "some more steps are done"
        )
        hub.kill()
        hub.join()
    assert exit_code(here.hub(*options)) == 0, here.said("hub.log")
    assert int(re.findall(r"continuing at step (\d+) of 60", here.said("hub.log"))[-1]) >= 30
    record = read_run(here.folder / "out")
    assert len(record.arrays["forecasts"]) == 60
    assert record.arrays["present"].all(), here.said("hub.log")


def test_ctrl_c_stops_a_hub_and_it_goes_on(here):
    for name in NAMES:
        here.agent(name)
    hub = here.hub("--output", "out", "--set", "hub.pace=0.05")
    wait_until(lambda: (here.folder / "out" / STATE).exists(), "the first step is over")
    os.kill(hub.pid, signal.SIGINT)
    assert exit_code(hub) == 130
    assert "stopped; the same command continues the run (out)" in here.said("hub.log")
    assert running_broker(here.tide) is None
    assert exit_code(here.hub("--output", "out")) == 0
    record = read_run(here.folder / "out")
    assert record.arrays["present"].all()
    assert len(record.arrays["present"]) == 60


def test_an_identity_is_there_once_and_one_that_is_revoked_is_told(here):
    hub = here.hub("--set", "hub.pace=0.02", "--set", "steps=200")
    first, other = here.agent("desk-1"), here.agent("desk-2")
    here.until_said("hub.log", "hub of tide")
    here.until_said("desk-1.log", "connected to")
    twin = here.agent("desk-1", "--wait", "0", log="twin.log")
    assert exit_code(twin) == 1
    assert re.search(
        r"nashcast: the broker at \S+ already has a connection of 'desk-1'\. Stop the other one", here.said("twin.log")
    )
    assert first.is_alive()
    wait_until(lambda: (here.folder / "runs" / "two-desks" / STATE).exists(), "steps are done")
    # Asleep, so that its last step does not come before what follows; its broker is a process of its own.
    os.kill(hub.pid, signal.SIGSTOP)
    enrolment.revoke(here.tide, "desk-1")
    assert reload_broker(here.tide)
    assert exit_code(first) == 1
    assert "nashcast: the broker has shut 'desk-1' out: its key was revoked, or is not enrolled." in here.said(
        "desk-1.log"
    )
    back = here.agent("desk-1", log="back.log")
    assert exit_code(back) == 1
    assert "does not know the key of 'desk-1', or it was revoked" in here.said("back.log")
    os.kill(hub.pid, signal.SIGCONT)
    assert exit_code(hub) == 0, here.said("hub.log")
    assert other.is_alive()
    present = read_run(here.folder / "runs" / "two-desks").arrays["present"]
    assert present[:, 1].all()
    assert not present[-1, 0]
    assert re.search(r"hub: step \d+, desk-1 is absent: not connected", here.said("hub.log"))


def test_an_agent_ends_in_good_order_while_its_broker_is_away(here):
    with broker(here.tide, tls=True, port=enrolment.read(here.tide).settings.port) as running:
        agent = here.agent("desk-1")
        here.until_said("desk-1.log", "connected to")
        running.stop()
        here.until_said("desk-1.log", "connection to")
        os.kill(agent.pid, signal.SIGTERM)
        assert exit_code(agent) == 0
    assert "desk-1 shares sums. Bytes sent, by kind of message:" in here.said("desk-1.log")


def test_an_agent_s_bad_input(here, capsys, monkeypatch):
    monkeypatch.chdir(here.folder)
    (here.folder / "mine.py").write_text("def broken():\n    raise RuntimeError('no')\nnothing = 3\n")
    words = here.agent_words("desk-1")

    def changed(option, value):
        return [value if before == option else word for before, word in zip([None, *words], words, strict=False)]

    bad = [
        (
            ["agent", "liner", *words[2:]],
            r"encoder: got 'liner'\. Did you mean 'linear' or 'learner'\? Pass module:name, or one of",
        ),
        (["agent", "random_features", *words[2:]], r"encoder: got 'random_features' without features. Pass --set feat"),
        ([*words, "--set", "lag=3"], r"lag: got a key that is not known"),
        (["agent", "mine:broken", *words[2:]], r"make: got a function that raised RuntimeError: no"),
        (["agent", "mine:nothing", *words[2:]], r"encoder: got 'mine:nothing', but there is no function nothing"),
        (["agent", "nowhere:x", *words[2:]], r"encoder: got 'nowhere:x', whose module cannot be imported"),
        (
            changed("--hub", "tls://127.0.0.1:4222"),
            r"hub: got 'tls://127\.0\.0\.1:4222'. Pass tls://HOST:PORT/FEDERATI",
        ),
        (changed("--hub", "http://x/tide"), r"url: got 'http://x'. Pass nats://HOST:PORT or tls://HOST:PORT"),
        (changed("--key", "nowhere.seed"), r"nowhere\.seed"),
        (changed("--certs", "nowhere"), r"tls: got no file nowhere/ca\.pem"),
        (changed("--name", "desk 1"), r"name: got 'desk 1'. Name the agent with 1 to 64 letters"),
        ([*words, "--ridge", "0"], r"ridge: got 0"),
        ([*words, "--seed", "-1"], r"--seed: got int -1. Pass a whole number ≥ 0"),
        ([*words, "--log", "nowhere/log"], r"--log: got nowhere/log \(No such file or directory\)"),
        ([*words, "--wait", "0"], r"the broker at \S+ cannot be reached: .* Check the address"),
    ]
    for arguments, message in bad:
        assert main(arguments) == 1
        error = capsys.readouterr().err
        assert re.search(f"^nashcast: .*{message}", error, re.MULTILINE), (arguments, error)


@pytest.mark.parametrize("arguments", [
    ["agent"], ["agent", "linear"], ["agent", "linear", "--hub", "x", "--name", "y"], ["hub"],
    ["agent", "linear", "--hub", "x", "--name", "y", "--key", "z", "--share", "everything"],
    ["hub", "a", "b"], ["hub", "a", "--steps", "many"],
])  # fmt: skip
def test_misuse_is_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2


def test_a_hub_s_bad_input(here, capsys, monkeypatch):
    monkeypatch.chdir(here.folder)
    bad = [
        (["nowhere.toml"], r"nowhere\.toml"),
        (["hub.toml", "--set", "hub.folder=nowhere"], r"nowhere"),
        (["hub.toml", "--set", 'hub.agents=["desk-3"]'], r"agents: got 'desk-3', who is not enrolled. Enrolled are: d"),
        (["hub.toml", "--set", "hub.deadline=0"], r"hub\.toml: hub\.deadline: got 0"),
        (["hub.toml", "--steps", "100000"], r"hub\.toml: steps: got 100000. The stream has 200 steps"),
        (
            ["hub.toml", "--output", "hub.toml/x"],
            r"--output: got hub\.toml/x, which cannot be written \(Not a directory\)",
        ),
        (["hub.toml", "--set", "hub.broker=here"], r"url: got 'here'. Pass nats://HOST:PORT or tls://HOST:PORT"),
    ]
    for arguments, message in bad:
        assert main(["hub", *arguments]) == 1
        assert re.search(f"^nashcast: .*{message}", capsys.readouterr().err, re.MULTILINE), arguments
    enrolment.create(here.folder / "empty", "empty")
    assert main(["hub", "hub.toml", "--set", "hub.folder=empty", "--output", "e"]) == 1
    assert (
        "agents: got nobody enrolled. Invite one: nashcast enroll invite NAME --folder empty."
        in capsys.readouterr().err
    )
    state = here.folder / "damaged"
    state.mkdir()
    assert main(["hub", "hub.toml", "--output", "damaged", "--set", "hub.wait=0"]) == 1
    (state / STATE).write_bytes(b"damaged")
    capsys.readouterr()
    assert main(["hub", "hub.toml", "--output", "damaged", "--set", "hub.wait=0"]) == 1
    assert f"path: got {STATE}, which cannot be read" in capsys.readouterr().err
    assert running_broker(here.tide) is None


def test_a_program_of_ten_lines_takes_part_too(here):
    """The library's way, as a program that is really started, ended by SIGTERM in good order."""
    program = here.folder / "mine.py"
    program.write_text(
        "import sys\n"
        "from nashcast import Agent, Window, encoders\n"
        "from nashcast.remote import serve_agent\n"
        "agent = Agent(encoders.Linear(lags=1), name='desk-1', share='sums', decoders=Window())\n"
        "owner = serve_agent(agent, sys.argv[1], key='tide/desk-1.seed', certs='tide/certs', patience=60)\n"
        "print('sent', sorted(owner.sent))\n"
    )
    hub = here.hub("--set", 'hub.agents=["desk-1"]', "--steps", "20")
    with subprocess.Popen(
        [sys.executable, str(program), here.url], cwd=here.folder, stdout=subprocess.PIPE, text=True
    ) as agent:
        try:
            assert exit_code(hub) == 0, here.said("hub.log")
            agent.terminate()
            out, _ = agent.communicate(timeout=LONG)
            assert out.startswith("sent ['backward', 'begin'")
            assert agent.returncode == 0
        finally:
            agent.kill()
    assert not alive(agent.pid)
    assert np.isfinite(read_run(here.folder / "runs" / "two-desks").arrays["forecasts"]).all()
