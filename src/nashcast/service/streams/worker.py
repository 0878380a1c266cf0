"""The one thread that writes the journal and computes. Whatever waits when it looks is committed together."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from nashcast.errors import NashcastError
from nashcast.service.journal.entries import Entry, Outcome
from nashcast.service.journal.journal import Journal
from nashcast.service.journal.schema import JournalUnwritable
from nashcast.service.streams.factory import Made
from nashcast.service.streams.intake import Conflict, Intake, Item, Receipt
from nashcast.service.streams.jobs import Answers, Busy, Failed, Job, Published, changes, deliver_here
from nashcast.service.streams.live import Live
from nashcast.service.streams.settings import ServeSettings
from nashcast.service.streams.snapshots import check_snapshot, load_snapshot, take_snapshot, tidy

logger = logging.getLogger("nashcast.service")
# Observations committed together at most, and observations that may wait in all.
GROUP, WAITING = 500, 20_000
SNAPSHOT_EVERY = 1000


class Worker(threading.Thread):
    """publish: called in this thread after each group, before its jobs are answered.

    deliver: called in this thread with futures and their answers; futures of an event loop are set there.
    """

    def __init__(
        self, journal: Journal, live: Live, made: Made, serve: ServeSettings,
        publish: Callable[[Published], None] = lambda published: None,
        deliver: Callable[[Answers], None] = deliver_here, new_future: Callable[[], Any] = Future,
    ):  # fmt: skip
        super().__init__(name="nashcast arithmetic", daemon=True)
        self._journal, self.live, self._made, self._serve = journal, live, made, serve
        self._publish, self._deliver, self._new_future = publish, deliver, new_future
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._waiting, self._lock = 0, threading.Lock()
        self._every = serve.snapshot_every or (SNAPSHOT_EVERY if made.repeats else 1)
        self._saved_at = live.step
        self._stopping = False
        self._unwritten: dict[int, Outcome] = {}
        self._unwritten_events: list[tuple] = []
        self.failed: str | None = None
        self.unwritable: str | None = None
        self.counts = {"accepted": 0, "duplicates": 0, "conflicts": 0, "groups": 0, "snapshots": 0}
        self.seconds = {"commit": 0.0, "compute": 0.0}

    @property
    def waiting(self) -> int:
        """Observations and labels that are not yet looked at."""
        return self._waiting

    def post(self, items: Sequence[Item]) -> Any:
        """A future: the receipt and the forecast that then stands, once what was new is durable and learnt."""
        return self._add(Job(items, None, self._new_future()))

    def ask(self, call: Callable[[], Any]) -> Any:
        """A future: what a function returns when called between two groups in the thread that computes."""
        return self._add(Job((), call, self._new_future()))

    def stop(self) -> None:
        """Finish what waits, take a snapshot, end."""
        self._jobs.put(None)
        self.join()

    def _add(self, job: Job) -> Any:
        size = max(len(job.items), 1)
        with self._lock:
            if self._waiting + size > WAITING:
                raise Busy(
                    f"{self._waiting} observations wait to be computed. Slow down, and post it again in a second."
                )
            self._waiting += size
        self._jobs.put(job)
        return job.future

    def run(self) -> None:
        while not self._stopping:
            for group in self._gather():
                try:
                    self._do(group)
                except BaseException as error:
                    self._fail(error)
                    self._deliver([(job.future, Failed(str(self.failed))) for job in group])
        if self.failed is None and self.live.step is not None and self._saved_at != self.live.step:
            self._try_snapshot(self._journal.seq, self._journal.chain)

    def _gather(self) -> list[list[Job]]:
        """Groups of jobs that wait now; a call is a group by itself."""
        groups: list[list[Job]] = [[]]
        job, count = self._jobs.get(), 0
        while True:
            if job is None:
                self._stopping = True
                break
            if job.call is not None:
                groups += [[job], []]
            else:
                groups[-1].append(job)
            count += max(len(job.items), 1)
            if count >= GROUP:
                break
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
        with self._lock:
            self._waiting -= count
        return [group for group in groups if group]

    def _do(self, group: list[Job]) -> None:
        if self.failed is not None:
            raise Failed(self.failed)
        if group[0].call is not None:
            self._call(group[0])
            return
        intake = Intake(self._journal, time.time())
        answers: Answers = []
        for job in group:
            try:
                answers.append((job.future, intake.add(job.items)))
            except Conflict as conflict:
                self.counts["conflicts"] += 1
                answers.append((job.future, conflict))
        if intake.entries:
            try:
                chains = self._commit(intake.entries)
            except JournalUnwritable as error:
                # Nothing of the group is there, and what was posted before is as it was.
                self.unwritable = str(error)
                logger.error("%s", error)
                refused = [(each, error if _new(answer) else answer) for each, answer in answers]
                self._deliver([(each, self._with_outcome(answer)) for each, answer in refused])
                return
            self._compute(intake.entries, chains)
        self.counts["accepted"] += len(intake.entries)
        self.counts["duplicates"] += sum(answer.duplicates for _, answer in answers if isinstance(answer, Receipt))
        self._deliver([(each, self._with_outcome(answer)) for each, answer in answers])

    def _with_outcome(self, answer: Receipt | Exception) -> Any:
        return (answer, self.live.outcome) if isinstance(answer, Receipt) else answer

    def _call(self, job: Job) -> None:
        assert job.call is not None
        try:
            answer = job.call()
        except Exception as error:
            # What leaves the state in doubt has said so by `_fail`; the rest is between who asked and the answer.
            answer = error
        self._deliver([(job.future, answer)])

    def _commit(self, entries: list[Entry]) -> list[int]:
        began = time.perf_counter()
        chains = self._journal.append(entries)
        self.unwritable = None
        self.counts["groups"] += 1
        self.seconds["commit"] += time.perf_counter() - began
        return chains

    def _compute(self, entries: list[Entry], chains: list[int]) -> None:
        began = time.perf_counter()
        steps, events = [], []
        for entry, chain in zip(entries, chains, strict=True):
            before = self.live.outcome
            self.live.learn(entry)
            # At the end of a group is often enough, but for agents elsewhere: they cannot go back with the service.
            if (entry is entries[-1] or self._made.elsewhere is not None) and self._due():
                # Forecasts of before a snapshot are not computed again, so they are written first.
                self._try_record()
                self._try_snapshot(entry.seq, chain)
            outcome = self.live.predict()
            steps.append((entry, outcome))
            changed = changes(before, outcome, entry.at, self.live.fell_back)
            events += changed
            self._unwritten[outcome.step] = outcome
            self._unwritten_events += changed
        self._try_record()
        self.seconds["compute"] += time.perf_counter() - began
        self._publish(Published(steps, events, steps[-1][1], entries[-1].at))

    def _due(self) -> bool:
        assert self.live.step is not None
        return self._saved_at is None or self.live.step - self._saved_at >= self._every or self._every == 1

    def _try_snapshot(self, seq: int, chain: int) -> None:
        """A snapshot only shortens the next start: without room for one, the service goes on."""
        if self._unwritten:
            return
        try:
            take_snapshot(self._journal, self.live, seq, chain)
            self.counts["snapshots"] += 1
            self._saved_at = self.live.step
            tidy(self._journal)
            self._forget()
        except JournalUnwritable as error:
            self.unwritable = str(error)
            logger.error("%s", error)

    def _try_record(self) -> None:
        """Forecasts that cannot be written now are written later or computed again, from what is durable."""
        try:
            self._journal.record(self._unwritten.values(), self._unwritten_events)
            self._unwritten, self._unwritten_events = {}, []
        except JournalUnwritable as error:
            self.unwritable = str(error)
            logger.error("%s", error)

    def _forget(self) -> None:
        if self._serve.retain is None or self.live.step is None:
            return
        automatic = [each["seq"] for each in self._journal.snapshots() if each["name"] is None]
        if automatic:
            self._journal.forget(self.live.step - self._serve.retain, min(automatic))

    def save_point(self, name: str) -> dict:
        """To be asked, not called from another thread."""
        if self.live.step is None:
            raise Conflict("nothing_to_save", "there is no observation yet. Post one first.")
        if any(each["name"] == name for each in self._journal.snapshots()):
            raise Conflict("name_taken", f"name: got {name!r}, which is taken. Delete that save point first.")
        take_snapshot(self._journal, self.live, self._journal.seq, self._journal.chain, name)
        self._journal.log("save point", name, self.live.step)
        return {"name": name, "step": self.live.step}

    def restore(self, name: str) -> dict:
        """To be asked. Everything after the save point is withdrawn, in memory and in the journal."""
        snapshot = self._named(name)
        if not self._journal.holds(snapshot["seq"]):
            raise Conflict("too_old", f"name: got {name!r}, whose step {snapshot['step']} the journal no longer holds.")
        try:
            check_snapshot(self._journal, snapshot)
            live, outcome = self._from(snapshot)
        except NashcastError as error:
            raise Conflict("damaged", f"{error} Nothing was changed.") from error
        now = time.time()
        withdrawn = self._journal.withdraw(snapshot["seq"], snapshot["chain"], snapshot["step"])
        self.live, self._saved_at = live, snapshot["step"]
        events = [(now, live.step, "restore", f"{name}: {withdrawn} entries after step {live.step} withdrawn")]
        self._unwritten, self._unwritten_events = {outcome.step: outcome}, [*self._unwritten_events, *events]
        self._try_record()
        with suppress(JournalUnwritable):
            tidy(self._journal)
        self._publish(Published([], events, outcome, now))
        return {"name": name, "step": live.step, "withdrawn": withdrawn}

    def _from(self, snapshot: dict) -> tuple[Live, Outcome]:
        elsewhere = self._made.elsewhere
        try:
            live = load_snapshot(self._journal, snapshot, self._made, self._serve)
            if elsewhere is not None:
                elsewhere.renew()
            return live, live.predict()
        except NashcastError as error:
            if elsewhere is not None:  # there is one hub, and it is no longer where it was
                self._fail(error)
                raise RuntimeError(self.failed) from error
            raise

    def drop(self, name: str) -> dict:
        """To be asked."""
        snapshot = self._named(name)
        self._journal.drop_snapshots([snapshot["id"]])
        tidy(self._journal)
        return {"name": name, "step": snapshot["step"]}

    def _named(self, name: str) -> dict:
        found = next((each for each in self._journal.snapshots() if each["name"] == name), None)
        if found is None:
            raise Conflict(
                "no_such_save_point", f"name: got {name!r}, which is no save point. GET /v1/savepoints lists them."
            )
        return found

    def _fail(self, error: BaseException) -> None:
        if self.failed is None:
            self.failed = f"the service has stopped: {type(error).__name__}: {error}"
            logger.critical("%s", self.failed, exc_info=error)


def _new(answer: Receipt | Exception) -> bool:
    return isinstance(answer, Receipt) and answer.accepted > 0
