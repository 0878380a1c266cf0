"""Sort posted observations and labels into new ones, duplicates, and those that contradict the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nashcast.errors import NashcastError
from nashcast.service.journal.entries import LABEL, OBSERVATION, Entry
from nashcast.service.journal.stream_journal import StreamJournal


class Conflict(NashcastError):
    """A post contradicts the journal. code: machine-readable reason."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code


class Item(NamedTuple):
    """One observation or late label as posted. where: its name in error messages."""

    where: str
    kind: int
    step: int | None
    key: str | None
    x: np.ndarray | None
    y: np.ndarray | None
    time: float | None = None


class Receipt(NamedTuple):
    """first, last: range of the posted steps.   accepted: number of new ones.   duplicates: number accepted before."""

    first: int
    last: int
    accepted: int
    duplicates: int


class Intake:
    """Entries of one group, in order, not yet in the journal. A job is accepted as a whole or not at all."""

    def __init__(self, journal: StreamJournal, at: float):
        self._journal, self._at = journal, at
        self._step, self._seq = journal.step, journal.seq
        self._by_step: dict[tuple[int, int], Entry] = {}
        self._by_key: dict[str, Entry] = {}
        self.entries: list[Entry] = []

    def add(self, items: Sequence[Item]) -> Receipt:
        before = (self._step, self._seq, len(self.entries))
        steps, accepted = [], 0
        try:
            for item in items:
                entry = self._known(item)
                if entry is None:
                    entry = self._new(item)
                    accepted += 1
                steps.append(entry.step)
        except BaseException:
            self._step, self._seq, count = before
            for entry in self.entries[count:]:
                del self._by_step[entry.kind, entry.step]
                self._by_key.pop(entry.key or "", None)
            del self.entries[count:]
            raise
        return Receipt(min(steps), max(steps), accepted, len(items) - accepted)

    def _known(self, item: Item) -> Entry | None:
        """The entry that this item repeats, or None."""
        if item.kind == LABEL:
            return self._known_label(item)
        entry = None
        if item.key is not None:
            entry = self._by_key.get(item.key) or self._journal.find_key(item.key)
            if entry is not None and (item.step not in (None, entry.step) or not entry.same_content(item.x, item.y)):
                raise Conflict(
                    "key_taken",
                    f"{item.where}.key: got {item.key!r}, which step {entry.step} has with another step or other "
                    "numbers. Give every observation its own key.",
                )
        if entry is None and item.step is not None and self._step is not None and item.step <= self._step:
            entry = self._find(OBSERVATION, item.step)
            if entry is None:
                raise self._too_old(item, item.step)
            # An observation stays the same when its label arrives later.
            if not entry.same_content(item.x, item.y) or item.key not in (None, entry.key):
                raise Conflict(
                    "step_taken",
                    f"{item.where}.step: got {item.step}, which was accepted with other numbers or another key. "
                    f"The next step is {self._step + 1}; post a missing target to labels.",
                )
        return entry

    def _known_label(self, item: Item) -> Entry | None:
        assert item.step is not None
        if self._step is None or item.step > self._step:
            last = "no observation yet" if self._step is None else f"the last observation is of step {self._step}"
            raise Conflict(
                "no_such_step", f"{item.where}.step: got {item.step}, but there is {last}. Post the observation first."
            )
        observed = self._find(OBSERVATION, item.step)
        if observed is None:
            raise self._too_old(item, item.step)
        known = observed if observed.y is not None else self._find(LABEL, item.step)
        if known is not None and not known.same_content(known.x, item.y):
            raise Conflict(
                "label_known",
                f"{item.where}.y: got another target than the one that step {item.step} has. Known targets "
                "cannot be changed.",
            )
        return known

    def _new(self, item: Item) -> Entry:
        step = item.step
        if item.kind == OBSERVATION:
            expected = self._step if self._step is None else self._step + 1
            if step is None:
                step = 0 if expected is None else expected
            elif expected is not None and step != expected:
                raise Conflict(
                    "wrong_step", f"{item.where}.step: got {step}, but the next step is {expected}. Post it first."
                )
            if expected is None and item.y is None:
                raise Conflict(
                    "no_start",
                    f"{item.where}.y: got no target in the first observation. Begin with one whose target is known: "
                    "forecasts start there.",
                )
            self._step = step
        assert step is not None
        self._seq += 1
        entry = Entry(self._seq, item.kind, step, item.key, item.x, item.y, self._at, item.time)
        self.entries.append(entry)
        self._by_step[item.kind, step] = entry
        if item.key is not None:
            self._by_key[item.key] = entry
        return entry

    def _find(self, kind: int, step: int) -> Entry | None:
        return self._by_step.get((kind, step)) or self._journal.find(kind, step)

    def _too_old(self, item: Item, step: int) -> Conflict:
        return Conflict(
            "too_old",
            f"{item.where}.step: got {step}, older than the oldest stored step, {self._journal.first_step()}. "
            f"The next step is {self._step + 1 if self._step is not None else 0}.",
        )
