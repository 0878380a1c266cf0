"""Who owns which partition: balance, leases, and a machine that stops being heard of, with a real key-value store."""

import asyncio

import pytest

from nashcast.errors import InvalidInput
from nashcast.service.cluster import members as module
from nashcast.service.cluster.broker import Broker
from nashcast.service.cluster.members import GONE_BEATS, LEASE_S, Members, Table, balanced, permitted
from nashcast.service.cluster.settings import partition_of, read_settings


@pytest.mark.parametrize("partitions", [1, 5, 16])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_balance(partitions, count):
    """However machines come and go: every partition has a living owner, and loads differ by at most one."""
    table, nodes = Table(), [f"n{i}" for i in range(count)]
    for node in nodes:
        before = table
        table = balanced(table, node, [], partitions)
        moved = sum(a != b for a, b in zip(before.owners, table.owners, strict=False))
        assert moved <= -(-partitions // len(table.nodes))
    for gone in nodes[: count - 1]:
        table = balanced(table, nodes[-1], [gone], partitions)
        loads = [table.owners.count(node) for node in table.nodes]
        assert gone not in table.owners
        assert sum(loads) == partitions
        assert max(loads) - min(loads) <= 1


def test_a_machine_takes_nothing_from_one_that_lives():
    table = Table(("a", "b"), ("a", "b", "gone", ""))
    wanted = Table(("a", "b", "c"), ("c", "c", "c", "c"))
    assert permitted(table, wanted, "a").owners == ("c", "b", "c", "c")
    assert permitted(table, wanted, "c").owners == ("a", "b", "c", "c")


def test_partitions_do_not_follow_the_workers_checksum():
    from zlib import crc32

    names = [f"stream-{i}" for i in range(4000)]
    inside = [crc32(name.encode()) % 2 for name in names if partition_of(name, 16) == 3]
    assert 150 < len(inside) < 350
    assert 0.35 < sum(inside) / len(inside) < 0.65


@pytest.mark.parametrize("urls", ["", "http://a", "nats://", "nats://h:x", "nats://ok:1,ftp://b"])
def test_addresses_are_checked(urls):
    with pytest.raises(InvalidInput, match="nats://HOST:PORT"):
        read_settings(urls)


def test_a_broker_that_is_not_there(monkeypatch):
    monkeypatch.setattr("nashcast.service.cluster.broker.START_S", 0.3)
    with pytest.raises(InvalidInput, match=r"no broker at nats://127.0.0.1:9 .*Start nats-server"):
        asyncio.run(Broker(read_settings("nats://user:secret@127.0.0.1:9")).open())


def test_one_broker_cannot_hold_three_replicas(broker):
    async def run():
        one = Broker(read_settings(broker.url, replicas=3))
        await one.open()
        try:
            with pytest.raises(InvalidInput, match="--replicas 1"):
                await one.set_up()
        finally:
            await one.close()

    asyncio.run(run())


def test_a_silent_machine_loses_its_partitions(broker, monkeypatch):
    """Two share; a falls silent; b takes over after GONE_BEATS of its own beats, when a's lease has ended."""
    given = []

    async def run():
        one = Broker(read_settings(broker.url, partitions=8, replicas=1))
        await one.open()
        await one.set_up()
        a = Members(one, "a", works=True, stop_answering=given.append)
        b = Members(one, "b", works=True, stop_answering=given.append)
        front = Members(one, "front", works=False, stop_answering=given.append)
        try:
            assert not a.lease
            await a.beat()
            assert a.table.owners == ("a",) * 8
            await b.beat()
            assert b.table.owners == ("a",) * 8  # a lives, so only a gives
            await a.beat()
            await front.beat()
            assert sorted(front.table.owners) == ["a"] * 4 + ["b"] * 4
            assert len(given) == 4
            for _ in range(GONE_BEATS):
                assert b.table.owners.count("a") in (4, 8)
                await b.beat()
            await b.beat()
            assert b.table == Table(("b",), ("b",) * 8)
            later = module.now() + LEASE_S
            assert a.lease
            monkeypatch.setattr(module, "now", lambda: later)
            assert not a.lease
            monkeypatch.undo()
            await a.beat()  # it comes back as one that owns nothing
            assert a.table.owners == ("b",) * 8
            await b.leave()
            await a.beat()
            assert a.table == Table(("a",), ("a",) * 8)
        finally:
            await one.close()

    asyncio.run(run())


def test_what_is_no_table_is_written_anew():
    for value in (None, [], {"nodes": 3}, {"nodes": [], "owners": [1]}, {"owners": []}):
        assert module._table(value) == Table()
    assert GONE_BEATS * module.BEAT_S > LEASE_S
