"""Create, change and remove streams while the service runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from nashcast.errors import InvalidInput
from nashcast.service.snapshots.folders import remove_folder
from nashcast.service.streams.intake import Conflict
from nashcast.service.streams.registry import read_posted, stream_name
from nashcast.service.streams.service import Service
from nashcast.service.streams.settings import ServedConfig
from nashcast.service.streams.stream import Stream
from nashcast.service.workers.factory import member_names_of

MOST_STREAMS = 10_000


class Done(NamedTuple):
    """made: whether the stream is new.   changed: dotted names of the settings that changed."""

    made: bool
    changed: list[str]


def differences(before: Any, after: Any, path: str = "") -> list[str]:
    """Dotted names of the values that differ between two documents."""
    if isinstance(before, dict) and isinstance(after, dict):
        found = []
        for name in sorted(before.keys() | after.keys()):
            where = f"{path}.{name}" if path else name
            found += differences(before.get(name), after.get(name), where)
        return found
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [each for i, (a, b) in pairs for each in differences(a, b, f"{path}[{i}]")]
    return [] if before == after else [path]


async def make_stream(service: Service, name: str, document: Any, *, replay: bool) -> Done:
    """replay: accept a change that alters forecasts; the stream is then recomputed from the journal."""
    if not isinstance(document, dict):
        raise InvalidInput("body", "no object", "Pass the settings of a federation file as one object.")
    config = read_posted(stream_name(name), document, service.folder)
    former = service.streams.get(name)
    if former is None:
        if len(service.streams) >= MOST_STREAMS:
            raise Conflict("too_many_streams", f"stream: got more than {MOST_STREAMS} streams. Remove one first.")
        await service.writer.ask(lambda: _insert(service, name, config, document))
        return Done(True, [])
    if not former.api:
        raise Conflict("of_a_file", f"stream: got {name!r}, which {former.source} describes. Change that file.")
    changed = differences(former.config.settings(), config.settings())
    if changed:
        service.placement.check_supported("to change a stream's settings")
        await service.writer.ask(lambda: _change(service, former, config, document, changed, replay))
    return Done(False, changed)


async def remove_stream(service: Service, stream: Stream) -> None:
    """Remove the stream from memory and from the journal."""
    if not stream.api:
        raise Conflict("of_a_file", f"stream: got {stream.name!r}, which {stream.source} describes. Remove that file.")
    await service.writer.ask(lambda: service.placement.remove(stream))
    service.forget_stream(stream)

    def remove() -> None:
        folders = [each["folder"] for each in stream.journal.snapshots()]
        service.journal.remove_stream(stream.id)
        for folder in folders:
            remove_folder(service.folder, folder)

    await service.writer.ask(remove)


def _insert(service: Service, name: str, config: ServedConfig, document: dict[str, Any]) -> None:
    if name in service.streams:
        raise Conflict("name_taken", f"stream: got {name!r}, which was created meanwhile. Try again.")
    names = member_names_of(config)
    service.placement.make(name, document)
    journal = service.journal.make_stream(name, config.identity(), config.shape(names), document)
    stream = Stream(journal, name, config, document, names=names, api=True)
    service.placement.made(stream)
    service.take_in(stream)


def _change(
    service: Service, stream: Stream, config: ServedConfig, document: dict[str, Any], changed: list[str], replay: bool
) -> None:
    before = stream.config
    if config.identity() != before.identity():
        if (config.serve.x_dim, config.serve.y_dim) != (before.serve.x_dim, before.serve.y_dim):
            message = "x_dim, y_dim: got sizes other than those of the stream's observations. Create another stream."
            raise Conflict("other_sizes", message)
        if stream.journal.step is not None and not replay:
            message = f"stream: got settings that change its forecasts ({', '.join(changed[:10])}). Pass replay=true."
            raise Conflict("settings_differ", message)
        if stream.journal.beginning()[0]:
            message = "stream: got other settings, but its journal no longer reaches back to the first step."
            raise Conflict("too_old", message)
        folders = [each["folder"] for each in stream.journal.snapshots()]
        stream.journal.forget_learnt()
        for folder in folders:
            remove_folder(service.folder, folder)
    names = member_names_of(config)
    service.journal.change_stream(
        stream.id, identity=config.identity(), document=document, shape=config.shape(names)
    )  # fmt: skip
    service.changed(stream, config, document, names)
