"""A machine's copy of the log: the streams of its partitions in its local journal, and the last message applied.

The local journal is rebuilt whenever a partition is taken. Entries are appended to the log first, with the last
message known to this machine as expected predecessor: JetStream refuses them if there is a later one. So of two
machines that both consider themselves the owner of a partition, only one can append to it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TYPE_CHECKING

import numpy as np

from nashcast.errors import NashcastError
from nashcast.service.cluster.broker import STORE_S, Broker
from nashcast.service.cluster.checkpoint import Checkpoint, Cut
from nashcast.service.cluster.log_messages import Added, BadLog, Made, Record, Removed, Taken, decode, encode
from nashcast.service.cluster.settings import partition_of
from nashcast.service.journal.entries import Entry, unpacked
from nashcast.service.snapshots.folders import remove_folder
from nashcast.service.streams.placement import Groups, GroupTooLarge, LogAway
from nashcast.service.streams.registry import read_posted, stream_name
from nashcast.service.streams.stream import Stream
from nashcast.service.workers.factory import member_names_of

if TYPE_CHECKING:
    from nashcast.service.streams.service import Service

Fresh = list[tuple[Stream, list[Entry]]]


class Replica:
    """The writer thread calls all methods except `wait_for`. fell_behind: called with a partition to read."""

    def __init__(
        self, service: Service, broker: Broker, loop: asyncio.AbstractEventLoop, node: str,
        fell_behind: Callable[[int], None],
    ):  # fmt: skip
        self._service, self._broker, self._loop, self._node = service, broker, loop, node
        self._fell_behind = fell_behind
        self.places: dict[int, int] = {}
        self.streams: dict[int, dict[str, Stream]] = {}
        self.writable: set[int] = set()
        self.messages: dict[int, int] = {}  # since the last checkpoint

    def begin(self, partition: int) -> None:
        """Discard the local copy of a partition, to read it from its first message."""
        self.end(partition)
        self.places[partition], self.streams[partition], self.messages[partition] = 0, {}, 0

    def end(self, partition: int) -> None:
        self.writable.discard(partition)
        self.places.pop(partition, None)
        for stream in self.streams.pop(partition, {}).values():
            self._forget(stream)

    def restore(self, partition: int, checkpoint: Checkpoint) -> None:
        """Start behind a checkpoint instead of at the first message."""
        for kept in checkpoint.streams:
            self._check_partition(partition, kept.name)
            self._define(partition, Made(kept.name, kept.document, kept.file))
            stream = self.streams[partition][kept.name]
            for row in kept.rows:
                self._check_sizes(stream, row.seq, unpacked(row.x), unpacked(row.y))
            stream.journal = self._service.journal.fill_stream(stream.id, (kept.seq, kept.chain), kept.rows)
        self.places[partition] = checkpoint.place

    def cut(self, partition: int, stored: dict[str, int]) -> Cut:
        """The data for a checkpoint of the partition's present state."""
        self.messages[partition] = 0
        streams = list(self.streams[partition].values())
        return Cut(self._service.folder, self.places[partition], streams, stored)

    def apply(self, partition: int, batch: list[tuple[int, bytes]]) -> tuple[Fresh, str | None]:
        """Apply messages with their positions. Returns new entries, and the machine that took the partition, if any."""
        place, taken = self.places[partition], None
        pending: dict[str, Added] = {}
        fresh: Fresh = []
        for seq, data in batch:
            for record in decode(data, place):
                if isinstance(record, Taken):
                    taken = record.node
                    continue
                self._check_partition(partition, record.stream)
                if isinstance(record, Added):
                    self._join(partition, pending, record)
                else:
                    fresh += self._flush(partition, pending)
                    self._define(partition, record)
            place = seq
        fresh += self._flush(partition, pending)
        self.places[partition] = place
        self.messages[partition] += len(batch)
        return fresh, taken

    def append(self, groups: Groups) -> None:
        """Append to the log, then to the local journal; see `Placement`."""
        by_partition: dict[int, list[Record]] = {}
        for stream, entries in groups:
            chain = stream.journal.chain
            for entry in entries:
                chain = entry.row(chain).chain
            partition = partition_of(stream.name, self._broker.partitions)
            by_partition.setdefault(partition, []).append(Added(stream.name, list(entries), chain))
        places = self._store(by_partition)
        try:
            self._service.journal.append([(stream.journal, entries) for stream, entries in groups])
        except BaseException:
            self._behind(by_partition)
            raise
        self._moved(places)

    def record(self, partition: int, record: Made | Removed) -> None:
        """Append to the log; the caller updates the local journal."""
        self._moved(self._store({partition: [record]}))

    def _moved(self, places: dict[int, int]) -> None:
        self.places.update(places)
        for partition in places:
            self.messages[partition] += 1

    def _store(self, by_partition: dict[int, list[Record]]) -> dict[int, int]:
        if not self.writable.issuperset(by_partition):
            raise LogAway("another machine owns the stream, or its log is being read. Post it again.")
        messages = {p: encode(records, self.places[p]) for p, records in by_partition.items()}
        if max(map(len, messages.values())) > self._broker.max_payload:
            raise GroupTooLarge(f"more than {self._broker.max_payload} bytes")
        try:
            return self.wait_for(messages)
        except BaseException as error:
            # Some messages may have been stored, and one in flight may still be.
            self._behind(by_partition)
            if isinstance(error, LogAway):
                raise
            reason = error if isinstance(error, NashcastError) else type(error).__name__
            raise LogAway(f"the cluster's log did not take it: {reason}. Post it again.") from None

    def wait_for(self, messages: dict[int, bytes]) -> dict[int, int]:
        async def store_all() -> dict[int, int]:
            calls = [
                self._broker.store(p, data, after=self.places[p], own_id=f"{self._node}-{secrets.token_hex(8)}")
                for p, data in messages.items()
            ]
            found = await asyncio.gather(*calls, return_exceptions=True)
            for each in found:
                if isinstance(each, BaseException):
                    raise each
            return dict(zip(messages, found, strict=True))  # type: ignore[arg-type]

        try:
            return asyncio.run_coroutine_threadsafe(store_all(), self._loop).result(2 * STORE_S + 5.0)
        except FutureTimeout:
            raise LogAway("the cluster's log did not confirm in time. Post it again.") from None

    def _behind(self, partitions: dict[int, list[Record]]) -> None:
        for partition in partitions:
            self.writable.discard(partition)
            self._loop.call_soon_threadsafe(self._fell_behind, partition)

    def _join(self, partition: int, pending: dict[str, Added], record: Added) -> None:
        stream = self.streams[partition].get(record.stream)
        if stream is None:
            raise BadLog(f"the log has entries of {record.stream!r:.80}, which was not made.")
        joined = pending.setdefault(record.stream, Added(record.stream, [], 0))
        last = joined.entries[-1].seq if joined.entries else stream.journal.last
        for entry in record.entries:
            last += 1
            if entry.seq != last:
                raise BadLog(f"the log has entry {entry.seq} of {record.stream} where entry {last} is expected.")
            self._check_sizes(stream, entry.seq, entry.x, entry.y)
        joined.entries.extend(record.entries)
        pending[record.stream] = joined._replace(chain=record.chain)

    def _check_partition(self, partition: int, stream: str) -> None:
        if partition_of(stream, self._broker.partitions) != partition:
            raise BadLog(f"the log has stream {stream!r:.80} in partition {partition}, which is another's.")

    def _check_sizes(self, stream: Stream, seq: int, x: np.ndarray | None, y: np.ndarray | None) -> None:
        serve = stream.config.serve
        sizes = (None if x is None else len(x), None if y is None else len(y))
        if sizes[0] not in (None, serve.x_dim) or sizes[1] not in (None, serve.y_dim):
            raise BadLog(f"the log has entry {seq} of {stream.name} with sizes {sizes}, which are not the stream's.")

    def _flush(self, partition: int, pending: dict[str, Added]) -> Fresh:
        streams = self.streams[partition]
        fresh = [(streams[each.stream], each.entries) for each in pending.values() if each.entries]
        if fresh:
            self._service.journal.append([(stream.journal, entries) for stream, entries in fresh])
        for each in pending.values():
            if streams[each.stream].journal.chain != each.chain:
                raise BadLog(f"entries of {each.stream} in the log have another checksum than they were stored with.")
        pending.clear()
        return fresh

    def _define(self, partition: int, record: Made | Removed) -> None:
        streams, journal = self.streams[partition], self._service.journal
        former = streams.pop(record.stream, None)
        if former is not None:
            self._forget(former)
        if isinstance(record, Removed):
            return
        config = read_posted(stream_name(record.stream), record.document, self._service.folder)
        names = member_names_of(config)
        made = journal.make_stream(record.stream, config.identity(), config.shape(names), record.document)
        streams[record.stream] = Stream(
            made, record.stream, config, record.document, names=names, api=not record.file
        )  # fmt: skip

    def _forget(self, stream: Stream) -> None:
        folders = [each["folder"] for each in stream.journal.snapshots()]
        self._service.journal.remove_stream(stream.id)
        for folder in folders:
            remove_folder(self._service.folder, folder)
