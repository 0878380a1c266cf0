"""Real processes: brokers of one NATS cluster, machines of `nashcast serve --cluster`, producers, kills."""

import asyncio
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np

from nashcast import Client
from nashcast.client import ServiceRefused
from nashcast.remote.broker.running.program import server_program
from nashcast.service.cluster.broker import Broker
from nashcast.service.cluster.log_messages import Added, decode
from nashcast.service.cluster.settings import read_settings
from nashcast.service.streams.placement import LogAway

FILE = "seed = 7\n[serve]\nx_dim = 1\ny_dim = 1\nsnapshot_every = 40\n"
# Seconds in which a process must have come up, or the cluster have recovered.
PATIENCE_S = 60.0


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Brokers:
    """One nats-server, or several of one cluster; each keeps its port and store over restarts."""

    def __init__(self, folder: Path, count: int = 1):
        self._folder, self.count = folder, count
        ports = free_ports(3 * count)
        self._ports, self._routes, self._monitors = ports[:count], ports[count : 2 * count], ports[2 * count :]
        self.processes: list[subprocess.Popen | None] = [None] * count
        for i in range(count):
            self.start(i)

    @property
    def url(self) -> str:
        return ",".join(f"nats://127.0.0.1:{port}" for port in self._ports)

    def start(self, i: int) -> None:
        command = [server_program(), "-js", "-sd", str(self._folder / f"store-{i}"), "-a", "127.0.0.1"]
        command += ["-p", str(self._ports[i]), "-m", str(self._monitors[i]), "-n", f"broker-{i}"]
        if self.count > 1:
            routes = ",".join(f"nats-route://127.0.0.1:{port}" for port in self._routes)
            command += [
                "--cluster_name",
                "test",
                "--cluster",
                f"nats://127.0.0.1:{self._routes[i]}",
                "--routes",
                routes,
            ]
        with (self._folder / f"broker-{i}.log").open("ab") as log:
            self.processes[i] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, i: int) -> None:
        process = self.processes[i]
        assert process is not None
        process.kill()
        process.wait()

    def wait(self) -> None:
        """Until every broker has all that the others have."""
        for port in self._monitors:
            until(lambda port=port: _healthy(port), f"broker at {port}")

    def close(self) -> None:
        for process in self.processes:
            if process is not None:
                process.kill()
                process.wait()


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as answer:
            return json.load(answer)["status"] == "ok"
    except OSError:
        return False


def until(condition, what: str, seconds: float = PATIENCE_S) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
        time.sleep(0.05)


class Machine:
    """`nashcast serve --cluster`; workers=0 for one that only answers and forwards."""

    def __init__(self, folder: Path, streams: Path, brokers: Brokers, *options: str, workers: int = 1):
        folder.mkdir(exist_ok=True)
        self._log = (folder / "log").open("a")
        replicas = min(3, brokers.count)
        command = [sys.executable, "-m", "nashcast", "serve", str(streams), "--json", "--no-auth", "--port", "0"]
        command += ["--journal", str(folder / "journal"), "--cluster", brokers.url, "--replicas", str(replicas)]
        command += ["--workers", str(workers), *options]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment)
        self.folder = folder

    def wait(self) -> "Machine":
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"it did not start: {(self.folder / 'log').read_text()[-2000:]}"
        self.url = json.loads(line)["url"]
        return self

    def client(self, **options) -> Client:
        return Client(self.url, **{"retries": 0, "timeout": 20.0, **options})

    def kill(self, how: int = signal.SIGKILL) -> None:
        self.process.send_signal(how)
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(25)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()


def stream_files(folder: Path, names: list[str], text: str = FILE) -> Path:
    folder.mkdir()
    for name in names:
        (folder / f"{name}.toml").write_text(text)
    return folder


class Producer(threading.Thread):
    """One stream's observations in order, each posted until it is acknowledged with its forecast.

    Every tenth has no target, which is posted two steps later.   forecasts: of every post.
    done: when the last acknowledged post was begun.
    """

    def __init__(self, url: str, name: str, pace: float = 0.15):
        super().__init__(daemon=True)
        self.url, self.name, self.pace = url, name, pace
        self.forecasts: dict[tuple[str, int], dict] = {}
        self.steps, self.tries, self.done = 0, 0, 0.0
        self.stopping, self.failure = False, None
        self._client = Client(url, retries=0, timeout=20.0)

    def run(self):
        try:
            while not self.stopping:
                self.post(self.steps)
                time.sleep(self.pace)
        except BaseException as error:
            self.failure = error
        self._client.close()

    def post(self, step: int) -> None:
        stream = self._client.stream(self.name)
        row = {"step": step, "x": value(self.name, step - 1), "y": None if step % 10 == 5 else value(self.name, step)}
        self._acknowledged("observation", step, lambda: stream.post([row], wait=10.0))
        self.steps += 1
        if step % 10 == 7:
            late = {"step": step - 2, "y": value(self.name, step - 2)}
            self._acknowledged("label", step - 2, lambda: stream.post_labels([late], wait=10.0))

    def _acknowledged(self, kind: str, step: int, action) -> None:
        while True:
            began = time.monotonic()
            try:
                self.tries += 1
                found = action()["forecast"]
                if found is not None:
                    self.forecasts[kind, step] = {name: found[name] for name in ("step", "path", "weights")}
                    self.done = began
                    return
            except ServiceRefused as refused:
                if refused.status not in (0, 503):
                    raise
            time.sleep(0.05)


def value(name: str, step: int) -> float:
    """A wave with noise, the same whenever it is asked for."""
    noise = np.random.default_rng([sum(map(ord, name)), max(step, 0)]).normal()
    return round(float(np.sin(step / 9) + 0.1 * noise), 4)


async def logged(url: str) -> dict[str, list[tuple[int, int]]]:
    """Kind and step of every entry in the log, by stream, read without the service."""
    for _ in range(10):
        with contextlib.suppress(LogAway):
            return await _logged(url)
        await asyncio.sleep(1.0)
    return await _logged(url)


async def _logged(url: str) -> dict[str, list[tuple[int, int]]]:
    broker = Broker(read_settings(url))
    await broker.open()
    await broker.set_up()
    found: dict[str, list[tuple[int, int]]] = {}
    try:
        for partition in range(broker.partitions):
            end, before = await broker.end(partition), 0
            async for batch in broker.read(partition, 0, end) if end else _nothing():
                for place, data in batch:
                    for record in decode(data, before):
                        if isinstance(record, Added):
                            found.setdefault(record.stream, []).extend((e.kind, e.step) for e in record.entries)
                    before = place
    finally:
        await broker.close()
    return found


async def _nothing():
    for nothing in ():
        yield nothing


class Kills:
    """Three brokers, two machines that compute and one that does not, to which producers post."""

    def __init__(self, folder: Path, streams: int = 6, seed: int = 1):
        self.folder, self._random = folder, random.Random(seed)
        names = [f"stream-{i}" for i in range(streams)]
        self._files = stream_files(folder / "streams", names)
        self.brokers = Brokers(folder, 3)
        self.brokers.wait()
        self.machines = [self._machine(0).wait(), self._machine(1).wait()]
        self.front = Machine(folder / "front", self._files, self.brokers, workers=0).wait()
        self.producers = [Producer(self.front.url, name) for name in names]
        self.takeovers: list[tuple[str, float]] = []

    def _machine(self, i: int) -> Machine:
        return Machine(self.folder / f"machine-{i}", self._files, self.brokers)

    def run(self, kills: int, told=lambda *_: None) -> None:
        for producer in self.producers:
            producer.start()
        self._wait_for_posts(time.monotonic())
        for k in range(kills):
            victim = self._random.choice(["machine 0", "machine 1", "broker"])
            time.sleep(self._random.uniform(0.2, 1.5))
            self.takeovers.append((victim, self._kill(victim)))
            told(k + 1, *self.takeovers[-1])
        for producer in self.producers:
            producer.stopping = True
        for producer in self.producers:
            producer.join()

    def _kill(self, victim: str) -> float:
        """Seconds until every stream had a post acknowledged that was begun after the kill."""
        i = self._random.randrange(3) if victim == "broker" else int(victim[-1])
        if victim == "broker":
            self.brokers.kill(i)
        else:
            self.machines[i].kill()
        at = time.monotonic()
        self._wait_for_posts(at)
        seconds = time.monotonic() - at
        if victim == "broker":
            self.brokers.start(i)
        else:
            self.machines[i].close()
            self.machines[i] = self._machine(i).wait()
        self.brokers.wait()
        self._wait_for_posts(time.monotonic() + 1.0)
        return seconds

    def _wait_for_posts(self, at: float) -> None:
        def all_posted() -> bool:
            for producer in self.producers:
                if producer.failure is not None:
                    raise producer.failure
            return all(producer.done > at for producer in self.producers)

        until(all_posted, "posts are acknowledged again")

    def close(self) -> None:
        for producer in self.producers:
            producer.stopping = True
        for machine in (self.front, *self.machines):
            machine.close()
        self.brokers.close()


def undisturbed(url: str, producer: Producer) -> Producer:
    """The same posts to a service that nothing happens to."""
    other = Producer(url, producer.name)
    for step in range(producer.steps):
        other.post(step)
    other._client.close()
    return other
