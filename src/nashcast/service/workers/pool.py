"""The worker pool in the front process: connections, heartbeats, and replacement of dead workers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from nashcast.service.workers import frames
from nashcast.service.workers.spawner import Born, Spawner

logger = logging.getLogger("nashcast.service")
# Seconds before a dead worker is replaced: doubled with each consecutive death, up to the second value.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 5.0
# Lifetime in seconds after which the count of consecutive deaths is reset.
SETTLED_S = 30.0
STOP_S = 10.0


class Sign(NamedTuple):
    """heard: time of the worker's last message, by the monotonic clock.   seconds: CPU seconds used."""

    pid: int
    heard: float
    seconds: float


class Worker:
    """One slot of the pool: its process may be replaced.

    hear: called with each message.   started: called when a process has started, to send it its streams.
    died: called with the stream that the process was working on, 0 for none.
    """

    def __init__(
        self, number: int, spawner: Spawner, hear: Callable[[int, dict], None], started: Callable[[int], None],
        died: Callable[[int, int], None],
    ):  # fmt: skip
        self.number, self._spawner = number, spawner
        self._hear, self._started, self._died = hear, started, died
        self._born: Born | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._stopping, self.deaths = False, 0
        self.sign = Sign(0, time.monotonic(), 0.0)

    @property
    def alive(self) -> bool:
        return self._writer is not None

    async def run(self) -> None:
        """Run a process and replace it whenever it dies, until stopped."""
        pause = FIRST_PAUSE_S
        while not self._stopping:
            began = time.monotonic()
            try:
                await self._life()
            except OSError as error:
                logger.critical("no worker can be started: %s", error)
            if self._stopping:
                return
            self.deaths += 1
            pause = FIRST_PAUSE_S if time.monotonic() - began > SETTLED_S else min(2 * pause, LONGEST_PAUSE_S)
            await asyncio.sleep(pause)

    async def _life(self) -> None:
        born = self._born = self._spawner.spawn()
        reader, writer = await asyncio.open_connection(sock=born.line)
        self._writer = writer
        self.sign = Sign(born.pid, time.monotonic(), 0.0)
        decoder = frames.Decoder()
        try:
            self._started(self.number)
            while data := await reader.read(1 << 18):
                self.sign = self.sign._replace(heard=time.monotonic())
                for message in decoder.feed(data):
                    if message["say"] == "beat":
                        self.sign = self.sign._replace(seconds=message["seconds"])
                    else:
                        self._hear(self.number, message)
        except (ConnectionError, frames.BadFrame) as error:
            logger.error("worker %d: %s", self.number, error)
        finally:
            self._writer = None
            writer.close()
            born.kill()
            stream = born.stream()
            born.close()
            self._born = None
            if not self._stopping:
                logger.error("worker %d (process %d) died; it is replaced", self.number, born.pid)
                self._died(self.number, stream)

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message (in the event loop). A worker that is not running receives its streams when it starts."""
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(frames.encode(message))

    async def stop(self, running: asyncio.Task) -> None:
        """Stop the process, by force after STOP_S."""
        self._stopping = True
        self.tell({"do": "stop", "seconds": STOP_S - 2.0})
        with suppress(asyncio.TimeoutError, TimeoutError):
            await asyncio.wait_for(asyncio.shield(running), STOP_S)
        if self._born is not None:
            self._born.kill()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
