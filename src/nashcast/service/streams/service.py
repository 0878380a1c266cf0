"""The running service: streams, the writer thread, the workers that compute, and the data that requests read."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zlib import crc32

from nashcast.service.events.delivery import Delivery
from nashcast.service.events.event_readers import EventReaders
from nashcast.service.http.access.tokens import TokenFile
from nashcast.service.http.metrics import Answers
from nashcast.service.journal.entries import Entry
from nashcast.service.journal.journal import Journal, Recorded
from nashcast.service.journal.reader import JournalReader
from nashcast.service.journal.schema import JournalUnwritable
from nashcast.service.journal.writer import Answers as Delivered
from nashcast.service.journal.writer import Writer, deliver_here
from nashcast.service.streams.limits import DEFAULT_LIMITS, Limits
from nashcast.service.streams.placement import Placement
from nashcast.service.streams.publishing import announce, go, keep_snapshot, publish
from nashcast.service.streams.settings import ServedConfig
from nashcast.service.streams.stream import FAILED, LIVE, LOADING, SPARK, Stream
from nashcast.service.workers.factory import has_foreign_code
from nashcast.service.workers.pool import Worker
from nashcast.service.workers.spawner import Spawner

logger = logging.getLogger("nashcast.service")
# Number of workers that may die while computing a stream before the stream counts as the cause.
DEATHS = 3
# Seconds without a heartbeat after which a worker with pending work counts as stuck.
SILENCE_S = 30.0


class Service:
    """Call `open` before threads start, `start` and `stop` in an event loop, then `close`.

    after_start: called once the service runs, concurrently with requests.
    """

    def __init__(
        self, placement: Placement, folder: str | Path, *, tokens: TokenFile | None,
        limits: Limits = DEFAULT_LIMITS, workers: int = 1, accept_changes: bool = False,
        after_start: Callable[[Service], Coroutine[Any, Any, None]] | None = None,
    ):  # fmt: skip
        self.placement, self.folder, self.tokens, self.limits = placement, Path(folder), tokens, limits
        self._workers, self._accept_changes, self._after_start = workers, accept_changes, after_start
        self.answers = Answers()
        self.began = time.time()
        self.streams: dict[str, Stream] = {}
        self._by_id: dict[int, Stream] = {}
        self._deaths: dict[int, int] = {}
        self._tickets: dict[int, asyncio.Future] = {}
        self._ticket = 0
        self.events = EventReaders(limits.readers)
        self.event_counts: Counter[str] = Counter()
        self.deliveries: Sequence[Delivery] = ()

    def open(self) -> None:
        """Do everything that may fail: open the journal and register its streams."""
        # Forked first: SQLite must not be open in a process that forks.
        self._spawner = Spawner(self.folder)
        try:
            self._open()
        except BaseException:
            self._spawner.close()
            raise

    def _open(self) -> None:
        self.journal = Journal(self.folder)
        try:
            self.reader = JournalReader(self.folder)
            self.placement.open(self)
        except BaseException:
            self.journal.close()
            raise

    def add(self, stream: Stream) -> None:
        self.streams[stream.name], self._by_id[stream.id] = stream, stream

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.writer = Writer(
            self.journal, self.placement.append, self.committed, self._published, self._deliver,
            self._loop.create_future,
        )  # fmt: skip
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="nashcast reading")
        self.writer.start()
        self.pool: list[Worker] = []
        self._running: list[asyncio.Task] = []
        for _ in range(self._workers):
            self._start_worker()
        await self.placement.start(self)
        if self._after_start is not None:
            self._later = asyncio.create_task(self._after_start(self))

    def _start_worker(self) -> Worker:
        worker = Worker(len(self.pool), self._spawner, self._hear, self._worker_started, self._worker_died)
        self.pool.append(worker)
        self._running.append(asyncio.create_task(worker.run()))
        return worker

    def place(self, stream: Stream) -> None:
        """Assign the stream to a worker by its name; remote agents or foreign code get a dedicated worker."""
        if stream.config.hub is not None or has_foreign_code(stream.config):
            stream.worker = self._start_worker().number
        else:
            stream.worker = crc32(stream.name.encode()) % self._workers
            self._own(stream)

    async def stop(self) -> None:
        self.events.stop()
        await self.placement.stop()
        for delivery in self.deliveries:
            delivery.stop()
        for stream in self.streams.values():
            stream.state = LOADING if stream.state == LIVE else stream.state
            stream.wake_all()
        pairs = zip(self.pool, self._running, strict=True)
        await asyncio.gather(*(worker.stop(task) for worker, task in pairs))
        self.writer.stop()
        await self._loop.run_in_executor(None, self.writer.join, 5.0)
        self._reading.shutdown(wait=False)

    def close(self) -> None:
        if not self.writer.is_alive():
            try:
                self.journal.log("stop", "in order")
            except JournalUnwritable as error:
                logger.error("%s", error)
        self._spawner.close()
        self.reader.close()
        self.journal.close()

    async def read(self, call: Callable[[], Any]) -> Any:
        """Run a function that reads the journal, and return its result."""
        return await self._loop.run_in_executor(self._reading, call)

    def not_ready(self) -> str | None:
        """Why no observation can be accepted now; None if it can."""
        return self.writer.failed or self.writer.unwritable or self.placement.not_ready()

    def stuck(self) -> list[int]:
        """Numbers of the workers that have pending work and sent no heartbeat for `SILENCE_S`."""
        now = time.monotonic()
        return [
            worker.number
            for worker in self.pool
            if now - worker.sign.heard > SILENCE_S
            and any(stream.behind and stream.worker == worker.number for stream in self.streams.values())
        ]

    async def computed(self, stream: Stream, seq: int, seconds: float) -> None:
        """Wait until an entry has been computed, at most `seconds`."""
        if seq <= stream.computed or stream.state == FAILED or seconds <= 0:
            return
        future = self._loop.create_future()
        stream.waiters.append((seq, future))
        try:
            async with asyncio.timeout(seconds):
                await future
        except TimeoutError:
            stream.waiters = [each for each in stream.waiters if each[1] is not future]

    # Messages to workers.

    def _own(self, stream: Stream) -> None:
        if stream.state == FAILED:
            return
        stream.state = LOADING
        self.pool[stream.worker].tell(
            {
                "do": "own",
                "stream": stream.id,
                "epoch": stream.epoch,
                "document": stream.document,
                "source": stream.source,
                "folder": str(stream.folder.resolve()),
                "seq": stream.journal.last,
                "accept_changes": self._accept_changes,
            }
        )

    def begin_anew(self, stream: Stream) -> None:
        """Reload the stream from the changed journal. Called by the writer thread."""
        stream.epoch += 1  # set here, so that no older report is recorded afterwards

        def own() -> None:
            stream.state, stream.why, stream.computed, stream.standing = LOADING, "", 0, None
            stream.spark.clear()
            stream.remembered(self.reader.stream(stream.id).last_targets(SPARK))
            self._deaths.pop(stream.id, None)
            self._own(stream)

        self._loop.call_soon_threadsafe(own)

    def take_in(self, stream: Stream) -> None:
        """Serve a stream that is now in the journal. Called by the writer thread."""
        self._loop.call_soon_threadsafe(lambda: (self.add(stream), self.place(stream)))

    def changed(self, stream: Stream, config: ServedConfig, document: dict[str, Any], names: list[str]) -> None:
        """The stream's settings changed in the journal. Called by the writer thread."""
        stream.config, stream.document, stream.names = config, document, names
        self.begin_anew(stream)

    def forget_stream(self, stream: Stream, why: str = "it was removed") -> None:
        """Stop serving the stream here. Called in the event loop."""
        del self.streams[stream.name], self._by_id[stream.id]
        stream.fail(why)
        stream.wake()
        self.events.drop(stream)
        self.pool[stream.worker].tell({"do": "drop", "stream": stream.id})

    def _worker_started(self, number: int) -> None:
        for stream in self.streams.values():
            if stream.worker == number:
                self._own(stream)

    def _worker_died(self, number: int, stream_id: int) -> None:
        stream = self._by_id.get(stream_id)
        if stream is None:
            return
        self._deaths[stream_id] = self._deaths.get(stream_id, 0) + 1
        if self._deaths[stream_id] >= DEATHS:
            self._fail(stream, f"{DEATHS} worker processes died while they computed it")

    def forgive(self, stream: Stream) -> None:
        """Reset the count of worker deaths: the stream was computed up to its end."""
        self._deaths.pop(stream.id, None)

    def _fail(self, stream: Stream, why: str) -> None:
        stream.fail(why)
        stream.wake()
        event = (time.time(), stream.step, "failed", why)
        announce(self, stream, [event])
        self.writer.ask(lambda: self.journal.record([Recorded(stream.id, [], [event])]))

    # Messages from workers.

    def _hear(self, number: int, message: dict[str, Any]) -> None:
        if message["say"] == "saved":
            ticket = self._tickets.pop(message["ticket"], None)
            if ticket is not None and not ticket.done():
                ticket.set_result(message["snapshot"])
            return
        stream = self._by_id.get(message.get("stream", 0))
        if stream is None or message["epoch"] != stream.epoch:
            return
        if message["say"] == "results":
            self.writer.results(stream, message)
        elif message["say"] == "summary":
            stream.summary = message["summary"]
        elif message["say"] == "snapshot":
            asked = self.writer.ask(lambda: keep_snapshot(self, stream, message))
            if stream.config.hub is not None:
                asked.add_done_callback(lambda _: self.pool[number].tell({"do": "kept", "stream": stream.id}))
        elif message["say"] == "failed":
            self._fail(stream, message["why"])

    async def save(self, stream: Stream) -> dict[str, Any] | None:
        """A snapshot of the present state, written by the stream's worker."""
        self._ticket += 1
        future = self._tickets[self._ticket] = self._loop.create_future()
        self.pool[stream.worker].tell({"do": "save", "stream": stream.id, "ticket": self._ticket})
        async with asyncio.timeout(30):
            return await future

    # Called in the writer thread.

    def committed(self, new: list[tuple[Stream, list[Entry]]]) -> None:
        self._loop.call_soon_threadsafe(go, self, new)

    def _published(self, reported: list[tuple[Stream, dict[str, Any]]]) -> None:
        self._loop.call_soon_threadsafe(publish, self, reported)

    def _deliver(self, answers: Delivered) -> None:
        self._loop.call_soon_threadsafe(deliver_here, answers)
