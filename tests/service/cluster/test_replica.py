"""The log with a real broker: what one machine adds another reads; of two that add only one can."""

import asyncio
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from nashcast.service.cluster.broker import Broker, Moved
from nashcast.service.cluster.log_messages import Added, BadLog, Made, Taken, encode
from nashcast.service.cluster.replica import Replica
from nashcast.service.cluster.settings import partition_of, read_settings
from nashcast.service.journal.entries import OBSERVATION
from nashcast.service.journal.journal import Journal
from nashcast.service.streams.intake import Intake, Item
from nashcast.service.streams.placement import GroupTooLarge, LogAway

DOCUMENT = {"seed": 7, "serve": {"x_dim": 1, "y_dim": 1}}


class Here:
    """A machine without workers and HTTP: a journal and a replica, with an event loop in another thread."""

    def __init__(self, folder, url, node):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.broker, self.journal, self.behind = Broker(read_settings(url, replicas=1)), Journal(folder), []
        self.run(self.broker.open())
        self.run(self.broker.set_up())
        service = SimpleNamespace(journal=self.journal, folder=folder)
        self.replica = Replica(service, self.broker, self.loop, node, self.behind.append)
        self.node = node

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)

    def take(self, partition, *records):
        self.replica.begin(partition)
        self.catch_up(partition)
        before = self.replica.places[partition]
        data = encode([*records, Taken(self.node)], before)
        place = self.run(self.broker.store(partition, data, after=before, own_id=f"{self.node}-{partition}-{before}"))
        self.replica.apply(partition, [(place, data)])
        self.replica.writable.add(partition)

    def catch_up(self, partition):
        taken = None

        async def read():
            nonlocal taken
            end = await self.broker.end(partition)
            if end > self.replica.places[partition]:
                async for batch in self.broker.read(partition, self.replica.places[partition], end):
                    taken = self.replica.apply(partition, batch)[1] or taken

        self.run(read())
        return taken

    def add(self, stream, values):
        intake = Intake(stream.journal, 1.0)
        intake.add([Item("", OBSERVATION, None, None, np.array([v]), np.array([v])) for v in values])
        self.replica.append([(stream, intake.entries)])

    def close(self):
        self.run(self.broker.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        self.journal.close()


@pytest.fixture
def pair(broker, tmp_path):
    machines = [Here(tmp_path / name, broker.url, name) for name in ("a", "b")]
    yield machines
    for each in machines:
        each.close()


def entries(machine, stream):
    rows = machine.journal.connection.execute(
        "SELECT seq, step, x, y, at, chain FROM entries WHERE stream = ? ORDER BY seq", (stream.id,)
    )
    return rows.fetchall()


def test_another_machine_reads_what_one_has_added(pair):
    a, b = pair
    name = "first"
    partition = partition_of(name, 16)
    a.take(partition, Made(name, DOCUMENT, False))
    ours = a.replica.streams[partition][name]
    for values in ([1.0], [2.0, 3.0], [4.0]):
        a.add(ours, values)
    b.take(partition)
    theirs = b.replica.streams[partition][name]
    assert entries(b, theirs) == entries(a, ours)
    assert (theirs.journal.last, theirs.journal.chain) == (4, ours.journal.chain)
    # Fenced: the machine that has lost the partition can add nothing, and learns who has it.
    with pytest.raises(LogAway, match="goes further"):
        a.add(ours, [5.0])
    assert (ours.journal.last, a.replica.writable) == (4, set())
    b.add(theirs, [6.0])
    assert a.catch_up(partition) == "b"
    assert entries(a, ours) == entries(b, theirs)
    with pytest.raises(LogAway, match="another machine"):
        a.add(ours, [7.0])


def test_a_message_is_stored_once(pair):
    a, _ = pair
    data = encode([Taken("a")], 0)
    place = a.run(a.broker.store(0, data, after=0, own_id="same"))
    assert a.run(a.broker.store(0, data, after=0, own_id="same")) == place
    with pytest.raises(Moved):
        a.run(a.broker.store(0, data, after=0, own_id="other"))
    assert a.run(a.broker.end(0)) == place


def test_a_group_that_fits_no_message_is_refused_whole(pair, monkeypatch):
    a, _ = pair
    monkeypatch.setattr(Broker, "max_payload", 5000)
    name = "large"
    partition = partition_of(name, 16)
    a.take(partition, Made(name, DOCUMENT, False))
    stream = a.replica.streams[partition][name]
    place = a.replica.places[partition]
    with pytest.raises(GroupTooLarge):
        a.add(stream, range(200))
    a.add(stream, [1.0])
    assert stream.journal.last == 1
    assert a.run(a.broker.end(partition)) > place


@pytest.mark.parametrize("fault", ["unmade", "partition", "place", "sizes", "checksum"])
def test_what_does_not_follow_from_the_log_is_refused(pair, fault):
    a, _ = pair
    name = f"stream-{fault}"
    partition = partition_of(name, 16)
    a.take(partition, Made(name, DOCUMENT, False))
    stream, before = a.replica.streams[partition][name], a.replica.places[partition]
    size = 2 if fault == "sizes" else 1
    intake = Intake(stream.journal, 1.0)
    intake.add([Item("", OBSERVATION, None, None, np.ones(size), np.ones(1))])
    (entry,) = intake.entries
    chain = entry.row(stream.journal.chain).chain
    record = Added(name, [entry._replace(seq=5) if fault == "place" else entry], chain + (fault == "checksum"))
    if fault == "unmade":
        record = record._replace(stream=next(n for n in map(str, range(99)) if partition_of(n, 16) == partition))
    if fault == "partition":
        record = record._replace(stream=next(n for n in map(str, range(99)) if partition_of(n, 16) != partition))
    with pytest.raises(BadLog):
        a.replica.apply(partition, [(before + 1, encode([record], before))])
    assert a.replica.places[partition] == before
