"""Messages of the log: changes to a partition's streams, in order. Every message is validated when read.

A message names the position of its predecessor in the partition, so that a missing message is detected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nashcast.errors import NashcastError
from nashcast.service.journal.entries import LABEL, OBSERVATION, Entry, packed, unpacked
from nashcast.service.workers import frames

VERSION = 1
LARGEST = 64 * 2**20


class BadLog(NashcastError):
    """A message of the log is invalid or missing."""


class Made(NamedTuple):
    """A stream, with its settings. file: whether a file describes it rather than a request."""

    stream: str
    document: dict[str, Any]
    file: bool


class Removed(NamedTuple):
    stream: str


class Added(NamedTuple):
    """New entries of a stream. chain: checksum after the last one."""

    stream: str
    entries: list[Entry]
    chain: int


class Taken(NamedTuple):
    """A machine owns the partition from here on; the previous owner cannot append behind this message."""

    node: str


Record = Made | Removed | Added | Taken


def encode(records: list[Record], before: int) -> bytes:
    """before: position of the partition's preceding message, 0 for none."""
    return frames.encode({"version": VERSION, "before": before, "records": [_plain(each) for each in records]})


def decode(data: bytes, before: int) -> list[Record]:
    """before: position of the last message read."""
    try:
        message = frames.decode(data, LARGEST)
        version, prior, records = message["version"], message["before"], message["records"]
        if version != VERSION:
            raise BadLog(f"the log has messages of version {version!r:.20}; this release reads {VERSION}. Upgrade it.")
        if prior != before:
            raise BadLog(f"the log has no message between {before} and one that comes after {prior!r:.20}.")
        return [_record(each) for each in records]
    except (frames.BadFrame, KeyError, TypeError, ValueError) as error:
        raise BadLog(
            f"the log has a message that cannot be read ({type(error).__name__}: {str(error)[:120]})."
        ) from None


def _plain(record: Record) -> dict[str, Any]:
    match record:
        case Made(stream, document, file):
            return {"do": "make", "stream": stream, "document": document, "file": file}
        case Removed(stream):
            return {"do": "remove", "stream": stream}
        case Taken(node):
            return {"do": "take", "node": node}
        case Added(stream, entries, chain):
            rows = [[e.seq, e.kind, e.step, e.key, packed(e.x), packed(e.y), e.at, e.time] for e in entries]
            return {"do": "add", "stream": stream, "rows": rows, "chain": chain}


def _record(plain: dict[str, Any]) -> Record:
    do = plain["do"]
    if do == "take":
        return Taken(_text(plain["node"]))
    stream = _text(plain["stream"])
    if do == "make":
        if not isinstance(plain["document"], dict):
            raise TypeError("settings that are no object")
        return Made(stream, plain["document"], plain["file"] is True)
    if do == "remove":
        return Removed(stream)
    if do != "add":
        raise ValueError(f"a record {do!r:.40}")
    return Added(stream, [read_cells(*row) for row in plain["rows"]], _whole(plain["chain"]))


def read_cells(seq: Any, kind: Any, step: Any, key: Any, x: Any, y: Any, at: Any, time: Any) -> Entry:
    """An entry from cells received over the network."""
    if kind not in (OBSERVATION, LABEL) or (kind == OBSERVATION) != isinstance(x, bytes):
        raise ValueError("an entry of another kind")
    if not (y is None or isinstance(y, bytes)) or not (key is None or isinstance(key, str)):
        raise TypeError("an entry with a target or key of another type")
    if type(at) is not float or not (time is None or type(time) is float):
        raise TypeError("an entry with a time of another type")
    return Entry(_whole(seq), kind, _whole(step), key, unpacked(x), unpacked(y), at, time)


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"{value!r:.40} where a whole number is expected")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise ValueError(f"{value!r:.40} where a name is expected")
    return value
