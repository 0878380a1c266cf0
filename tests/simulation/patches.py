"""Where the production code meets the outside: clock, connection, loop, randomness and files, each behind one name."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from types import SimpleNamespace
from unittest.mock import patch

from nashcast.federation.saving import double_buffered_file
from nashcast.remote.hub import bus
from nashcast.remote.hub import hub as hub_module
from nashcast.remote.hub.joint import joint_answers, joint_federation
from nashcast.remote.hub.lookback import input_store
from nashcast.remote.owner import joint_owner, joint_runner, runner
from simulation.network import Broker, Client
from simulation.scheduler import PROCESS, Crashed, HubLoop, Scheduler, ThreadsafeResult


def _torn(write):
    """A write to a file, in which the process may be killed."""

    def written(fd: int, data: bytes, *where: int) -> int:
        process = PROCESS.get()
        if process is None or process.tear is None:
            return write(fd, data, *where)
        write(fd, data[: int(len(data) * process.tear)], *where)
        process.tear = None
        process.kill()
        raise Crashed

    return written


@contextmanager
def simulated(scheduler: Scheduler, broker: Broker, rng: Random, collected: list) -> Iterator[None]:
    """collected: what the hub makes of the answers to each question is added to it."""

    async def connect(url, *, name, on_reconnect=None, **_) -> Client:
        process = PROCESS.get()
        assert process is not None
        await asyncio.sleep(rng.uniform(0.001, 0.05))
        return Client(broker, name, process, on_reconnect)

    collect = joint_answers.Answers.collect

    def recorded(self, replies, ask, shapes, players):
        found = collect(self, replies, ask, shapes, players)
        collected.append((ask, found))
        return found

    clock = SimpleNamespace(monotonic=scheduler.time, sleep=scheduler.sleep, perf_counter=scheduler.time)
    drawn = SimpleNamespace(randbits=rng.getrandbits, token_hex=lambda size: f"{rng.getrandbits(8 * size):x}")
    files = SimpleNamespace(**{name: getattr(os, name) for name in dir(os) if not name.startswith("__")})
    files.write, files.pwrite = _torn(os.write), _torn(os.pwrite)
    with ExitStack() as stack:
        for module in (bus, hub_module, runner, joint_runner):
            stack.enter_context(patch.object(module, "time", clock))
        for module in (hub_module, runner):
            stack.enter_context(patch.object(module, "connect", connect))
        for module in (joint_federation, input_store):
            stack.enter_context(patch.object(module, "secrets", drawn))
        stack.enter_context(patch.object(joint_owner, "perf_counter", scheduler.time))
        stack.enter_context(patch.object(bus, "Loop", HubLoop))
        stack.enter_context(patch.object(double_buffered_file, "os", files))
        stack.enter_context(patch.object(asyncio, "run_coroutine_threadsafe", ThreadsafeResult))
        stack.enter_context(patch.object(joint_answers.Answers, "collect", recorded))
        stack.enter_context(patch.object(HubLoop, "scheduler", scheduler, create=True))
        yield
