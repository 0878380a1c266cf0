"""A partition's state at one message of its log: its streams and their last entries, so that takeover reads the rest.

It is read from the local journal in a transaction that began at that message, while writing to the journal continues.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from nashcast.service.cluster.log_messages import read_cells
from nashcast.service.journal.entries import ENTRY_COLUMNS, EntryRow
from nashcast.service.journal.reader import JournalReader
from nashcast.service.streams.stream import Stream
from nashcast.service.workers import frames

VERSION, LARGEST = 1, 256 * 2**20
# Messages of a partition between two checkpoints, and entries of each stream in one, beside those after its snapshot.
EVERY, KEPT = 5000, 250


class Kept(NamedTuple):
    """A stream in a checkpoint. seq, chain: position and checksum of the entry before the first of `rows`."""

    name: str
    document: dict[str, Any]
    file: bool
    seq: int
    chain: int
    rows: list[EntryRow]


class Checkpoint(NamedTuple):
    """place: position of the last included message."""

    place: int
    streams: list[Kept]


class Cut:
    """The present state of the journal. Created by the writer thread between two groups; read by any thread.

    stored: position of the last entry in each stream's stored snapshot.
    """

    def __init__(self, folder: Path, place: int, streams: list[Stream], stored: dict[str, int]):
        self._place = place
        self._befores: list[tuple[Stream, int, int]] = []
        self.complete = True
        for stream in streams:
            journal = stream.journal
            # Computing needs the entry of the stored snapshot and all entries after it.
            before = max(0, min(stored.get(stream.name, 0), journal.last - KEPT) - 1)
            first, first_chain = journal.beginning()
            chain = first_chain if before == first else journal.chain_at(before)
            self.complete = self.complete and chain is not None
            self._befores.append((stream, before, chain or 0))
        self._reader = JournalReader(folder)
        self._reader.connection.execute("BEGIN")
        self._reader.connection.execute("SELECT count(*) FROM streams").fetchone()  # begins the transaction

    def encoded(self) -> bytes:
        query = f"SELECT {ENTRY_COLUMNS} FROM entries WHERE stream = ? AND seq > ? ORDER BY seq"
        try:
            streams = []
            for stream, before, chain in self._befores:
                rows = self._reader.connection.execute(query, (stream.id, before)).fetchall()
                about = {"name": stream.name, "document": stream.document, "file": not stream.api}
                streams.append({**about, "seq": before, "chain": chain, "rows": [list(row) for row in rows]})
            return frames.encode({"version": VERSION, "place": self._place, "streams": streams})
        finally:
            self.close()

    def close(self) -> None:
        self._reader.close()


def decode(data: bytes) -> Checkpoint:
    """Raises BadFrame if the data is not a checkpoint."""
    message = frames.decode(data, LARGEST)
    try:
        if message["version"] != VERSION or type(message["place"]) is not int:
            raise ValueError("another version")
        return Checkpoint(message["place"], [_kept(each) for each in message["streams"]])
    except (LookupError, TypeError, ValueError) as error:
        raise frames.BadFrame(f"a checkpoint cannot be read ({type(error).__name__}: {str(error)[:100]}).") from None


def _kept(plain: dict[str, Any]) -> Kept:
    name, document, seq, chain = plain["name"], plain["document"], plain["seq"], plain["chain"]
    if not isinstance(name, str) or not isinstance(document, dict) or type(seq) is not int or type(chain) is not int:
        raise TypeError("a stream of another form")
    rows, before = [], chain
    for cells in plain["rows"]:
        entry, kept_chain, time = cells[:7], cells[7], cells[8]
        row = read_cells(*[*entry, time]).row(before)
        if row.chain != kept_chain or row.seq != seq + len(rows) + 1:
            raise ValueError(f"entry {row.seq} of {name:.80} does not follow")
        rows.append(row)
        before = row.chain
    return Kept(name, document, plain["file"] is True, seq, chain, rows)
