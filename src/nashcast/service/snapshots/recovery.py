"""The starting point of a stream's computation: the newest sound snapshot, or the beginning."""

from __future__ import annotations

from typing import NamedTuple

from nashcast.errors import NashcastError
from nashcast.service.journal.reader import StreamReader
from nashcast.service.journal.schema import JournalDamaged
from nashcast.service.snapshots.folders import check_snapshot
from nashcast.service.streams.settings import ServeSettings
from nashcast.service.workers.factory import Made
from nashcast.service.workers.live import Live


class Start(NamedTuple):
    """live: the state at entry `seq`, whose checksum is `chain`.   step: the snapshot's step, None for the beginning.

    damage: descriptions of newer, damaged snapshots.
    """

    live: Live
    seq: int
    chain: int
    step: int | None
    damage: list[str]


def start_from(reader: StreamReader, made: Made, serve: ServeSettings) -> Start:
    damage: list[str] = []
    end, _ = reader.end()
    for snapshot in reader.snapshots():
        if snapshot["seq"] > end:
            raise JournalDamaged(
                f"{reader.folder}: there is a snapshot of entry {snapshot['seq']}, but the journal ends at {end}: "
                "entries that were accepted are missing."
            )
        live = Live(made, serve)
        try:
            live.load(check_snapshot(reader.folder, snapshot))
        except NashcastError as error:
            damage.append(f"{error} An older one is used.")
            continue
        return Start(live, snapshot["seq"], snapshot["chain"], snapshot["step"], damage)
    seq, chain = reader.beginning()
    if seq:
        raise JournalDamaged(
            f"{reader.folder}: no snapshot can be read, and the journal no longer goes back to the first step. "
            "Put a copy of the whole folder back."
        )
    return Start(Live(made, serve), 0, chain, None, damage)
