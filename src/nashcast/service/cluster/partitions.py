"""The partitions that this machine owns: take them, keep them up to date with the log, release them."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Sequence

from nashcast.service.cluster.broker import Broker, Moved
from nashcast.service.cluster.checkpoint import EVERY
from nashcast.service.cluster.log_messages import BadLog, Made, Record, Taken, encode
from nashcast.service.cluster.members import BEAT_S, Members
from nashcast.service.cluster.replica import Replica
from nashcast.service.cluster.settings import partition_of
from nashcast.service.cluster.snapshot_store import SnapshotStore
from nashcast.service.streams.placement import LogAway
from nashcast.service.streams.registry import Declared
from nashcast.service.streams.service import Service
from nashcast.service.streams.stream import SPARK, Stream

logger = logging.getLogger("nashcast.service")
# Seconds between two tries to take a partition; the second value applies if it cannot be read.
RETRY_S, FAILED_S = 0.3, 5.0
# Snapshots fetched at once.
FETCHES = 4


class Partitions:
    """ready: partitions whose streams are computed here.   declared: streams of this machine's files."""

    def __init__(
        self, service: Service, broker: Broker, node: str, declared: Sequence[Declared], *, works: bool
    ):  # fmt: skip
        self._service, self._broker, self._declared = service, broker, declared
        self.members = Members(broker, node, works=works, stop_answering=self.drop)
        self.replica = Replica(service, broker, asyncio.get_running_loop(), node, self._fell_behind)
        self.store = SnapshotStore(broker, service.folder)
        self.ready: set[int] = set()
        self._loading: dict[int, asyncio.Task] = {}
        self._mending: dict[int, asyncio.Task] = {}
        self._writing: asyncio.Task | None = None

    def stop(self) -> None:
        writing = () if self._writing is None else (self._writing,)
        for task in (*self._loading.values(), *self._mending.values(), *writing):
            task.cancel()
        self.ready.clear()

    async def run(self) -> None:
        while True:
            began = time.monotonic()
            try:
                async with asyncio.timeout(4 * BEAT_S):
                    await self.members.beat()
                self._follow()
                self._write_checkpoints()
            except Exception as error:
                logger.debug("cluster: no beat (%s: %s)", type(error).__name__, error)
            await asyncio.sleep(max(0.05, BEAT_S - (time.monotonic() - began)))

    def _follow(self) -> None:
        """Take and release partitions according to the table."""
        mine = {i for i, owner in enumerate(self.members.table.owners) if owner == self.members.node}
        for partition in (self.ready | self._loading.keys()) - mine:
            self.drop(partition)
        for partition in mine - self.ready - self._loading.keys():
            self._loading[partition] = asyncio.create_task(self._load(partition))

    def _write_checkpoints(self) -> None:
        """One at a time."""
        due = [each for each in self.ready if self.replica.messages.get(each, 0) >= EVERY]
        if due and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write_checkpoint(due[0]))

    async def _write_checkpoint(self, partition: int) -> None:
        try:
            cut = await self._service.writer.ask(lambda: self.replica.cut(partition, self.store.stored))
            if not cut.complete:  # a takeover reads the whole log instead
                cut.close()
                return
            data = await asyncio.get_running_loop().run_in_executor(None, cut.encoded)
            await self.store.put_checkpoint(partition, data)
            logger.info("cluster: checkpoint of partition %d, %d bytes", partition, len(data))
        except Exception as error:
            # Without a checkpoint a takeover reads more of the log.
            logger.warning("cluster: no checkpoint of partition %d (%s: %s)", partition, type(error).__name__, error)

    async def _load(self, partition: int) -> None:
        began, whole = time.monotonic(), False
        while True:
            pause = RETRY_S
            try:
                await self._take(partition, whole=whole)
                break
            except (LogAway, Moved) as error:
                logger.debug("cluster: partition %d is not taken yet: %s", partition, error)
            except Exception as error:
                logger.error("cluster: partition %d cannot be taken: %s", partition, error)
                pause = FAILED_S if whole else RETRY_S
                whole = True  # read from the first message, without the checkpoint
            await asyncio.sleep(pause)
        self.ready.add(partition)
        self._loading.pop(partition, None)
        count = len(self.replica.streams[partition])
        if count:
            seconds = time.monotonic() - began
            logger.info("cluster: partition %d with %d streams taken in %.2f s", partition, count, seconds)

    async def _take(self, partition: int, *, whole: bool) -> None:
        ask, replica = self._service.writer.ask, self.replica
        await ask(lambda: replica.begin(partition))
        found = None if whole else await self.store.get_checkpoint(partition)
        if found is not None:
            if found.place > await self._broker.end(partition):
                raise BadLog(f"its checkpoint is of message {found.place}, which the log does not have")
            await ask(lambda: replica.restore(partition, found))
        await self._catch_up(partition)
        streams = replica.streams[partition]
        records: list[Record] = [
            Made(each.name, each.document, file=True)
            for each in self._declared
            if partition_of(each.name, self._broker.partitions) == partition and each.name not in streams
        ]
        before = replica.places[partition]
        data = encode([*records, Taken(self.members.node)], before)
        own_id = f"{self.members.node}-{secrets.token_hex(8)}"
        place = await self._broker.store(partition, data, after=before, own_id=own_id)
        await ask(lambda: replica.apply(partition, [(place, data)]))
        self._compare_files(streams)
        limit = asyncio.Semaphore(FETCHES)
        await asyncio.gather(*(self._fetch(limit, each) for each in streams.values()))
        for stream in streams.values():
            stream.remembered(self._service.reader.stream(stream.id).last_targets(SPARK))
            stream.step = stream.journal.step
            self._service.add(stream)
            self._service.place(stream)
        await ask(lambda: replica.writable.add(partition))

    async def _fetch(self, limit: asyncio.Semaphore, stream: Stream) -> None:
        if not stream.journal.last:
            return
        async with limit:
            stored = await self.store.get(stream.name)
        if stored is not None and await self._service.writer.ask(lambda: stored.keep(self._service.folder, stream)):
            self.store.stored[stream.name] = stored.seq
        elif stream.journal.beginning()[0]:
            raise BadLog(f"stream {stream.name} has a checkpoint, but no snapshot to go on from")

    def _compare_files(self, streams: dict[str, Stream]) -> None:
        for each in self._declared:
            stream = streams.get(each.name)
            if stream is not None and stream.config.identity() != each.config.identity():
                source = each.config.federation.source
                stream.fail(f"{source} has other settings than the cluster's stream {each.name!r}. Put them back.")

    async def _catch_up(self, partition: int) -> str | None:
        """Read new messages of the log; returns the machine that took the partition meanwhile, if any."""
        end, taken = await self._broker.end(partition), None
        replica = self.replica
        if end > replica.places[partition]:
            async for batch in self._broker.read(partition, replica.places[partition], end):
                fresh, by = await self._service.writer.ask(lambda batch=batch: replica.apply(partition, batch))
                taken = by or taken
                if partition in self.ready and fresh:
                    self._service.committed(fresh)
        return taken

    def _fell_behind(self, partition: int) -> None:
        """A write was not confirmed: read the log before appending more. Called in the event loop."""
        if partition in self.ready and partition not in self._mending:
            self._mending[partition] = asyncio.create_task(self._mend(partition))

    async def _mend(self, partition: int) -> None:
        try:
            while partition in self.ready:
                try:
                    taken = await self._catch_up(partition)
                    if taken not in (None, self.members.node):
                        self.drop(partition)  # the table will follow
                        return
                    await self._service.writer.ask(lambda: self.replica.writable.add(partition))
                    return
                except LogAway:
                    await asyncio.sleep(RETRY_S)
                except Exception as error:
                    logger.error("cluster: partition %d cannot be read: %s", partition, error)
                    self.drop(partition)  # it will be taken again
        finally:
            self._mending.pop(partition, None)

    def drop(self, partition: int) -> None:
        """Release a partition without blocking, so that heartbeats continue."""
        self.ready.discard(partition)
        task = self._loading.pop(partition, None)
        if task is not None:
            task.cancel()
        for stream in list(self._service.streams.values()):
            if partition_of(stream.name, self._broker.partitions) == partition:
                self._service.forget_stream(stream, "another machine computes it now")
                self.store.forget(stream.name)
        # The writer thread does this before any later request.
        self._service.writer.ask(lambda: self.replica.end(partition))
