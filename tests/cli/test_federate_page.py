"""The page that takes a stranger from nothing to federated agents: its commands, exactly as they stand there."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nashcast.cli.main import parser
from nashcast.config.hub_config import HUB, TOP, load

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "federate-across-organisations.md").read_text()
EXAMPLES = ROOT / "examples" / "federated"
PORT = "4222"
# After these words comes a deadline that no machine misses: who is late is another test's matter.
PACE, FRESH = "pace = 0.02", "fresh=True"


def terminal(number):
    """The commands of one terminal, without the installation."""
    part = re.search(rf"### Terminal {number}:.*?(?=\n##)", PAGE, flags=re.S)[0]
    commands = "".join(re.findall(r"```sh\n(.*?)```", part, flags=re.S))
    kept = [line for line in commands.splitlines() if not line.startswith(("python3 -m venv", "pip install"))]
    assert len(commands.splitlines()) - len(kept) == (2 if number == 1 else 0)
    return "\n".join(kept)


def program(name):
    return re.search(rf"```python\n# {name}\n(.*?)```", PAGE, flags=re.S)[1]


def free_port():
    """Not the page's: another test may be on that."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


class Terminals:
    """Shells in one place. port: stands in for the page's."""

    def __init__(self, folder):
        self.folder, self.port, self._open = folder, free_port(), []

    def start(self, commands, name):
        with (self.folder / f"{name}.out").open("wb") as out:
            shell = subprocess.Popen(
                ["bash", "-e", "-c", commands.replace(PORT, self.port)], cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self._open.append(shell)
        return shell

    def said(self, name):
        return (self.folder / f"{name}.out").read_text(errors="replace")

    def interrupt(self, shell):
        """Ctrl-C."""
        os.killpg(shell.pid, signal.SIGINT)
        shell.wait(30)

    def close(self):
        for shell in self._open:
            try:
                os.killpg(shell.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            shell.wait()


@pytest.fixture
def terminals(tmp_path):
    opened = Terminals(tmp_path)
    # In place of the environment that the page makes.
    activate = opened.folder / "activate"
    activate.write_text(f'export PATH="{Path(sys.executable).parent}:$PATH"\n')
    yield opened
    opened.close()


@pytest.mark.slow
def test_three_terminals_and_then_the_programs(terminals):
    three_terminals(terminals)
    the_programs(terminals)


def three_terminals(terminals):
    folder = terminals.folder / "tide"
    first = "mkdir -p tide/.venv/bin && cp activate tide/.venv/bin/ && . tide/.venv/bin/activate\n" + terminal(1)
    assert "\nmkdir tide && cd tide\n" in first
    assert PACE in first
    first = first.replace("\nmkdir tide && cd tide", "\ncd tide").replace(PACE, f"{PACE}\ndeadline = 60")
    hub = terminals.start(first, "hub")
    deadline = time.monotonic() + 120
    while not (folder / "tide.toml").exists():
        assert hub.poll() is None, terminals.said("hub")
        assert time.monotonic() < deadline
        time.sleep(0.05)
    agents = {name: terminals.start(terminal(number), name) for number, name in ((2, "ada"), (3, "bob"))}
    try:
        code = hub.wait(180)
    except subprocess.TimeoutExpired:
        code = "too long"
    assert code == 0, [terminals.said(name) for name in ("hub", "ada", "bob")]
    page = terminals.said("hub")
    for words in ("tide: concept shift", "200 steps", "persistence", "desk-1", "desk-2", "record: runs/tide"):
        assert words in page
    summary = json.loads((folder / "runs" / "tide" / "record.json").read_text())["summary"]
    assert summary["absences"] == {"desk-1": 0, "desk-2": 0}
    assert summary["traffic"]["turns"] == 200 + 3 * 197
    for name, shell in agents.items():
        terminals.interrupt(shell)
        assert "shares sums. Bytes sent, by kind of message:" in terminals.said(name)
        assert "backward" in terminals.said(name)
        assert (folder / name / "sent.log").read_text().count("finish_game (forecast") == 197
    kept = {path.name for path in (folder / "ada").iterdir()}
    assert {"desk-1.seed", "desk-1-key.pem", "desk-1.state", "sent.log"} <= kept
    for secret in ("*.seed", "*-key.pem"):
        assert not {path.name for path in (folder / "ada").glob(secret)} & {
            p.name for p in folder.rglob("operator/**/*")
        }


def the_programs(terminals):
    folder = terminals.folder / "tide"
    for name in ("agent.py", "hub.py"):
        text = program(name).replace(FRESH, f"{FRESH}, deadline=60.0")
        assert ("deadline" in text) == (name == "hub.py")
        (folder / name).write_text(text.replace(PORT, terminals.port))
        assert len([line for line in program(name).splitlines() if line.strip()]) <= 12
    hub, agent = (
        terminals.start(f"cd tide && . .venv/bin/activate && python {name}", name) for name in ("hub.py", "agent.py")
    )
    assert hub.wait(120) == 0, [terminals.said("hub.py"), terminals.said("agent.py")]
    assert "'desk-1': 1.0" in terminals.said("hub.py")
    assert "'absences': {}" in terminals.said("hub.py")
    terminals.interrupt(agent)
    assert "step 49: forecast (forecast (1,)), backward (" in terminals.said("agent.py")


def block(language, name):
    return re.search(rf"```{language}\n# {name}\n(.*?)```", PAGE, flags=re.S)[1]


def commands_of(heading):
    part = re.search(rf"### {heading}\n.*?(?=\n##)", PAGE, flags=re.S)[0]
    return re.search(r"```sh\n(.*?)```", part, flags=re.S)[1].splitlines()


@pytest.mark.slow
def test_six_commands_in_two_terminals_and_two_owners_better_together(terminals):
    """Real processes, the commands and files of the page; only the port and the installation are other ones."""
    folder = terminals.folder
    (folder / "tide.toml").write_text(block("toml", "tide.toml") + "deadline = 60\n")
    operator, owners = commands_of("In the operator's terminal"), commands_of("In the owners' terminal")
    assert len(operator) + len(owners) <= 6
    assert operator[0].startswith("pip install")
    strings = {}
    for command in operator[1:-1]:
        name = re.search(r"invite (\w+)", command)[1]
        first = "" if strings else f" --port {terminals.port}"
        assert terminals.start(f". ./activate\n{command}{first}", name).wait(60) == 0, terminals.said(name)
        strings[name] = terminals.said(name).splitlines()[0]
    hub = terminals.start(f". ./activate\n{operator[-1]}", "hub")
    written = "\n".join(owners)
    for name, string in strings.items():
        assert f"STRING-OF-{name.upper()}" in written
        written = written.replace(f"STRING-OF-{name.upper()}", string)
    both = terminals.start(f". ./activate\n{written}", "owners")
    try:
        code = hub.wait(150)
    except subprocess.TimeoutExpired:
        code = "too long"
    assert code == 0, [terminals.said(name) for name in ("hub", "owners")]
    summary = json.loads((folder / "runs" / "tide" / "record.json").read_text())["summary"]
    assert {summary["absences"][name] for name in strings} == {0}
    alone = {name: summary["agents_mse"][name] for name in strings} | {"persistence": summary["persistence_mse"]}
    assert summary["mse"] < 0.5 * min(alone.values()), (summary["mse"], alone)
    errors = {"federation": summary["mse"], **alone}
    printed = re.findall(
        r"^\| (federation|persistence|(?:Ada|Bob)(?='s agent))\S*(?: agent)? \| ([\d.]+) \|", PAGE, flags=re.M
    )
    # Whoever enrolled first is first in the hub's own table.
    assert {name: f"{error:.2f}" for name, error in errors.items()} == {who.lower(): error for who, error in printed}
    for name in strings:
        assert {path.name for path in (folder / name).iterdir()} >= {f"{name}.seed", f"{name}.state", "sent.log"}
        assert not list((folder / "tide").rglob(f"{name}-key.pem"))
    listed = terminals.start(". ./activate\nnashcast enroll list tide --json", "list")
    assert listed.wait(60) == 0
    assert [each["state"] for each in json.loads(terminals.said("list"))["invitations"]] == ["closed", "closed"]
    terminals.interrupt(both)


def test_the_examples_for_containers_are_commands_of_ours(monkeypatch):
    commands = [
        json.loads(found)
        for name in ("operator.yaml", "owner.yaml")
        for found in re.findall(r"command: (\[.*\])", (EXAMPLES / name).read_text())
    ]
    assert [command[:2] for command in commands] == [["nashcast", name] for name in ("broker", "hub", "agent")]
    # Those of the page, without the containers in front of them.
    page = PAGE.replace("\\\n", " ")
    commands += [found.split() for found in re.findall(r"run --rm \w+ (nashcast .*)", page)]
    assert len(commands) == 3 + 6
    for command in commands:
        assert parser().parse_args(command[1:]).run
    config = load(EXAMPLES / "tide.toml")
    assert config.broker == "tls://broker:4222"
    monkeypatch.chdir(EXAMPLES)
    assert program_of("my_model.py") in PAGE


def program_of(name):
    return (EXAMPLES / name).read_text().partition('"""\n\n')[2]


def test_the_page_on_the_hubs_file_has_every_key_and_its_example_is_read(tmp_path):
    page = (ROOT / "docs" / "reference" / "hub-toml.md").read_text()
    top, _, hub = page.partition("## `[hub]`")
    rows = [set(re.findall(r"^\| `(\w+)` \|", part, flags=re.M)) for part in (top, hub)]
    assert rows == [set(TOP), set(HUB)]
    example = re.search(r"```toml\n(.*?)```", page, flags=re.S)[1]
    (tmp_path / "hub.toml").write_text(example)
    config = load(tmp_path / "hub.toml")
    assert config.agents == ("desk-1", "desk-2")
    # The defaults that the page names.
    (tmp_path / "least.toml").write_text('[stream]\nname = "concept-y2"\n[hub]\nfolder = "f"\n')
    least = load(tmp_path / "least.toml")
    for key in ("wait", "pace"):
        assert f"| `{key}` | {getattr(least, key)} |" in page
    assert (least.deadline, least.masked, least.agents, least.broker, least.certs) == (None, False, None, None, None)
