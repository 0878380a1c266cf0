"""A worker process: owns streams, computes their journal entries and reports the results. One thread, no HTTP.

The front tells it which streams it owns and where the journal ends; the worker reads the entries from the journal.
A worker that starts late or replaces a dead one therefore computes the same results.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import select
import signal
import socket
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nashcast.errors import NashcastError
from nashcast.federation.views.trust import Trust
from nashcast.service.journal.reader import JournalReader
from nashcast.service.streams.settings import ServedConfig, read_served
from nashcast.service.streams.views import encoded, forecast_view, summary_view
from nashcast.service.workers import frames
from nashcast.service.workers.computing import Batch, Computing, Snapshot
from nashcast.service.workers.factory import Made, make_federation

logger = logging.getLogger("nashcast.service")
# Seconds between two heartbeats, and between two summaries of a busy stream.
BEAT_S, SUMMARY_S = 1.0, 0.5
# Seconds between two rankings of the members of a stream while the worker is busy: one takes 0.4 ms.
TRUST_S = 5.0
# Requests have priority over computing forecasts.
NICENESS = 10
# Entries of one stream computed before the next stream's turn.
TURN = 64


class OwnStream:
    """One stream of this worker."""

    def __init__(self, core: WorkerCore, message: dict[str, Any]):
        self._core, self.id, self.epoch = core, message["stream"], message["epoch"]
        self.config: ServedConfig = read_served(
            message["document"], source=message["source"], folder=Path(message["folder"])
        )
        self.made: Made = make_federation(self.config)
        self.told_to, self.summarised, self.dirty = message["seq"], 0.0, True
        self._accept = message["accept_changes"]
        self.announced = False
        self._trust: list[Trust] = []
        self._ranked = -TRUST_S
        self.computing: Computing | None = None

    def open(self) -> Batch:
        reader = self._core.reader.stream(self.id)
        computing = Computing(reader, self.made, self.config.serve, self._saved, accept_changes=self._accept)
        computing.report = self._report
        self.computing = computing
        return computing.begin()

    @property
    def behind(self) -> bool:
        return self.computing is None or self.computing.seq < self.told_to

    def work(self) -> None:
        """One turn: load the stream, or compute some pending entries."""
        if self.computing is None:
            self._report(self.open())
            return
        before = self.computing.seq
        batch = self.computing.advance(TURN)
        if self.computing.seq == before:
            # The journal has no more entries: the announced ones have been withdrawn meanwhile.
            self.told_to = before
        self._report(batch)

    def close(self) -> None:
        if self.made.elsewhere is not None:
            self.made.elsewhere.close()
        for child in self.made.children:
            child.close()

    def _saved(self, snapshot: Snapshot) -> None:
        self._core.send({"say": "snapshot", "stream": self.id, "epoch": self.epoch, **snapshot._asdict()})
        if self.made.elsewhere is not None:
            # Remote agents cannot step back, so none is called before the journal has the snapshot.
            self._core.wait_for("kept", self.id)

    def _report(self, batch: Batch) -> None:
        computing = self.computing
        assert computing is not None
        live, serve, now = computing.live, self.config.serve, time.monotonic()
        self.dirty = True
        events = batch.events
        if not self.announced and not self.behind:
            self.announced = True
            start = computing.from_step
            origin = "the beginning" if start is None else f"the snapshot of step {start}"
            text = f"from {origin}, {computing.replayed} entries replayed"
            events = [*events, (time.time(), live.step, "start", text)]
        message: dict[str, Any] = {
            "say": "results", "stream": self.id, "epoch": self.epoch, "seq": computing.done,
            "rows": batch.rows, "events": events,
            "step": live.step, "replayed": computing.replayed, "from_step": computing.from_step,
            "loaded": not self.behind, "unwritable": computing.unwritable,
        }  # fmt: skip
        if computing.done == computing.seq:
            if live.outcome is not None:
                view = forecast_view(live.outcome, live.at, self.made.names, serve, live.times)
                message["standing"] = encoded(view)
            if now - self.summarised > SUMMARY_S or not self._core.busy:
                message["summary"] = self._summary()
                self.summarised, self.dirty = now, False
        self._core.send(message)

    def _summary(self) -> dict[str, Any]:
        assert self.computing is not None
        elsewhere = self.made.elsewhere
        days = {} if elsewhere is None else elsewhere.certificate_days()
        live, now = self.computing.live, time.monotonic()
        if not self._core.busy or now - self._ranked > TRUST_S:
            self._trust, self._ranked = live.trust(), now
        return {**summary_view(live, self.config.serve, self._trust), "certificate_days": days}

    def summarise(self) -> None:
        """Send the summary that was skipped while the worker was busy."""
        if self.dirty and self.computing is not None:
            self._core.send({"say": "summary", "stream": self.id, "epoch": self.epoch, "summary": self._summary()})
            self.summarised = time.monotonic()
        self.dirty = False


class WorkerCore:
    """A worker without its socket. send: sends a message to the front.   mark: called with the stream in work."""

    def __init__(
        self, folder: Path, send: Callable[[dict], None], receive: Callable[[], list[dict]],
        mark: Callable[[int], None] = lambda stream: None,
    ):  # fmt: skip
        self.send, self._receive, self._mark = send, receive, mark
        self.reader = JournalReader(folder)
        self._streams: OrderedDict[int, OwnStream] = OrderedDict()
        self._queued: list[dict] = []
        self.stopping: float | None = None

    @property
    def busy(self) -> bool:
        return sum(stream.behind for stream in self._streams.values()) > 1

    def handle(self, message: dict[str, Any]) -> None:
        do = message["do"]
        if do == "own":
            self._own(message)
        elif do == "go":
            for key, seq in message["streams"].items():
                stream = self._streams.get(int(key))
                if stream is not None:
                    stream.told_to = max(stream.told_to, seq)
        elif do == "drop":
            stream = self._streams.pop(message["stream"], None)
            if stream is not None:
                stream.close()
        elif do == "save":
            self._save_point(message)
        elif do == "stop":
            self.stopping = time.monotonic() + message["seconds"]

    def wait_for(self, what: str, stream: int) -> None:
        """Block until this message arrives; others are queued."""
        while True:
            for message in self._receive():
                if message["do"] == what and message["stream"] == stream:
                    return
                self._queued.append(message)

    def take_messages(self, messages: list[dict]) -> None:
        waiting, self._queued = self._queued, []
        for message in [*waiting, *messages]:
            self.handle(message)

    def work(self) -> bool:
        """One turn of one stream with pending work. Returns whether there was one."""
        for stream in list(self._streams.values()):
            if stream.behind:
                self._streams.move_to_end(stream.id)
                self._mark(stream.id)
                self._guarded(stream, stream.work)
                self._mark(0)
                return True
        for stream in self._streams.values():
            stream.summarise()
        return False

    def _own(self, message: dict[str, Any]) -> None:
        former = self._streams.pop(message["stream"], None)
        if former is not None:
            former.close()
        self._mark(message["stream"])
        try:
            self._streams[message["stream"]] = OwnStream(self, message)
        except Exception as error:
            self._failed(message["stream"], message["epoch"], error)
        self._mark(0)

    def _guarded(self, stream: OwnStream, work: Callable[[], None]) -> None:
        try:
            work()
        except (ConnectionError, KeyboardInterrupt):
            raise
        except BaseException as error:
            # An exception fails only its own stream.
            self._streams.pop(stream.id, None)
            stream.close()
            self._failed(stream.id, stream.epoch, error)

    def _failed(self, stream: int, epoch: int, error: BaseException) -> None:
        text = f"{type(error).__name__}: {error}"[:2000]
        if not isinstance(error, NashcastError):
            logger.error("stream %d failed: %s", stream, text, exc_info=error)
        self.send({"say": "failed", "stream": stream, "epoch": epoch, "why": text})

    def _save_point(self, message: dict[str, Any]) -> None:
        stream = self._streams.get(message["stream"])
        found: dict[str, Any] | None = None
        if stream is not None and stream.computing is not None and stream.computing.live.step is not None:
            snapshot = stream.computing.take_snapshot()
            found = None if snapshot is None else snapshot._asdict()
        self.send({"say": "saved", "stream": message["stream"], "ticket": message["ticket"], "snapshot": found})

    def save_all(self, until: float) -> None:
        """Write snapshots of unsaved streams until the deadline; the others are recomputed at the next start."""
        for stream in self._streams.values():
            computing = stream.computing
            if computing is not None and computing.unsaved and time.monotonic() < until:
                self._guarded(stream, lambda computing=computing: computing.take_snapshot())  # type: ignore[misc]

    def close(self) -> None:
        for stream in self._streams.values():
            stream.close()
        self.reader.close()


def run(line: socket.socket, folder: Path, mark: Callable[[int], None]) -> None:
    """Run until the front sends stop or its connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.nice(NICENESS)
    decoder, waiting = frames.Decoder(), []

    def send(message: dict) -> None:
        line.sendall(frames.encode(message))

    def receive(timeout: float | None = None) -> list[dict]:
        if waiting:
            found, waiting[:] = waiting[:], []
            return found
        ready, _, _ = select.select([line], [], [], timeout)
        if not ready:
            return []
        data = line.recv(1 << 16)
        if not data:
            raise ConnectionResetError("the front is gone")
        return decoder.feed(data)

    core = WorkerCore(folder, send, receive, mark)
    # Memory allocated before the fork is shared with the other workers until it is written to.
    gc.freeze()
    beat = 0.0
    try:
        more = True
        while core.stopping is None:
            core.take_messages(receive(0.0 if more else BEAT_S))
            more = core.work()
            now = time.monotonic()
            if now - beat >= BEAT_S:
                beat = now
                used = resource.getrusage(resource.RUSAGE_SELF)
                send({"say": "beat", "pid": os.getpid(), "seconds": used.ru_utime + used.ru_stime})
        core.save_all(core.stopping)
        send({"say": "bye"})
    except ConnectionError:
        pass
    finally:
        core.close()
