"""Checkpoints: a machine that begins behind one has what one has that read the whole log."""

import numpy as np
import pytest
from test_replica import DOCUMENT, Here, entries

from nashcast.service.cluster import checkpoint
from nashcast.service.cluster.checkpoint import KEPT, Cut, decode
from nashcast.service.cluster.log_messages import Made
from nashcast.service.cluster.settings import partition_of
from nashcast.service.journal.entries import OBSERVATION
from nashcast.service.streams.intake import Conflict, Intake, Item
from nashcast.service.workers import frames

NAMES = [name for name in map(str, range(200)) if partition_of(name, 16) == 4][:3]


@pytest.fixture
def pair(broker, tmp_path):
    machines = [Here(tmp_path / name, broker.url, name) for name in ("a", "b")]
    yield machines
    for each in machines:
        each.close()


def test_a_machine_begins_behind_a_checkpoint(pair):
    a, b = pair
    a.take(4, *(Made(name, DOCUMENT, False) for name in NAMES))
    streams = a.replica.streams[4]
    long, short, _empty = (streams[name] for name in NAMES)
    a.add(long, range(3 * KEPT))
    a.add(short, range(5))
    cut = a.replica.cut(4, {NAMES[0]: 2 * KEPT, NAMES[1]: 5})
    assert cut.complete
    a.add(long, [0.5])  # after the cut: it is in the log only
    found = decode(cut.encoded())
    assert found.place < a.replica.places[4]
    assert [len(kept.rows) for kept in found.streams] == [KEPT + 1, 5, 0]
    b.replica.begin(4)
    b.replica.restore(4, found)
    b.catch_up(4)
    theirs = b.replica.streams[4]
    assert entries(b, theirs[NAMES[0]]) == entries(a, long)[2 * KEPT - 1 :]
    for name in NAMES:
        ours, other = streams[name].journal, theirs[name].journal
        assert (other.last, other.chain, other.step) == (ours.last, ours.chain, ours.step)
    assert theirs[NAMES[0]].journal.beginning()[0] == 2 * KEPT - 1
    # One that began behind a checkpoint can make the next one.
    again = b.replica.cut(4, {NAMES[0]: 2 * KEPT, NAMES[1]: 5})
    assert again.complete
    (first, *others), (kept, *rest) = decode(again.encoded()).streams, found.streams
    assert others == rest
    assert first[:5] == kept[:5]
    assert first.rows[:-1] == kept.rows
    # What is older than the checkpoint is refused, not taken again.
    intake = Intake(theirs[NAMES[0]].journal, 2.0)
    with pytest.raises(Conflict, match="older than the oldest stored step"):
        intake.add([Item("", OBSERVATION, 3, None, np.array([3.0]), np.array([3.0]))])


def test_without_what_a_snapshot_needs_it_is_not_complete(pair):
    a, _ = pair
    a.take(4, Made(NAMES[0], DOCUMENT, False))
    stream = a.replica.streams[4][NAMES[0]]
    a.journal.connection.execute("UPDATE streams SET seq_before = 10 WHERE id = ?", (stream.id,))
    cut = Cut(a.journal.folder, 1, [stream], {})
    assert not cut.complete
    cut.close()


@pytest.mark.parametrize("fault", ["version", "place", "name", "seq", "checksum", "gap", "cells"])
def test_hostile_checkpoints(fault):
    entry = checkpoint.read_cells(6, 0, 5, None, bytes(8), bytes(8), 1.0, None).row(9)
    stream = {"name": "x", "document": {}, "file": False, "seq": 5, "chain": 9, "rows": [list(entry)]}
    message = {"version": 1, "place": 3, "streams": [stream]}
    assert decode(frames.encode(message)).streams[0].rows == [entry]
    if fault in ("version", "place"):
        message[fault] = "3"
    elif fault in ("name", "seq"):
        stream[fault] = None
    elif fault == "checksum":
        stream["chain"] = 10
    elif fault == "gap":
        stream["seq"] = 4
    else:
        stream["rows"] = [list(entry)[:-1]]
    with pytest.raises(frames.BadFrame, match="checkpoint cannot be read"):
        decode(frames.encode(message))


def test_messages_are_counted(pair):
    a, _ = pair
    a.take(4, Made(NAMES[1], DOCUMENT, False))
    before = a.replica.messages[4]
    a.add(a.replica.streams[4][NAMES[1]], [9.0])
    assert a.replica.messages[4] == before + 1
    a.replica.cut(4, {}).close()
    assert a.replica.messages[4] == 0
