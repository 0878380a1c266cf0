"""Everything of the service but HTTP, in this process."""

from concurrent.futures import wait
from pathlib import Path

import numpy as np

from nashcast.service.journal.entries import LABEL, OBSERVATION
from nashcast.service.journal.journal import Journal
from nashcast.service.journal.reader import JournalReader
from nashcast.service.streams.factory import make_federation
from nashcast.service.streams.intake import Item
from nashcast.service.streams.recovery import recover
from nashcast.service.streams.settings import load_served
from nashcast.service.streams.worker import Worker

from served import FILE, federation_file, series


class Running:
    """Everything of the service but HTTP."""

    def __init__(self, folder: Path, text: str = FILE, **options):
        self.folder, self.file = folder / "journal", federation_file(folder, text)
        self.config = load_served(self.file)
        self.made = make_federation(self.config)
        self.journal = Journal(self.folder, self.config.identity(), self.config.shape(self.made.names))
        try:
            self.recovered = recover(self.journal, self.made, self.config.serve, **options)
        except BaseException:
            self.journal.close()
            raise
        self.worker = Worker(self.journal, self.recovered.live, self.made, self.config.serve)
        self.worker.start()

    def observe(self, values, first=None, missing=()):
        steps = [None] * len(values) if first is None else range(first, first + len(values))
        jobs = []
        for step, value in zip(steps, values, strict=True):
            y = None if step in missing else np.array([value])
            jobs.append(self.worker.post([Item("observation", OBSERVATION, step, None, np.array([value]), y)]))
        wait(jobs)
        return [job.result() for job in jobs]

    def label(self, step, value):
        return self.worker.post([Item("label", LABEL, step, None, None, np.array([value]))]).result()

    def ask(self, call):
        return self.worker.ask(call).result()

    def close(self, *, in_order=True):
        if in_order:
            self.worker.stop()
        else:  # as if killed: no last snapshot
            self.worker._saved_at = self.worker.live.step
            self.worker.stop()
        self.journal.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def forecasts(folder: Path, agents: int = 5) -> dict[int, list[float]]:
    reader = JournalReader(folder)
    try:
        return {outcome.step: outcome.forecast.tolist() for outcome in reader.outcomes(0, 10**9, agents, 1)}
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
