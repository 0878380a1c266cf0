"""A federation at work that can be hurt: broker, hub and agents, each a process of its own, over mutual TLS."""

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nashcast import LookbackGame
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.cli.run import toml
from nashcast.config.build import open_config_stream
from nashcast.config.hub_config import load
from nashcast.config.run_encoders import encoder_from
from nashcast.records.folder import read_record
from nashcast.remote.broker.rules import Settings
from nashcast.runs.hub_run import STEPS
from support.remote.absences import births_in, replayed
from support.remote.brokers import FEDERATION, broker, found, free_port

# Longer than anything takes on a machine that is busy with other things.
LONG = 300.0


class Member(NamedTuple):
    """An agent as its owner starts it.

    remembers: whether it has a state file.   host, network: where it finds the broker, and from which network.
    """

    encoder: str
    options: dict
    settings: dict
    share: str = "features"
    remembers: bool = True
    host: str = "127.0.0.1"
    network: int | None = None

    def agent(self, name: str, folder: Path) -> PaperAgent:
        encoder = encoder_from(self.encoder, self.options, 0, folder)
        return PaperAgent(encoder, name=name, share=self.share, **self.settings)


def members(share: str, **changes) -> dict[str, Member]:
    """Five of four families, two of them with a memory. changes: fields of some of them, by name with an underscore."""
    crew = {
        "agent-0": Member(
            "random_features", {"features": 3, "seed": 1, "noise": 0.3}, {"ridge": 8.0, "window": 4}, share
        ),
        "agent-1": Member(
            "echo_state", {"features": 2, "seed": 2, "noise": 0.2, "samples": 20, "leak": 0.7},
            {"ridge": 9.0, "window": 3}, share,
        ),
        "agent-2": Member("linear", {"lags": 1}, {"ridge": 7.0, "decay": 0.1, "window": 5}, share),
        "agent-3": Member(
            "echo_state", {"features": 3, "seed": 5, "noise": 0.0, "samples": 10}, {"ridge": 8.0, "forgetting": 0.95},
            share,
        ),
        "agent-4": Member("persistence", {}, {"ridge": 5.0, "window": 3}, share),
    }  # fmt: skip
    return {name: crew[name]._replace(**changes.get(name.replace("-", "_"), {})) for name in crew}


class Crew:
    """launch: starts `nashcast WORDS…` as a process, see `crew_processes.command`.   hub: more of its file's table.

    A context manager: at its end nothing runs any more.
    """

    def __init__(
        self,
        folder: Path,
        launch,
        crew: dict[str, Member],
        *,
        steps: int,
        stream: str,
        game: LookbackGame | None,
        **hub,
    ):
        self.folder, self.launch, self.members = folder, launch, crew
        self.federation, self.out, self.file = folder / "federation", folder / "out", folder / "hub.toml"
        hosts = list({"127.0.0.1": None, **{member.host: None for member in crew.values()}})
        listen = Settings(host="127.0.0.1" if len(hosts) == 1 else "0.0.0.0", port=free_port("0.0.0.0"))
        found(self.federation, *crew, tls=True, settings=listen, hosts=hosts)
        self.broker = broker(self.federation, tls=True, port=listen.port)
        self._more: list[str] = []
        self._processes, self._starts, self._births = {}, Counter(), {name: [] for name in crew}
        played = False if game is None else {name: getattr(game, name) for name in ("lookback", "every", "placement")}
        document = {
            "seed": 3, "steps": steps, "stream": {"name": stream, "steps": steps}, "federation": {"ridge": 0.7},
            "game": played, "hub": {"folder": "federation", "broker": f"tls://127.0.0.1:{listen.port}", **hub},
        }  # fmt: skip
        self.file.write_text(_toml(document))
        self.config = load(self.file)
        self.stream = open_config_stream(self.config)
        N, p = len(crew), self.stream.targets.shape[1]
        self._width, self._flags = p + 2 * N + N * p + 1, slice(p + N + N * p, p + 2 * N + N * p)

    def __enter__(self):
        try:
            for party in ("broker", *self.members, "hub"):
                self.start(party)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        try:
            for process in self._processes.values():
                if process.is_alive():  # else its number may be another's by now
                    process.kill()
                process.join()
        finally:
            self.broker.stop()

    @property
    def parties(self) -> list[str]:
        return [*self.members, "hub", "broker"]

    def start(self, party: str) -> None:
        if party == "broker":
            self.broker.restart()
            return
        if party == "hub":
            words, network = ["hub", self.file, "--output", self.out, "--json", *self._more], None
        else:
            words, network = self._agent_words(party), self.members[party].network
        log = self.folder / f"{party}.log"
        self._processes[party] = self.launch(*words, log=log, folder=self.folder, network=network)

    def _agent_words(self, name: str) -> list:
        member, births, state = self.members[name], self._births[name], self.folder / f"{name}.npz"
        sent = self.folder / f"{name}.{self._starts[name]}.sent"
        self._starts[name] += 1
        words = ["agent", member.encoder, "--hub", f"tls://{member.host}:{self.broker.port}/{FEDERATION}"]
        words += ["--game", "lookback", "--name", name, "--share", member.share, "--log", sent, "--wait", LONG]
        words += ["--key", self.federation / f"{name}.seed", "--certs", self.federation / "certs"]
        for key, value in member.options.items():
            words += ["--set", f"{key}={toml(value)}"]
        for key, value in member.settings.items():
            words += [f"--{key}", value]
        if member.remembers:
            words += ["--state", state]
        if not (member.remembers and state.exists()):
            births.append(sent)
        return words

    def kill(self, party: str) -> None:
        """With kill -9; it is dead when this returns."""
        if party == "broker":
            os.kill(self.broker.pid, signal.SIGKILL)
            wait_until(lambda: not self.broker.running, "the broker is dead")
        else:
            self._processes[party].kill()
            self._processes[party].join()

    def pid(self, party: str) -> int:
        return self._processes[party].pid

    @property
    def done(self) -> int:
        """Steps that the hub has written down so far."""
        file = self.out / STEPS
        return file.stat().st_size // (8 * self._width) if file.exists() else 0

    def present(self, step: int) -> np.ndarray:
        """Who took part in a step that is written down."""
        row = np.fromfile(self.out / STEPS, count=self._width, offset=8 * self._width * step)
        return row[self._flags].astype(bool) if len(row) == self._width else np.zeros(len(self.members), dtype=bool)

    def wait_for(self, step: int) -> None:
        wait_until(lambda: self.done >= step or not self.alive("hub"), f"step {step}")
        assert self.alive("hub"), self.said("hub")

    def pause(self, rng) -> None:
        """For a random part of a step or two."""
        time.sleep(rng.uniform(0.0, 0.03))

    def wait_for_everybody(self) -> int:
        """Until a step that began after this call has all agents in it, or the run is over. Returns that step."""
        now = self.done + 1

        def everybody() -> bool:
            done = self.done
            return (done > now and self.present(done - 1).all()) or not self.alive("hub")

        wait_until(everybody, "everybody is back")
        return self.done - 1

    def wait_until_away(self, name: str) -> None:
        """Until a step from now on has gone on without an agent."""
        seen, place = self.done, list(self.members).index(name)

        def away() -> bool:
            nonlocal seen
            while seen < self.done:
                seen += 1
                if not self.present(seen - 1)[place]:
                    return True
            return False

        wait_until(away, f"{name} is away")

    def alive(self, party: str) -> bool:
        return self._processes[party].is_alive()

    def said(self, party: str) -> str:
        log = self.folder / f"{party}.log"
        return log.read_text() if log.exists() else ""

    def hurry(self) -> None:
        """Kill the hub once more, and let it go on as fast as it can."""
        self.kill("hub")
        self._more = ["--set", "hub.pace=0"]
        self.start("hub")

    def finish(self):
        """The run's record, once it is complete."""
        while self.alive("hub"):
            before = self.done
            wait_until(lambda before=before: not self.alive("hub") or self.done != before, f"a step after {before}")
        assert self._processes["hub"].exitcode == 0, self.said("hub")[-2000:]
        return read_record(self.out)

    def assert_equal_to_one_process(self, record) -> None:
        """The record against a run in this process with the same absences and births."""
        stream, arrays = self.stream, record.arrays
        assert len(arrays["forecasts"]) == len(stream.targets)
        np.testing.assert_array_equal(arrays["targets"], stream.targets)
        births = [set().union(*map(births_in, logs)) for logs in self._births.values()]
        makes = [lambda name=name: self.members[name].agent(name, self.folder) for name in self.members]
        settings = {"game": self.config.game, "y_dim": stream.targets.shape[1], "start": stream.start, "seed": 3}
        settings |= dict(self.config.federation)
        expected = replayed(
            makes, arrays["present"], births, stream.inputs, stream.targets, settings, arrays["fell_back"]
        )
        assert np.isfinite(expected.forecasts).all()
        for name, value in (("agents", expected.agents), ("weights", expected.weights)):
            different = np.flatnonzero((arrays[name] != value).reshape(len(value), -1).any(1))
            assert not different.size, f"{name} from step {different[0]} on; births {births}"
        np.testing.assert_array_equal(arrays["forecasts"], expected.forecasts)


def wait_until(condition, what: str, seconds: float = LONG) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, f"waited {seconds:g} s until {what}"
        time.sleep(0.002)


def _toml(document: dict) -> str:
    plain = [f"{key} = {toml(value)}" for key, value in document.items() if not isinstance(value, dict)]
    for name, table in document.items():
        if isinstance(table, dict):
            plain += [f"[{name}]", *(f"{key} = {toml(value)}" for key, value in table.items())]
    return "\n".join([*plain, ""])
