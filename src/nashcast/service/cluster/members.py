"""Membership and ownership of partitions: a table in JetStream's key-value store.

Every machine that computes writes its own key twice a second. Another machine counts it as gone when the key has not
changed during `GONE_BEATS` of its own writes. So clocks of different machines are never compared, and no machine is
declared gone while the store rejects writes. A machine that could not write for `LEASE_S` stops responding before any
other can take its partitions. Ownership changes in one of two ways: the owner stops responding and hands the partition
to another machine, or the owner is gone.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from nashcast.service.cluster.broker import Broker

logger = logging.getLogger("nashcast.service")
BEAT_S, GONE_BEATS, LEASE_S = 0.5, 6, 2.5
TABLE = "table"


def now() -> float:
    """Seconds by a monotonic clock that includes suspended time, where the system has one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Table(NamedTuple):
    """owners: the owning machine of each partition, "" for none."""

    nodes: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()


def balanced(table: Table, node: str, gone: Collection[str], partitions: int) -> Table:
    """The table with `node` added and `gone` removed. As few partitions as possible change owner."""
    nodes = sorted({*table.nodes, node} - set(gone))
    owners = [each if each in nodes else "" for each in table.owners[:partitions]]
    owners += [""] * (partitions - len(owners))
    load = Counter(dict.fromkeys(nodes, 0))
    load.update(each for each in owners if each)
    for i, owner in enumerate(owners):
        if not owner:
            owners[i] = min(nodes, key=lambda each: (load[each], each))
            load[owners[i]] += 1
    while True:
        most = max(nodes, key=lambda each: (load[each], each))
        least = min(nodes, key=lambda each: (load[each], each))
        if load[most] - load[least] <= 1:
            return Table(tuple(nodes), tuple(owners))
        owners[max(i for i, owner in enumerate(owners) if owner == most)] = least
        load[most] -= 1
        load[least] += 1


def permitted(table: Table, wanted: Table, node: str) -> Table:
    """The permitted part of the wanted changes: only the machine's own partitions and those of gone machines."""
    owners = [
        after if before in ("", node) or before not in wanted.nodes else before
        for before, after in zip(table.owners, wanted.owners, strict=False)
    ]
    return Table(wanted.nodes, (*owners, *wanted.owners[len(owners) :]))


class Members:
    """node: this machine.   works: whether it may own partitions.

    stop_answering: called with each partition that this machine is about to hand over.
    """

    def __init__(self, broker: Broker, node: str, *, works: bool, stop_answering: Callable[[int], None]):
        self._broker, self.node, self._works, self._stop_answering = broker, node, works, stop_answering
        self.table = Table()
        self._beats, self._confirmed = 0, float("-inf")
        # For each other machine: the revision of its key, and this machine's beat at which it was first seen.
        self._seen: dict[str, tuple[int, int]] = {}

    @property
    def lease(self) -> bool:
        """Whether this machine may respond for its partitions."""
        return now() - self._confirmed < LEASE_S

    def owner(self, partition: int) -> str:
        return self.table.owners[partition] if partition < len(self.table.owners) else ""

    async def beat(self) -> None:
        """Write this machine's heartbeat, read the table, and take partitions without an owner."""
        began = now()
        if self._works:
            await self._broker.members.put(f"node.{self.node}", b"%d" % self._beats)
            self._beats += 1
        table, revision = await self._read()
        if self._works:
            gone = [each for each in table.nodes if each != self.node and await self._is_gone(each)]
            wanted = permitted(table, balanced(table, self.node, gone, self._broker.partitions), self.node)
            if wanted != table:
                for i, owner in enumerate(table.owners):
                    if owner == self.node != wanted.owners[i]:
                        self._stop_answering(i)
                table = await self._change(wanted, revision, gone)
        # Set last: in the new table others may own partitions of this machine.
        self.table, self._confirmed = table, began

    async def leave(self) -> None:
        """Leave the table at once, so that other machines need not wait."""
        table, revision = await self._read()
        others = tuple(each for each in table.nodes if each != self.node)
        owners = tuple("" if each == self.node else each for each in table.owners)
        await self._change(Table(others, owners), revision, [self.node])
        self.table, self._confirmed = Table(others, owners), float("-inf")

    async def _read(self) -> tuple[Table, int]:
        from nats.js.errors import KeyNotFoundError

        try:
            entry = await self._broker.members.get(TABLE)
        except KeyNotFoundError:
            return Table(), 0
        return _table(json.loads(entry.value or b"null")), entry.revision or 0

    async def _change(self, wanted: Table, revision: int, gone: Collection[str]) -> Table:
        from nats.js.errors import APIError, KeyWrongLastSequenceError

        members = self._broker.members
        try:
            await members.update(TABLE, json.dumps(wanted._asdict()).encode(), last=revision)
        except (KeyWrongLastSequenceError, APIError):
            return (await self._read())[0]  # another machine was first
        for each in gone:
            if each != self.node:
                logger.warning("cluster: machine %s is gone; others take its partitions", each)
            self._seen.pop(each, None)
            await members.delete(f"node.{each}")
        return wanted

    async def _is_gone(self, node: str) -> bool:
        from nats.js.errors import KeyNotFoundError

        try:
            revision = (await self._broker.members.get(f"node.{node}")).revision or 0
        except KeyNotFoundError:
            revision = 0
        known, since = self._seen.get(node, (-1, 0))
        if revision != known:
            self._seen[node] = revision, self._beats
            return False
        return self._beats - since >= GONE_BEATS


def _table(value: Any) -> Table:
    """An invalid table counts as empty, so that machines write a new one."""
    if isinstance(value, dict):
        found = [value.get(name) for name in Table._fields]
        if all(isinstance(names, list) and all(isinstance(each, str) for each in names) for names in found):
            return Table(*map(tuple, found))  # type: ignore[arg-type]
    return Table()
