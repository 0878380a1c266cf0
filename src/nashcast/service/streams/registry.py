"""The list of streams: files in a folder, streams created over HTTP, and their records in the journal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nashcast.config.config_changes import read_toml
from nashcast.errors import InvalidInput
from nashcast.service.journal.journal import Journal, StreamRow
from nashcast.service.streams.settings import ServedConfig, read_served
from nashcast.service.streams.stream import Stream
from nashcast.service.workers.factory import FOREIGN, member_names_of

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_REMEDY = "Use 1 to 63 letters, digits, dots, dashes and underscores, a letter or digit first."


class Declared(NamedTuple):
    """A stream as a file declares it."""

    name: str
    config: ServedConfig
    document: dict[str, Any]


def stream_name(name: Any) -> str:
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise InvalidInput("stream", f"the name {str(name)[:80]!r}", _REMEDY)
    return name


def read_file(path: Path) -> Declared:
    document = read_toml(path)
    config = read_served(document, source=str(path), folder=path.parent)
    if NAME.fullmatch(path.stem) is None:
        raise InvalidInput("file", f"{path}, whose name cannot be a stream's", _REMEDY)
    return Declared(path.stem, config, document)


def read_files(path: Path) -> list[Declared]:
    """One file, or every *.toml in a folder: one stream per file, named after it."""
    if not path.is_dir():
        return [read_file(path)]
    return [read_file(each) for each in sorted(path.glob("*.toml"))]


def read_posted(name: str, document: dict[str, Any], folder: Path) -> ServedConfig:
    """Settings received over HTTP; they must not name code or files of this machine."""
    config = read_served(document, source=f"stream {name}", folder=folder)
    if config.hub is not None:
        raise InvalidInput("hub", "a hub over HTTP", "Describe it in a file: it names folders of this machine.")
    for i, agent in enumerate(config.federation.agents):
        if agent.encoder in FOREIGN or agent.encoder == "transformer":
            remedy = "Describe it in a file, or use an encoder of this package."
            raise InvalidInput(f"agents[{i}].encoder", f"{agent.encoder!r} over HTTP", remedy)
    return config


def registered(journal: Journal, declared: Sequence[Declared]) -> list[Stream]:
    """Every stream to serve. A file whose settings differ from the journal's yields a failed stream."""
    known = {row.name: row for row in journal.streams()}
    unnamed = known.pop("", None)
    found = []
    for name, config, document in declared:
        if name not in known and unnamed is not None and unnamed.identity == config.identity():
            # The only stream of a journal written before streams had names.
            journal.change_stream(unnamed.id, name=name)
            known[name], unnamed = unnamed._replace(name=name), None
        found.append(_from_file(journal, known.pop(name, None), name, config, document))
    if unnamed is not None:
        got = f"{journal.folder}, the journal of a federation with other settings"
        raise InvalidInput("journal", got, "Serve the file it was made with, or choose another folder.")
    for row in known.values():
        if row.document is not None:
            config = read_posted(row.name, row.document, journal.folder)
            names = member_names_of(config)
            found.append(Stream(journal.stream(row.id), row.name, config, row.document, names=names, api=True))
    return found


def _from_file(journal: Journal, row: StreamRow | None, name: str, config: ServedConfig, document: dict) -> Stream:
    names, identity = member_names_of(config), config.identity()
    if row is None:
        here = journal.make_stream(name, identity, config.shape(names))
        return Stream(here, name, config, document, names=names, api=False)
    stream = Stream(journal.stream(row.id), name, config, document, names=names, api=False)
    if row.identity == identity and row.shape != config.shape(names):
        journal.change_stream(row.id, shape=config.shape(names))
    if row.identity != identity:
        stream.fail(
            f"{config.federation.source} has other settings than the journal's stream {name!r}. Put the settings back, "
            "or carry the journal over: nashcast journal replay."
        )
    return stream
