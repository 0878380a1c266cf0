"""Start-up: the newest sound snapshot, then every entry after it again, compared with what was recorded."""

from __future__ import annotations

from typing import NamedTuple

from nashcast.errors import NashcastError
from nashcast.service.journal.entries import Outcome
from nashcast.service.journal.journal import Journal
from nashcast.service.journal.schema import JournalDamaged
from nashcast.service.streams.factory import Made
from nashcast.service.streams.live import Live
from nashcast.service.streams.settings import ServeSettings
from nashcast.service.streams.snapshots import load_snapshot, tidy

# Outcomes held back before they are compared and written: a late label may still replace the newest.
_CHUNK = 1000


class Recovered(NamedTuple):
    """snapshot_step: where it started from, None from nothing.   replayed: entries computed again."""

    live: Live
    snapshot_step: int | None
    replayed: int


def recover(journal: Journal, made: Made, serve: ServeSettings, *, accept_changes: bool = False) -> Recovered:
    """accept_changes: go on where replay gives other numbers than the first time, as another processor may."""
    live, seq, chain, start = _newest(journal, made, serve)
    replay = _Replay(journal, made, accept_changes)
    if start is not None:
        replay.add(live.predict())
    replayed = 0
    for entry in journal.after(seq, chain):
        live.learn(entry)
        replay.add(live.predict())
        replayed += 1
    replay.finish()
    if live.step != journal.step:
        raise JournalDamaged(
            f"{journal.folder}: the last observation is of step {journal.step}, but the state is that of step "
            f"{live.step}: entries are missing."
        )
    tidy(journal)
    return Recovered(live, start, replayed)


def _newest(journal: Journal, made: Made, serve: ServeSettings) -> tuple[Live, int, int, int | None]:
    for snapshot in journal.snapshots():
        if snapshot["seq"] > journal.seq:
            raise JournalDamaged(
                f"{journal.folder}: there is a snapshot of entry {snapshot['seq']}, but the journal ends at "
                f"{journal.seq}: entries that were accepted are missing."
            )
        try:
            live = load_snapshot(journal, snapshot, made, serve)
        except NashcastError as error:
            journal.log("damage", f"{error} An older one is used.", snapshot["step"])
            continue
        return live, snapshot["seq"], snapshot["chain"], snapshot["step"]
    seq, chain = journal.beginning()
    if seq:
        raise JournalDamaged(
            f"{journal.folder}: no snapshot can be read, and the journal no longer goes back to the first step. "
            "Put a copy of the whole folder back."
        )
    return Live(made, serve), 0, chain, None


class _Replay:
    """Outcomes of a replay against those recorded; the missing ones are written."""

    def __init__(self, journal: Journal, made: Made, accept_changes: bool):
        self._journal, self._made, self._accept = journal, made, accept_changes
        self._outcomes: dict[int, Outcome] = {}
        self._changed: int | None = None

    def add(self, outcome: Outcome) -> None:
        self._outcomes[outcome.step] = outcome
        if len(self._outcomes) > _CHUNK:
            newest = self._outcomes.pop(outcome.step)
            self.finish()
            self._outcomes[newest.step] = newest

    def finish(self) -> None:
        to_write = []
        for outcome in self._outcomes.values():
            recorded, row = self._journal.forecast_row(outcome.step), outcome.row()
            if recorded == row:
                continue
            to_write.append(outcome)
            # A row of an earlier entry is older than this forecast, not another one.
            if recorded is not None and recorded[1] == outcome.seq:
                self._differs(outcome.step)
        self._outcomes.clear()
        if to_write:
            self._journal.record(to_write)

    def _differs(self, step: int) -> None:
        if self._made.repeats and not self._accept:
            raise JournalDamaged(
                f"{self._journal.folder}: computed again, the forecast of step {step} is not the one recorded. It is "
                "damaged, or this machine or release computes otherwise. To go on with the forecasts of now, start "
                "with --accept-changes."
            )
        if self._changed is None:
            self._changed = step
            self._journal.log("changed", "computed again, forecasts differ from those recorded", step)
