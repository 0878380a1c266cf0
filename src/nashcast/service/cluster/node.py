"""One machine of a cluster: computes the streams of its partitions, serves them and forwards other requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from nashcast import __version__
from nashcast.errors import InvalidInput
from nashcast.service.cluster.broker import Broker
from nashcast.service.cluster.forwarding import Forwarding
from nashcast.service.cluster.log_messages import Made, Removed
from nashcast.service.cluster.partitions import Partitions
from nashcast.service.cluster.settings import ClusterSettings, partition_of
from nashcast.service.http.app import forwarded_app
from nashcast.service.http.http_errors import Refused
from nashcast.service.snapshots.folders import remove_unreferenced
from nashcast.service.streams.intake import Conflict
from nashcast.service.streams.placement import Groups, LogAway
from nashcast.service.streams.registry import NAME, Declared, read_posted
from nashcast.service.streams.service import Service
from nashcast.service.streams.stream import Stream

# Seconds to wait for the responses of all machines.
GATHER_S = 2.0
_AWAY = "no majority of the cluster's brokers answers. Requests succeed again once one does: try again."


class ClusterNode:
    """Implements `Placement`. works: whether it computes streams; otherwise it only serves and forwards requests."""

    def __init__(self, settings: ClusterSettings, declared: Sequence[Declared], *, works: bool):
        self._settings, self._declared, self._works = settings, declared, works
        self.node = settings.node
        self._telling: set[asyncio.Task] = set()

    # Before the start.

    def open(self, service: Service) -> None:
        for each in self._declared:
            # Any machine may have to compute it.
            read_posted(each.name, each.document, service.folder)
        for row in service.journal.streams():
            service.journal.remove_stream(row.id)
        remove_unreferenced(service.folder, ())
        asyncio.run(self._try())

    async def _try(self) -> None:
        broker = Broker(self._settings)
        await broker.open()
        try:
            await broker.set_up()
        finally:
            await broker.close()

    async def start(self, service: Service) -> None:
        self._service, self._loop = service, asyncio.get_running_loop()
        self._broker = Broker(self._settings)
        await self._broker.open()
        await self._broker.set_up()
        self._partitions = Partitions(service, self._broker, self.node, self._declared, works=self._works)
        self._members = self._partitions.members
        self._forwarding = Forwarding(self._broker, self.node, forwarded_app(service), service.limits)
        await self._forwarding.listen()
        self._tasks = [asyncio.create_task(self._partitions.run()), asyncio.create_task(self._partitions.store.run())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._partitions.stop()
        with suppress(Exception):
            async with asyncio.timeout(2.0):
                if self._works:
                    await self._members.leave()
        self._forwarding.stop()
        with suppress(Exception):
            async with asyncio.timeout(2.0):
                await self._broker.close()

    # The interface of `Placement`.

    def append(self, groups: Groups) -> None:
        self._check_lease()
        self._partitions.replica.append(groups)

    def make(self, name: str, document: dict[str, Any]) -> None:
        self._check_lease()
        self._partitions.replica.record(self._partition(name), Made(name, document, file=False))

    def made(self, stream: Stream) -> None:
        self._partitions.replica.streams[self._partition(stream.name)][stream.name] = stream

    def remove(self, stream: Stream) -> None:
        self._check_lease()
        partition = self._partition(stream.name)
        self._partitions.replica.record(partition, Removed(stream.name))
        self._partitions.replica.streams[partition].pop(stream.name, None)

    def check_supported(self, what: str) -> None:
        raise Conflict("not_in_a_cluster", f"{what}: not possible in a cluster. Make another stream instead.")

    def snapshot_kept(self, stream: Stream, found: dict[str, Any]) -> None:
        self._loop.call_soon_threadsafe(self._partitions.store.put_later, stream.name, found)

    def published(self, stream: Stream) -> None:
        if self._broker.connected and stream.standing is not None:
            subject = f"nashcast.forecasts.{stream.name.replace('.', '%2E')}"
            task = self._loop.create_task(self._tell(subject, stream.standing))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell(self, subject: str, data: bytes) -> None:
        with suppress(Exception):
            await self._broker.client.publish(subject, data)

    def not_ready(self) -> str | None:
        return None if self._broker.connected and self._members.lease else _AWAY

    def figures(self) -> dict[str, float]:
        counts = self._partitions.store.counts
        return {
            "cluster_lease": float(self._members.lease), "cluster_partitions": float(len(self._partitions.ready)),
            "cluster_snapshots_stored": float(counts["stored"]), "cluster_snapshots_failed": float(counts["failed"]),
        }  # fmt: skip

    def _check_lease(self) -> None:
        if not self._members.lease:
            raise LogAway(_AWAY)

    def _partition(self, name: str) -> int:
        return partition_of(name, self._broker.partitions)

    async def forward(self, request: Request) -> Response | None:
        forwarded, path = request.scope.get("forwarded"), request.url.path
        if path == "/v1/streams" and not forwarded:
            return await self._gather(request)
        name = request.path_params.get("stream")
        if name is None or NAME.fullmatch(name) is None:
            return None
        partition = self._partition(name)
        owner = self._members.owner(partition)
        if not self._broker.connected or (owner == self.node and not self._members.lease):
            raise Refused(503, "cluster_away", _AWAY, {"Retry-After": "1"})
        if owner == self.node or forwarded:
            if partition in self._partitions.ready and self._members.lease:
                return None
            raise Refused(
                503, "loading", f"partition {partition} is being taken over. Try again.", {"Retry-After": "1"}
            )
        if not owner:
            message = f"no machine computes partition {partition}, which has this stream. Start one, and try again."
            raise Refused(503, "no_owner", message, {"Retry-After": "1"})
        return await self._forwarding.ask(owner, request, lambda: self._members.owner(partition) == owner)

    async def _gather(self, request: Request) -> Response:
        """Rows of every machine that responds in time."""

        async def rows(node: str) -> list[dict[str, Any]]:
            try:
                async with asyncio.timeout(GATHER_S):
                    answer = await self._forwarding.ask(node, request, lambda: True)
                    parts = [bytes(answer.body)] if hasattr(answer, "body") else []
                    if not parts:
                        parts = [part async for part in answer.body_iterator]  # type: ignore[attr-defined]
                    return json.loads(b"".join(parts))["streams"]
            except (TimeoutError, Refused, InvalidInput, ValueError, KeyError):
                return []

        found = await asyncio.gather(*(rows(node) for node in self._members.table.nodes))
        streams = sorted((row for each in found for row in each), key=lambda row: row["name"])
        body = json.dumps({"version": __version__, "streams": streams}, separators=(",", ":"))
        return Response(body, media_type="application/json")
