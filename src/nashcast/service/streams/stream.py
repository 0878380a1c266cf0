"""A stream in the front process: its settings, its position in the journal, and its worker's last report."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from nashcast.service.http.sse import Feed
from nashcast.service.journal.entries import OBSERVATION, Entry
from nashcast.service.journal.stream_journal import StreamJournal
from nashcast.service.streams.settings import ServedConfig

LOADING, LIVE, FAILED = "loading", "live", "failed"
# Targets in a stream's sparkline, and recent entries buffered for event readers.
SPARK, RECENT = 48, 200


class Stream:
    """document, source, folder: origin of its settings.   api: whether it was created over HTTP.

    state: loading, live or failed (reason in `why`).   computed: position of the last computed entry.
    epoch: number of restarts; reports of earlier epochs are discarded.
    """

    def __init__(
        self, journal: StreamJournal, name: str, config: ServedConfig, document: dict[str, Any], *, names: list[str],
        api: bool,
    ):  # fmt: skip
        self.journal, self.id, self.name = journal, journal.id, name
        self.config, self.document, self.names, self.api = config, document, names, api
        self.state, self.why, self.epoch = LOADING, "", 0
        self.computed = 0
        self.step: int | None = None
        self.standing: bytes | None = None
        self.summary: dict[str, Any] | None = None
        self.replayed, self.from_step = 0, None
        self.at: float | None = None
        self.spark: deque[float | None] = deque(maxlen=SPARK)
        self.recent: deque[Entry] = deque(maxlen=RECENT)
        self.feed: Feed | None = None
        self.waiters: list[tuple[int, asyncio.Future]] = []
        self.unwritable: str | None = None
        self.worker = 0

    @property
    def source(self) -> str:
        return self.config.federation.source

    @property
    def folder(self) -> Path:
        return self.config.federation.folder

    @property
    def behind(self) -> int:
        """Approximate number of entries in the journal that are not computed yet."""
        return max(0, self.journal.last - self.computed)

    def accepted(self, entries: list[Entry]) -> None:
        """Record that these entries are in the journal."""
        for entry in entries:
            if entry.kind == OBSERVATION:
                self.spark.append(None if entry.y is None else float(entry.y[0]))
                self.at = entry.at
        if self.feed is not None and self.feed.readers:
            self.recent.extend(entries)

    def remembered(self, targets: list[tuple[float, bytes | None]]) -> None:
        for at, y in targets:
            self.spark.append(None if y is None else float(np.frombuffer(y, "<f8")[0]))
            self.at = at

    def fail(self, why: str) -> None:
        self.state, self.why = FAILED, why

    def wake(self) -> None:
        """Wake requests whose forecast is available or can no longer be computed."""
        rest = []
        for seq, future in self.waiters:
            if seq <= self.computed or self.state == FAILED:
                if not future.done():
                    future.set_result(None)
            else:
                rest.append((seq, future))
        self.waiters = rest

    def wake_all(self) -> None:
        """Wake every waiting request: the service stops and computes nothing more."""
        for _, future in self.waiters:
            if not future.done():
                future.set_result(None)
        self.waiters = []
