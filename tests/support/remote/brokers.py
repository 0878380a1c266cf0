"""Real brokers for tests: a federation's folder, identities, and connections that remember what went wrong."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import nats

from nashcast.remote.broker.certificates import certs
from nashcast.remote.broker.certificates.keys import make_seed, read_seed
from nashcast.remote.broker.enrolling import enrolment
from nashcast.remote.broker.rules import Settings
from nashcast.remote.broker.running.server import EmbeddedBroker, connect

FEDERATION = "tide"


def free_port(host: str = "127.0.0.1") -> int:
    """For a broker that has to know its port beforehand: one that no outgoing connection is given meanwhile."""
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind((host, random.SystemRandom().randrange(20_000, 32_000)))
            return probe.getsockname()[1]


def found(folder: Path, *names: str, tls: bool = False, settings: Settings | None = None, hosts=()) -> Path:
    """A federation's folder with these agents enrolled; their seeds, and certificates in `certs`, are in it too."""
    enrolment.create(folder, FEDERATION, settings or Settings(port=free_port()))
    for name in names:
        enrolment.add(folder, name, make_seed(folder / f"{name}.seed"))
    if tls:
        certs.make(folder / "certs", *([list(hosts)] if hosts else []))
        for name in names:
            certs.make_agent(folder / "certs", name)
    return folder


def broker(folder: Path, tls: bool = False, **options) -> EmbeddedBroker:
    return EmbeddedBroker(folder, tls=folder / "certs" if tls else None, **options)


async def join(running: EmbeddedBroker, name: str, **options):
    """As hub or agent, in the way that programs do. At once or not at all, unless told otherwise."""
    tls = running.folder / "certs" if running.url.startswith("tls") else None
    options = {"seed_file": running.folder / f"{name}.seed", "tls": tls, "patience": 0.0, **options}
    return await connect(running.url, name=name, **options)


class Intruder:
    """A client with somebody's key that does not keep to the rules. errors: what the broker said to it."""

    def __init__(self, client, errors):
        self.client, self.errors = client, errors

    async def heard(self, *words: str) -> bool:
        """Whether the broker complains in these words, soon."""
        return await soon(lambda: any(all(word.lower() in said for word in words) for said in self.errors))


@asynccontextmanager
async def intruder(running: EmbeddedBroker, name: str):
    errors = []

    async def remember(error):
        errors.append(str(error).lower())

    client = await nats.connect(
        running.url, nkeys_seed_str=read_seed(running.folder / f"{name}.seed"), error_cb=remember,
        inbox_prefix=f"_INBOX_{name}", allow_reconnect=False,
    )  # fmt: skip
    try:
        yield Intruder(client, errors)
    finally:
        await client.close()


async def settle(*clients) -> None:
    """Until the broker has seen all that these have sent. Twice: the first may overtake what was written before it."""
    for client in clients:
        await client.flush()
        await client.flush()


async def soon(condition, seconds: float = 10.0) -> bool:
    """Whether it comes true within a time that is long for a machine, without waiting longer than needed."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked about does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
