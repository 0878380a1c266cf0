"""Messages of the log and stored snapshots: what was written is read; everything else is refused with its reason."""

import json
import struct

import numpy as np
import pytest

from nashcast.service.cluster import snapshot_store
from nashcast.service.cluster.log_messages import Added, BadLog, Made, Removed, Taken, decode, encode
from nashcast.service.journal.entries import LABEL, OBSERVATION, Entry
from nashcast.service.workers import frames

ENTRIES = [
    Entry(1, OBSERVATION, 0, "key", np.array([1.5, np.nan]), np.array([0.1]), 1.25, 7.5),
    Entry(2, OBSERVATION, 1, None, np.array([-0.0, 1e300]), None, 2.5, None),
    Entry(3, LABEL, 1, None, None, np.array([5e-324]), 3.5, None),
]


def test_records_come_back_bit_for_bit():
    records = [Made("load", {"seed": 7}, True), Taken("node-1"), Added("load", ENTRIES, 99), Removed("load")]
    found = decode(encode(records, 41), 41)
    assert [type(each) for each in found] == [type(each) for each in records]
    assert (found[0], found[1], found[3]) == (records[0], records[1], records[3])
    assert found[2].chain == 99
    for ours, theirs in zip(found[2].entries, ENTRIES, strict=True):
        assert ours.row(5) == theirs.row(5)  # every cell, and the checksum of all of them


def test_a_missing_message_is_noticed():
    with pytest.raises(BadLog, match="no message between 40 and one that comes after 41"):
        decode(encode([Taken("node")], 41), 40)


def framed(document, blob=b""):
    text = json.dumps(document).encode()
    return struct.pack("<II", 4 + len(text) + len(blob), len(text)) + text + blob


def row(**changes):
    cells = {"seq": 1, "kind": 0, "step": 0, "key": None, "x": {"": 8}, "y": None, "at": 1.0, "time": None} | changes
    return list(cells.values())


@pytest.mark.parametrize(
    "record",
    [
        {"do": "explode", "stream": "a"},
        {"do": "make", "stream": "a", "document": [], "file": True},
        {"do": "make", "document": {}, "file": True},
        {"do": "remove", "stream": ""},
        {"do": "remove", "stream": "a" * 300},
        {"do": "take", "node": 7},
        {"do": "add", "stream": "a", "rows": [row(seq=-1)], "chain": 0},
        {"do": "add", "stream": "a", "rows": [row(seq=1.0)], "chain": 0},
        {"do": "add", "stream": "a", "rows": [row(step=True)], "chain": 0},
        {"do": "add", "stream": "a", "rows": [row(kind=2)], "chain": 0},
        {"do": "add", "stream": "a", "rows": [row(x=None)], "chain": 0},
        {"do": "add", "stream": "a", "rows": [row(key=5)], "chain": 0},
        {"do": "add", "stream": "a", "rows": [row(at="now")], "chain": 0},
        {"do": "add", "stream": "a", "rows": [row()[:-1]], "chain": 0},
        {"do": "add", "stream": "a", "rows": [row()], "chain": -1},
        {"do": "add", "stream": "a", "rows": [row(x={"": 7})], "chain": 0},
        {"do": "add", "stream": "a", "rows": 3, "chain": 0},
        "add",
        None,
    ],
)
def test_hostile_records(record):
    used = json.dumps(record).count('{"": 8}') * 8 + json.dumps(record).count('{"": 7}') * 7
    with pytest.raises(BadLog, match="cannot be read"):
        decode(framed({"version": 1, "before": 0, "records": [record]}, bytes(used)), 0)


@pytest.mark.parametrize("data", [b"", b"\0" * 7, b"\xff" * 40, framed([]), framed({"version": 1}), b"x" + framed({})])
def test_hostile_bytes(data):
    with pytest.raises(BadLog, match="cannot be read"):
        decode(data, 0)


def test_another_version_says_what_to_do():
    with pytest.raises(BadLog, match="version 2; this release reads 1"):
        decode(framed({"version": 2, "before": 0, "records": []}), 0)


@pytest.mark.parametrize(
    "change",
    [{"version": 2}, {"seq": -1}, {"seq": 1.5}, {"chain": None}, {"files": []}, {"files": {"../x": "b"}},
     {"files": {"service.state": 5}}, {"files": {f"f{i}": "b" for i in range(17)}}],
)  # fmt: skip
def test_hostile_snapshots(change):
    message = {"version": 1, "seq": 4, "step": 3, "chain": 9, "files": {"service.state": b"abc"}}
    assert snapshot_store.decode(frames.encode(message)).files == {"service.state": b"abc"}
    if "files" in change and isinstance(change["files"], dict):
        change = {"files": {k: v.encode() if isinstance(v, str) else v for k, v in change["files"].items()}}
    with pytest.raises(frames.BadFrame, match="stored snapshot"):
        snapshot_store.decode(frames.encode(message | change))
