"""Organisations on one machine, each with an agent of its own: keys made at home, a process, a state and a log."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from nashcast import seeds
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.config.run_encoders import encoder_from
from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.certificates.keys import make_seed
from nashcast.remote.broker.enrolling import enrolment

# The model of an owner with a sensor: the hub names the step, the reading comes from the owner's file.
SENSOR = '''"""The sensor of this owner."""

from pathlib import Path

from nashcast.encoders import Callable

READINGS = [float(line) for line in (Path(__file__).parent / "readings.txt").read_text().split()]


def encoder():
    return Callable(lambda x: [READINGS[int(x[0])]], features=1)
'''
# The public keys of all enrolled agents, in every owner's folder.
ENROLLED = "enrolled.toml"
# "… step 12: forecast (forecast (1,)), backward (coupling (1, 1), offset (1,), tensor (3,)); 214 bytes"
_SENT = re.compile(r"\b(\w+) \((\([^()]*\)|(?:\w+ (?:\([^()]*\)|[^,()]+)(?:, )?)*)\)")


class Organisation(NamedTuple):
    """share: what its agent may let out at most."""

    name: str
    encoder: str
    options: dict[str, Any]
    share: str
    ridge: float = 1.0
    window: int = 5

    def agent(self, seed: int) -> PaperAgent:
        """The same agent in this process."""
        encoder = encoder_from(self.encoder, self.options, seeds.key(seed, "agent", self.name), Path())
        return PaperAgent(encoder, name=self.name, share=self.share, ridge=self.ridge, window=self.window)

    def arguments(self, home: Path) -> list[Any]:
        """Arguments of `nashcast agent` beside its identity."""
        options = [part for key, value in self.options.items() for part in ("--set", f"{key}={value}")]
        return [
            self.encoder, "--game", "lookback", "--share", self.share, "--state", home / "agent.state",
            "--ridge", self.ridge, "--window", self.window, *options,
        ]  # fmt: skip


class SensorOwner(NamedTuple):
    """An owner with a sensor of its own, whose agent sends masked terms of the joint game only.

    readings: one for each step. They are in a file of the owner's folder and reach no other party.
    """

    name: str
    readings: Sequence[float]

    def arguments(self, home: Path) -> list[Any]:
        """Arguments of `nashcast agent` beside its identity. The model is a function in the owner's own file."""
        (home / "readings.txt").write_text("".join(f"{value!r}\n" for value in self.readings))
        (home / "sensor.py").write_text(SENSOR)
        enrolled = tomllib.loads((home / ENROLLED).read_text())["agents"]
        return [
            "sensor:encoder", "--share", "joint", "--trusted", home / ENROLLED,
            "--least-present", len(enrolled),
        ]  # fmt: skip


def found(folder: Path, federation: str, members: Sequence[Organisation | SensorOwner]) -> Path:
    """What operator and owners do before the first step; returns the federation's folder at the operator's."""
    operator = folder / "operator"
    certs.make(operator / "certs")
    enrolment.create(operator / federation, federation)
    for member in members:
        home = folder / member.name
        public_key = make_seed(home / f"{member.name}.seed")
        _, request = certs.request(member.name, home)
        # Only what is not secret goes to the operator and back.
        certs.sign(operator / "certs", request)
        enrolment.add(operator / federation, member.name, public_key)
        for name in ("ca.pem", f"{member.name}.pem"):
            shutil.copyfile(operator / "certs" / name, home / name)
    keys = "".join(f'{name} = "{key}"\n' for name, key in enrolment.read(operator / federation).agents.items())
    for member in members:
        (folder / member.name / ENROLLED).write_text(f"[agents]\n{keys}")
    return operator / federation


class Party:
    """One organisation's agent: the command `nashcast agent`, in a process of its own."""

    def __init__(self, member: Organisation | SensorOwner, home: Path, hub: str, seed: int):
        self.member, self._home = member, home
        self.log, self._errors = home / "sent.log", home / "agent.log"
        self._command = [
            sys.executable, "-m", "nashcast", "agent", *member.arguments(home), "--hub", hub, "--name", member.name,
            "--key", home / f"{member.name}.seed", "--certs", home, "--log", self.log, "--seed", seed, "--json",
        ]  # fmt: skip
        self._process: subprocess.Popen | None = None

    def start(self) -> None:
        with self._errors.open("ab") as log:
            self._process = subprocess.Popen(
                list(map(str, self._command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._home,
                start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """As a crash does: at once."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def has_ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    @property
    def said_last(self) -> str:
        """What the command has printed last, for when it has not come."""
        lines = self._errors.read_text(errors="replace").strip().splitlines() if self._errors.exists() else []
        return lines[-1] if lines else "it said nothing"

    def sent(self) -> tuple[Counter[str], int]:
        """From its own log: how often each name of something left it, and the bytes of all messages."""
        names: Counter[str] = Counter()
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        for line in lines:
            names.update(sent_names(line))
        return names, sum(int(line.split()[-2]) for line in lines)


def sent_names(line: str) -> set[str]:
    """What an owner's log says that a message had in it.

    >>> sorted(sent_names("step 9: forecast (forecast (1,)), backward (coupling (1, 1)); 86 bytes"))
    ['coupling', 'forecast']
    >>> sorted(sent_names("step 9: view (features (2, 1, 3), ridge 0.5); 86 bytes"))
    ['features', 'ridge']
    >>> sorted(sent_names("step 0: begin (features 6, relative False, varies True, share moments); 99 bytes"))
    ['number of features', 'relative', 'share', 'varies']
    """
    found = set()
    for kind, inside in _SENT.findall(line):
        names = re.findall(r"([a-z_]\w*) (?:\(|[^,()]+)", inside)
        if kind == "begin":
            names = ["number of features" if name == "features" else name for name in names]
        found |= set(names or [kind])
    return found


def members_table(shown) -> list[str]:
    base = shown.errors["persistence"]
    lines = [f"  {'':14}{'model':18}{'shares':11}{'MSE':>11}{'÷ persistence':>15}{'weight':>9}{'sat out':>9}"]
    for member in shown.members:
        name, error = member["name"], shown.errors[member["name"]]
        numbers = f"{error:11.3e}{error / base:15.2f}{shown.weights[name]:9.3f}{len(shown.sat_out[name]):9}"
        lines.append(f"  {name:14}{member['encoder']:18}{member['share']:11}{numbers}")
    for name in ("federation", "persistence"):
        lines.append(f"  {name:43}{shown.errors[name]:11.3e}{shown.errors[name] / base:15.2f}")
    return lines
