"""Pass durable entries to workers; record what workers report and publish it to readers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from nashcast.service.events.kinds import EVENTS
from nashcast.service.journal.entries import Entry, read_outcome
from nashcast.service.snapshots.folders import KEPT, remove_folder
from nashcast.service.streams.stream import FAILED, LIVE, LOADING, Stream

if TYPE_CHECKING:
    from nashcast.service.streams.service import Service

logger = logging.getLogger("nashcast.service")


def keep_snapshot(service: Service, stream: Stream, found: dict[str, Any], name: str | None = None) -> bool:
    """Register a snapshot that a worker has written, and drop older ones."""
    if (name is None and not service.writer.recorded) or found.get("epoch", stream.epoch) != stream.epoch:
        remove_folder(service.folder, found["folder"])
        return False
    journal = stream.journal
    journal.add_snapshot(found["step"], found["seq"], found["chain"], found["folder"], found["files"], name)
    service.writer.counts["snapshots"] += 1
    automatic = [each for each in journal.snapshots() if each["name"] is None]
    for each in automatic[KEPT:]:
        journal.drop_snapshots([each["id"]])
        remove_folder(service.folder, each["folder"])
    retain = stream.config.serve.retain
    if retain is not None and automatic:
        journal.forget(found["step"] - retain, min(each["seq"] for each in automatic[:KEPT]))
    service.placement.snapshot_kept(stream, found)
    return True


def go(service: Service, new: list[tuple[Stream, list[Entry]]]) -> None:
    by_worker: dict[int, dict[str, int]] = {}
    for stream, entries in new:
        stream.accepted(entries)
        by_worker.setdefault(stream.worker, {})[str(stream.id)] = entries[-1].seq
    for number, streams in by_worker.items():
        service.pool[number].tell({"do": "go", "streams": streams})


def publish(service: Service, reported: list[tuple[Stream, dict[str, Any]]]) -> None:
    for stream, message in reported:
        if message["epoch"] != stream.epoch or stream.state == FAILED:
            continue
        stream.computed, stream.step = message["seq"], message["step"]
        stream.standing = message.get("standing", stream.standing)
        stream.summary = message.get("summary", stream.summary)
        stream.unwritable = message["unwritable"]
        stream.replayed, stream.from_step = message["replayed"], message["from_step"]
        if message["loaded"] and stream.state == LOADING:
            stream.state = LIVE
            service.forgive(stream)
        announce(service, stream, message["events"])
        if "standing" in message:
            service.placement.published(stream)
        _feed(stream, message)
        stream.wake()


def announce(service: Service, stream: Stream, events: list[Any]) -> None:
    """Count events and write them to the process's log, with separate fields in JSON format."""
    for at, step, kind, text in events:
        if kind in EVENTS:
            service.event_counts[kind] += 1
            level = logging.WARNING if EVENTS[kind] else logging.INFO
            fields = {"stream": stream.name, "kind": kind, "step": step, "at": at}
            logger.log(level, "stream %s, step %s, %s: %s", stream.name, step, kind, text, extra={"fields": fields})


def _feed(stream: Stream, message: dict[str, Any]) -> None:
    feed = stream.feed
    if feed is None or not feed.readers:
        return
    entries = []
    while stream.recent and stream.recent[0].seq <= message["seq"]:
        entries.append(stream.recent.popleft())
    y_dim = stream.config.serve.y_dim
    outcomes = [read_outcome(row, len(stream.names), y_dim) for row in message["rows"]]
    feed.add(entries, outcomes, message["events"], stream.standing)
