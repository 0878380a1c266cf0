"""Everything of the service but HTTP and processes: the journal's thread and a worker's core, in this process."""

from concurrent.futures import wait
from pathlib import Path

import numpy as np

from nashcast.service.journal.entries import LABEL, OBSERVATION
from nashcast.service.journal.journal import Journal
from nashcast.service.journal.reader import JournalReader
from nashcast.service.journal.writer import Failed, Writer
from nashcast.service.streams.intake import Item
from nashcast.service.streams.placement import OneMachine
from nashcast.service.streams.publishing import keep_snapshot
from nashcast.service.streams.registry import read_file, registered
from nashcast.service.streams.service import Service
from nashcast.service.streams.stream import FAILED
from nashcast.service.workers.worker import WorkerCore
from support.service.served import FILE, federation_file, series


class Running:
    """One stream; what is posted is computed before the next thing is done."""

    def __init__(self, folder: Path, text: str = FILE, *, accept_changes: bool = False):
        self.folder, self.file = folder / "journal", federation_file(folder, text)
        declared = read_file(self.file)
        self.config = declared.config
        self.journal = Journal(self.folder)
        try:
            (self.stream,) = registered(self.journal, [declared])
            if self.stream.state == FAILED:
                raise Failed(self.stream.why)
        except BaseException:
            self.journal.close()
            raise
        self.service = Service(OneMachine([declared]), self.folder, tokens=None)
        self.service.journal = self.journal
        append = lambda groups: self.journal.append([(stream.journal, entries) for stream, entries in groups])  # noqa: E731
        self.writer = self.service.writer = Writer(self.journal, append, lambda new: None, lambda reported: None)
        self.writer.start()
        self.core = WorkerCore(self.folder, self._hear, lambda: [{"do": "kept", "stream": self.stream.id}])
        self.core.handle(
            {
                "do": "own", "stream": self.stream.id, "epoch": 0, "document": declared.document,
                "source": str(self.file), "folder": str(folder), "seq": 0, "accept_changes": accept_changes,
            }
        )  # fmt: skip
        self.own = self.core._streams.get(self.stream.id)
        try:
            self.compute()
        except BaseException:
            self.close(in_order=False)
            raise

    @property
    def computing(self):
        return self.own.computing

    @property
    def live(self):
        return self.own.computing.live

    def compute(self):
        """Everything that the journal has."""
        if self.stream.state != FAILED:
            self.core.handle({"do": "go", "streams": {str(self.stream.id): self.stream.journal.last}})
            while self.core.work():
                pass
            self.ask(lambda: None)  # all is recorded
        if self.stream.state == FAILED:
            raise Failed(self.stream.why)

    def _hear(self, message):
        if message["say"] == "results":
            self.writer.results(self.stream, message)
        elif message["say"] == "snapshot":
            self.ask(lambda: keep_snapshot(self.service, self.stream, message))
        elif message["say"] == "failed":
            self.stream.fail(message["why"])

    def observe(self, values, first=None, missing=(), x=None):
        steps = [None] * len(values) if first is None else range(first, first + len(values))
        jobs = []
        for step, value in zip(steps, values, strict=True):
            y = None if step in missing else np.array([value])
            item = Item("observation", OBSERVATION, step, None, np.array([value]), y)
            jobs.append(self.writer.post(self.stream, [item]))
        wait(jobs)
        self.compute()
        return [job.result()[0] for job in jobs]

    def label(self, step, value):
        job = self.writer.post(self.stream, [Item("label", LABEL, step, None, None, np.array([value]))])
        receipt, _ = job.result()
        self.compute()
        return receipt

    def ask(self, call):
        return self.writer.ask(call).result()

    def close(self, *, in_order=True):
        """in_order: with a last snapshot; without, as if killed."""
        if in_order and self.stream.state != FAILED:
            self.core.save_all(float("inf"))
        self.writer.stop()
        self.writer.join()
        self.core.close()
        self.journal.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def forecasts(folder: Path, agents: int = 5) -> dict[int, list[float]]:
    reader = JournalReader(folder)
    try:
        rows = reader.named("federation").outcomes(0, 10**9, agents, 1)
        return {outcome.step: outcome.forecast.tolist() for outcome in rows}
    finally:
        reader.close()


def filled(folder: Path, steps: int = 130, **options) -> Path:
    """A journal with missing and late labels, and snapshots on the way."""
    running, values = Running(folder, **options), series(steps)
    running.observe(values[:60], 0, missing=(20, 30, 58))
    running.label(20, values[20])
    running.label(58, values[58])
    for start in range(60, steps, 7):
        running.observe(values[start : start + 7], start, missing=(start + 2,))
        if start + 2 < steps:
            running.label(start + 2, values[start + 2])
    running.close(in_order=False)
    return running.folder
