"""A stream as the front knows it: its settings, its place in the journal, and what was last reported of it."""

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
# Targets in the small picture of a stream, and entries that wait for readers of events.
SPARK, RECENT = 48, 200


class Stream:
    """document, source, folder: what its settings were read from.   api: whether it was made over HTTP.

    state: loading, live or failed; `why` it failed.   computed: place of the last entry that was computed.
    epoch: how often it was started anew; reports of before are not for it.
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
        """Entries that are in the journal and not computed yet, about."""
        return max(0, self.journal.last - self.computed)

    def accepted(self, entries: list[Entry]) -> None:
        """These are in the journal now."""
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
        """Tell those who wait for a forecast that is there now, or never will be."""
        rest = []
        for seq, future in self.waiters:
            if seq <= self.computed or self.state == FAILED:
                if not future.done():
                    future.set_result(None)
            else:
                rest.append((seq, future))
        self.waiters = rest

    def wake_all(self) -> None:
        """The service stops: nothing more is computed."""
        for _, future in self.waiters:
            if not future.done():
                future.set_result(None)
        self.waiters = []
