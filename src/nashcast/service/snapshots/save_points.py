"""Save points: named and automatic snapshots that can be restored."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from nashcast.errors import NashcastError
from nashcast.service.journal.journal import Recorded
from nashcast.service.journal.writer import Busy, Failed
from nashcast.service.snapshots.folders import check_snapshot, remove_folder
from nashcast.service.streams.intake import Conflict
from nashcast.service.streams.publishing import keep_snapshot
from nashcast.service.streams.service import Service
from nashcast.service.streams.stream import FAILED, Stream

# Seconds that saving or restoring waits for the worker.
PATIENCE_S = 30.0


async def make_save_point(service: Service, stream: Stream, name: str) -> dict[str, Any]:
    service.placement.check_supported("a save point")
    if stream.state == FAILED:
        raise Failed(f"stream {stream.name} has stopped: {stream.why}")
    seq = await service.writer.ask(lambda: _free(stream, name))
    await service.computed(stream, seq, PATIENCE_S)
    try:
        found = await service.save(stream)
    except TimeoutError:
        raise Busy("the stream's worker did not answer in time. Ask again.") from None
    if found is None:
        raise Busy("no snapshot could be written now. Ask again.")
    return await service.writer.ask(lambda: _keep(service, stream, found, name))


def _free(stream: Stream, name: str) -> int:
    if stream.journal.step is None:
        raise Conflict("nothing_to_save", "there is no observation yet. Post one first.")
    if any(each["name"] == name for each in stream.journal.snapshots()):
        raise Conflict("name_taken", f"name: got {name!r}, which is taken. Delete that save point first.")
    return stream.journal.last


def _keep(service: Service, stream: Stream, found: dict[str, Any], name: str) -> dict[str, Any]:
    # The worker has also reported it as an automatic snapshot.
    known = next((each for each in stream.journal.snapshots() if each["folder"] == found["folder"]), None)
    if known is not None:
        stream.journal.name_snapshot(known["id"], name)
    else:
        keep_snapshot(service, stream, found, name)
    _log(service, stream, "save point", name)
    return {"name": name, "step": found["step"]}


async def drop_save_point(service: Service, stream: Stream, name: str) -> dict[str, Any]:
    def drop() -> dict[str, Any]:
        snapshot = _named(stream, name)
        stream.journal.drop_snapshots([snapshot["id"]])
        remove_folder(service.folder, snapshot["folder"])
        return {"name": name, "step": snapshot["step"]}

    return await service.writer.ask(drop)


async def restore(service: Service, stream: Stream, name: str) -> dict[str, Any]:
    """Withdraw everything after the save point, in the journal and then in memory."""
    service.placement.check_supported("to restore a save point")
    done = await service.writer.ask(lambda: _restore(service, stream, name))
    # Messages about the new epoch are queued in the event loop before this response.
    await asyncio.sleep(0)
    await service.computed(stream, done.pop("seq"), PATIENCE_S)
    if stream.feed is not None:
        # Readers reload everything they display.
        stream.feed.add([], [], [(time.time(), done["step"], "restore", name)])
    return done


def _restore(service: Service, stream: Stream, name: str) -> dict[str, Any]:
    snapshot = _named(stream, name)
    journal = stream.journal
    if not journal.holds(snapshot["seq"]):
        raise Conflict("too_old", f"name: got {name!r}, whose step {snapshot['step']} the journal no longer holds.")
    try:
        check_snapshot(service.folder, snapshot)
    except NashcastError as error:
        raise Conflict("damaged", f"{error} Nothing was changed.") from error
    folders = [each["folder"] for each in journal.snapshots() if each["seq"] > snapshot["seq"]]
    withdrawn = journal.withdraw(snapshot["seq"], snapshot["chain"], snapshot["step"])
    for folder in folders:
        remove_folder(service.folder, folder)
    _log(service, stream, "restore", f"{name}: {withdrawn} entries after step {snapshot['step']} withdrawn")
    service.begin_anew(stream)
    return {"name": name, "step": snapshot["step"], "withdrawn": withdrawn, "seq": snapshot["seq"]}


def _named(stream: Stream, name: str) -> dict[str, Any]:
    """The save point of this name; automatic snapshots are named auto-STEP."""
    for each in stream.journal.snapshots():
        if name == (each["name"] or f"auto-{each['step']}"):
            return each
    raise Conflict("no_such_save_point", f"name: got {name!r}, which is no save point. GET savepoints lists them.")


def _log(service: Service, stream: Stream, kind: str, text: str) -> None:
    service.journal.record([Recorded(stream.id, [], [(time.time(), stream.journal.step, kind, text)])])
