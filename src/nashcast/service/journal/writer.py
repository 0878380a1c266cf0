"""The writer thread of the journal. Pending jobs of all streams are committed together."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from nashcast.errors import InvalidInput, NashcastError
from nashcast.service.journal.entries import Entry
from nashcast.service.journal.journal import Journal, Recorded
from nashcast.service.journal.schema import JournalUnwritable
from nashcast.service.streams.intake import Conflict, Intake, Item, Receipt
from nashcast.service.streams.placement import Groups, GroupTooLarge, LogAway
from nashcast.service.streams.stream import Stream

logger = logging.getLogger("nashcast.service")
# Largest number of observations per commit, and of waiting observations.
GROUP, WAITING = 2000, 20_000
# Forecasts that may wait while the disk is full; older ones are recomputed at the next start.
UNWRITTEN = 10_000


class Busy(NashcastError):
    """Too many observations are waiting."""


class Failed(NashcastError):
    """The requested result cannot be computed; the message says why."""


class Job(NamedTuple):
    """Items for a stream, a worker's results for it, or a function call."""

    future: Any
    stream: Stream | None = None
    items: Sequence[Item] = ()
    results: dict[str, Any] | None = None
    call: Callable[[], Any] | None = None


Answers = list[tuple[Any, Any]]


def deliver_here(answers: Answers) -> None:
    """Set each future to its result or exception."""
    for future, answer in answers:
        if future is None or future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)


class Writer(threading.Thread):
    """append: writes entries durably to the journal.

    committed: called in this thread with each stream and its new entries once they are durable.

    published: called in this thread with results once they are recorded.
    deliver: called in this thread with futures and their answers; futures of an event loop are set there.
    """

    def __init__(
        self, journal: Journal, append: Callable[[Groups], None],
        committed: Callable[[list[tuple[Stream, list[Entry]]]], None],
        published: Callable[[list[tuple[Stream, dict[str, Any]]]], None],
        deliver: Callable[[Answers], None] = deliver_here, new_future: Callable[[], Any] = Future,
    ):  # fmt: skip
        super().__init__(name="nashcast journal", daemon=True)
        self._journal, self._append = journal, append
        self._committed, self._published = committed, published
        self._deliver, self._new_future = deliver, new_future
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._waiting, self._lock = 0, threading.Lock()
        self._stopping = False
        self._unwritten: list[Recorded] = []
        self.unwritable: str | None = None
        self.failed: str | None = None
        self.counts = {"accepted": 0, "duplicates": 0, "conflicts": 0, "groups": 0, "snapshots": 0}
        self.seconds = {"commit": 0.0, "record": 0.0}
        self.beat = time.monotonic()

    @property
    def waiting(self) -> int:
        """Number of observations and labels that are not committed yet."""
        return self._waiting

    def post(self, stream: Stream, items: Sequence[Item]) -> Any:
        """A future of the receipt and the position of the last entry, set once new entries are durable."""
        with self._lock:
            if self._waiting + len(items) > WAITING:
                raise Busy(
                    f"{self._waiting} observations wait to be committed. Slow down, and post it again in a second."
                )
            self._waiting += len(items)
        return self._add(Job(self._new_future(), stream, items))

    def results(self, stream: Stream, message: dict[str, Any]) -> None:
        """Record, then publish a worker's report on a stream."""
        self._add(Job(None, stream, results=message))

    def ask(self, call: Callable[[], Any]) -> Any:
        """A future of the result of a function, called by the writer thread between two groups."""
        return self._add(Job(self._new_future(), call=call))

    def stop(self) -> None:
        """Finish pending jobs, then end."""
        self._jobs.put(None)

    def _add(self, job: Job) -> Any:
        self._jobs.put(job)
        return job.future

    def run(self) -> None:
        while not self._stopping:
            jobs = self._gather()
            self.beat = time.monotonic()
            try:
                self._do(jobs)
            except BaseException as error:
                self.failed = f"the journal's thread has stopped: {type(error).__name__}: {error}"
                logger.critical("%s", self.failed, exc_info=error)
                self._deliver([(job.future, Failed(self.failed)) for job in jobs])

    def _gather(self) -> list[Job]:
        """Pending jobs; a call is the last of its group, so that it runs after all jobs before it."""
        found: list[Job] = []
        count = 0
        while count < GROUP:
            try:
                job = self._jobs.get_nowait() if found else self._jobs.get()
            except queue.Empty:
                break
            if job is None:
                self._stopping = True
                break
            found.append(job)
            count += max(len(job.items), 1)
            if job.call is not None:
                break
        with self._lock:
            self._waiting -= sum(len(job.items) for job in found)
        return found

    def _do(self, jobs: list[Job]) -> None:
        if self.failed is not None:
            raise Failed(self.failed)
        self._commit([job for job in jobs if job.items])
        self._record([job for job in jobs if job.results is not None])
        for job in jobs:
            if job.call is not None:
                try:
                    answer = job.call()
                except Exception as error:
                    answer = error
                self._deliver([(job.future, answer)])

    def _commit(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        began, at = time.perf_counter(), time.time()
        intakes: dict[int, Intake] = {}
        streams: dict[int, Stream] = {}
        answers: Answers = []
        for job in jobs:
            stream = job.stream
            assert stream is not None
            intake = intakes.get(stream.id)
            if intake is None:
                intake = intakes[stream.id] = Intake(stream.journal, at)
                streams[stream.id] = stream
            try:
                answers.append((job.future, intake.add(job.items)))
            except Conflict as conflict:
                self.counts["conflicts"] += 1
                answers.append((job.future, conflict))
        new = [(streams[key], intake.entries) for key, intake in intakes.items() if intake.entries]
        if new:
            try:
                self._append(new)
            except GroupTooLarge as error:
                self._split(jobs, error)
                return
            except (JournalUnwritable, LogAway) as error:
                # Nothing of the group is in the journal; earlier entries are unchanged.
                if isinstance(error, JournalUnwritable):
                    self._trouble(error)
                refused = [(future, error if _new(answer) else answer) for future, answer in answers]
                seqs = [job.stream.journal.last if job.stream else 0 for job in jobs]
                self._deliver(
                    [
                        (future, (answer, seq) if isinstance(answer, Receipt) else answer)
                        for (future, answer), seq in zip(refused, seqs, strict=True)
                    ]
                )
                return
            self.unwritable = None
            self.counts["groups"] += 1
            self._committed(new)
        self.counts["accepted"] += sum(len(entries) for _, entries in new)
        self.counts["duplicates"] += sum(answer.duplicates for _, answer in answers if isinstance(answer, Receipt))
        self.seconds["commit"] += time.perf_counter() - began
        ends = {key: stream.journal.last for key, stream in streams.items()}
        self._deliver(
            [
                (job.future, (answer, ends[job.stream.id]) if isinstance(answer, Receipt) and job.stream else answer)
                for job, (_, answer) in zip(jobs, answers, strict=True)
            ]
        )

    def _split(self, jobs: list[Job], error: GroupTooLarge) -> None:
        """Commit half of the posts at a time; one post is stored as a whole or not at all."""
        if len(jobs) > 1:
            half = len(jobs) // 2
            self._commit(jobs[:half])
            self._commit(jobs[half:])
            return
        self._deliver([(jobs[0].future, InvalidInput("body", str(error), "Post fewer observations at once."))])

    def _record(self, jobs: list[Job]) -> None:
        current = [
            (job.stream, job.results)
            for job in jobs
            if job.stream is not None and job.results is not None and job.results["epoch"] == job.stream.epoch
        ]
        if not current:
            return
        began = time.perf_counter()
        self._unwritten += [
            Recorded(stream.id, message["rows"], message["events"])
            for stream, message in current
            if message["rows"] or message["events"]
        ]
        try:
            if self._unwritten:
                self._journal.record(self._unwritten)
                self._unwritten = []
        except JournalUnwritable as error:
            self._trouble(error)
            del self._unwritten[:-UNWRITTEN]
        self.seconds["record"] += time.perf_counter() - began
        self._published(current)

    @property
    def recorded(self) -> bool:
        """Whether every reported forecast is in the journal."""
        return not self._unwritten

    def _trouble(self, error: JournalUnwritable) -> None:
        if self.unwritable != str(error):
            logger.error("%s", error)
        self.unwritable = str(error)


def _new(answer: Receipt | Exception) -> bool:
    return isinstance(answer, Receipt) and answer.accepted > 0
