"""Compute one stream: read journal entries in order, learn, forecast, and write snapshots.

The result is a function of the journal. Entries computed before a restart are replayed first and their forecasts are
compared with the recorded ones; new entries follow.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from nashcast.service.events.kinds import AGENT_BACK, AGENT_GONE
from nashcast.service.journal.entries import LABEL, Entry, Outcome
from nashcast.service.journal.reader import StreamReader
from nashcast.service.journal.schema import JournalDamaged, JournalUnwritable
from nashcast.service.snapshots.folders import write_snapshot
from nashcast.service.snapshots.recovery import start_from
from nashcast.service.streams.settings import ServeSettings
from nashcast.service.workers.factory import Made

SNAPSHOT_EVERY = 250
# State and reason of each agent, by name.
States = dict[str, tuple[str, str | None]]


class Batch(NamedTuple):
    """Results of some entries. rows: forecasts to record.   events: (at, step, kind, text).

    pairs: each entry with the forecast after it, None where the next entry's forecast covers both.
    """

    rows: list[tuple]
    events: list[tuple]
    pairs: list[tuple[Entry, Outcome | None]]


class Snapshot(NamedTuple):
    seq: int
    step: int
    chain: int
    folder: str
    files: str


class Computing:
    """save: called with each written snapshot, after all earlier forecasts have been reported.

    accept_changes: continue where replay gives other numbers than were recorded, e.g. on another processor.
    """

    def __init__(
        self, reader: StreamReader, made: Made, serve: ServeSettings,
        save: Callable[[Snapshot], None] = lambda snapshot: None, *, accept_changes: bool = False,
    ):  # fmt: skip
        self._reader, self._made, self._serve, self._save = reader, made, serve, save
        self._accept = accept_changes
        self._every = serve.snapshot_every or (SNAPSHOT_EVERY if made.repeats else 1)
        found = start_from(reader, made, serve)
        self.live, self.seq, self._chain, self.from_step = found.live, found.seq, found.chain, found.step
        self.done = found.seq  # the last entry with a forecast
        self._saved_at = found.step
        # Entries up to here were accepted before this start, so their forecasts may be recorded.
        self.known_to, self.last_step = reader.end()
        self.replayed = 0
        self._changed = False
        self.unwritable: str | None = None
        self.first_events = [(time.time(), None, "damage", text) for text in found.damage]

    @property
    def folder(self) -> Path:
        return self._reader.folder

    def begin(self) -> Batch:
        """The current forecast at the starting point."""
        batch = Batch([], self.first_events, [])
        self.first_events = []
        elsewhere = self._made.elsewhere
        if self.from_step is not None:
            self._check(self.live.predict(), batch)
        if elsewhere is not None and self.known_to == self.seq and elsewhere.settle():
            outcome = self.live.predict()
            batch.rows.append(outcome.row())
            text = "ahead of the last observation, and therefore reset"
            batch.events.append((time.time(), self.live.step, "agents", text))
        return batch

    def advance(self, limit: int, seconds: float = 0.05) -> Batch:
        """Learn and forecast from the next entries: at most `limit`, and no new one after `seconds`."""
        batch, end = Batch([], [], []), time.perf_counter() + seconds
        entries = list(self._reader.after(self.seq, self._chain, limit))
        for i, (entry, chain) in enumerate(entries):
            following = entries[i + 1][0] if i + 1 < len(entries) else self._next(entry)
            self._step(entry, chain, following, batch)
            if time.perf_counter() > end and not _together(entry, following):
                break
        return batch

    def _step(self, entry: Entry, chain: int, following: Entry | None, batch: Batch) -> None:
        before, fell_back = self.live.states(), self.live.outcome is not None and self.live.outcome.fell_back
        self.live.learn(entry)
        self.seq, self._chain = entry.seq, chain
        self.replayed += entry.seq <= self.known_to
        if _together(entry, following):
            # Late labels accepted together are learnt one by one and followed by one forecast.
            batch.pairs.append((entry, None))
            return
        if self._due():
            self._report_first(batch)
            self.take_snapshot()
        outcome = self.live.predict()
        self.done = entry.seq
        noticed = self.live.watch.drain()
        if self._check(outcome, batch):
            # Events are recorded with their forecast: if the forecast is recorded, so are its events.
            # Events found during replay carry the time of their step, so that they raise no alarm now.
            when = entry.at if entry.time is None else min(entry.at, entry.time)
            batch.events.extend((when, entry.step, *each) for each in noticed)
            batch.events.extend((entry.at, outcome.step, *each) for each in changes(before, self.live.states()))
            if outcome.fell_back and not fell_back:
                text = f"{self.live.fell_back[:300]}: the greedy step is used"
                batch.events.append((entry.at, outcome.step, "fallback", text))
        batch.pairs.append((entry, outcome))

    def _next(self, entry: Entry) -> Entry | None:
        """The next entry, if it may belong to the same group."""
        if entry.kind != LABEL:
            return None
        return next((each for each, _ in self._reader.after_unchecked(entry.seq)), None)

    def _due(self) -> bool:
        step = self.live.step
        assert step is not None
        # The first is taken at once, to find out whether the stream can be saved.
        return self._saved_at is None or step - self._saved_at >= self._every or self._every == 1

    # Set by the reporting process: forecasts before a snapshot are never recomputed, so they are reported first.
    report: Callable[[Batch], None] = staticmethod(lambda batch: None)

    def _report_first(self, batch: Batch) -> None:
        self.report(Batch(batch.rows[:], batch.events[:], batch.pairs[:]))
        for part in batch:
            part.clear()

    def take_snapshot(self) -> Snapshot | None:
        """Write a snapshot. It only shortens the next start: if the disk is full, computing continues."""
        assert self.live.step is not None
        try:
            found = write_snapshot(self.folder, self._reader.id, self.live, self.seq)
        except JournalUnwritable as error:
            self.unwritable = str(error)
            return None
        self.unwritable, self._saved_at = None, self.live.step
        snapshot = Snapshot(self.seq, self.live.step, self._chain, *found)
        self._save(snapshot)
        return snapshot

    @property
    def unsaved(self) -> bool:
        return self.live.step is not None and self._saved_at != self.live.step

    def _check(self, outcome: Outcome, batch: Batch) -> bool:
        """Compare with the recorded forecast, if any. Returns whether to record this one."""
        row = outcome.row()
        recorded = self._reader.forecast_row(outcome.step) if self.seq <= self.known_to else None
        # Compared only with a row of the same entry: rows of other entries are older or newer forecasts.
        if recorded == row or (recorded is not None and recorded[1] > outcome.seq):
            return False
        if recorded is not None and recorded[1] == outcome.seq:
            self._differs(outcome.step, batch)
        batch.rows.append(row)
        return True

    def _differs(self, step: int, batch: Batch) -> None:
        if self._made.repeats and not self._accept:
            raise JournalDamaged(
                f"{self.folder}: recomputed, the forecast of step {step} is not the one recorded. The record is "
                "damaged, or this machine or release computes differently. To continue with the recomputed "
                "forecasts, start with --accept-changes."
            )
        if not self._changed:
            self._changed = True
            text = "recomputed forecasts differ from the recorded ones"
            batch.events.append((time.time(), step, "changed", text))


def _together(entry: Entry, following: Entry | None) -> bool:
    """Whether two late labels were accepted in one group, which the journal stores atomically."""
    return entry.kind == LABEL and following is not None and following.kind == LABEL and following.at == entry.at


def changes(before: States, now: States) -> list[tuple[str, str]]:
    """Kind and text of log lines on agents that became absent, are gone, or returned."""
    found = []
    for name, (state, why) in now.items():
        was = before.get(name, ("in", None))[0]
        if state == "gone" and was != "gone":
            found.append((AGENT_GONE, f"{name}: {(why or '')[:300]}"))
        elif state not in ("in", "gone") and was == "in":
            found.append(("agent out", f"{name}: {(why or '')[:300]}"))
        elif state == "in" and was != "in":
            found.append((AGENT_BACK if was == "gone" else "agent in", name))
    return found
