"""Replay a stream's entries with other settings into a new journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from nashcast.errors import InvalidInput
from nashcast.service.journal.journal import Journal, Recorded
from nashcast.service.journal.reader import JournalReader
from nashcast.service.streams.changes import differences
from nashcast.service.streams.registry import read_file
from nashcast.service.streams.views import scores_view
from nashcast.service.workers.computing import Batch, Computing, Snapshot
from nashcast.service.workers.factory import make_federation

_CHUNK = 1000


class Replayed(NamedTuple):
    """differ: changed settings by dotted name, with their values before and after.

    scores: mean squared errors with the new settings, as in a stream's status.
    """

    stream: str
    entries: int
    differ: dict[str, list[Any]]
    scores: dict[str, Any]


def replay(
    folder: Path, file: Path, out: Path, *, stream: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Replayed:  # fmt: skip
    """stream: a stream of the old journal; optional if there is only one, or one with the file's name."""
    if out.exists():
        raise InvalidInput("out", f"{out}, which is there already", "Choose a folder that is not.")
    declared = read_file(file)
    old = JournalReader(folder)
    try:
        if stream is None and declared.name in old.names():
            stream = declared.name
        source = old.named(stream)
        shape = source.raw_shape()
        serve = declared.config.serve
        if source.beginning()[0]:
            remedy = "Replay a journal that keeps all steps."
            raise InvalidInput("journal", f"{folder}, which no longer goes back to the first step", remedy)
        if (shape["x_dim"], shape["y_dim"]) != (serve.x_dim, serve.y_dim):
            has = f"{shape['x_dim']} and {shape['y_dim']}"
            got = f"x_dim {serve.x_dim} and y_dim {serve.y_dim}, but the journal has {has}"
            raise InvalidInput(f"{file}: serve", got, "Use the sizes of the journal.")
        made = make_federation(declared.config)
        new = Journal(out)
        try:
            target = new.make_stream(declared.name, declared.config.identity(), declared.config.shape(made.names))
            chunk = []
            for entry, _ in source.after(0, 0):
                chunk.append(entry)
                if len(chunk) == _CHUNK:
                    new.append([(target, chunk)])
                    chunk = []
            if chunk:
                new.append([(target, chunk)])
            computing = _computed(new, target, made, serve, progress)
        finally:
            new.close()
            for child in made.children:
                child.close()
    finally:
        old.close()
    before, after = shape.get("settings", {}), declared.config.settings()
    differ = {name: [_at(before, name), _at(after, name)] for name in differences(before, after)}
    return Replayed(declared.name, computing.replayed, differ, scores_view(computing.live, serve.window))


def _computed(journal: Journal, target, made, serve, progress) -> Computing:
    reader = JournalReader(journal.folder)

    def keep(batch: Batch) -> None:
        journal.record([Recorded(target.id, batch.rows, batch.events)])

    def save(snapshot: Snapshot) -> None:
        target.add_snapshot(snapshot.step, snapshot.seq, snapshot.chain, snapshot.folder, snapshot.files)

    try:
        # One snapshot at the end; forecasts are recorded as they are computed.
        computing = Computing(reader.stream(target.id), made, replace(serve, snapshot_every=2**53), save)
        keep(computing.begin())
        while computing.seq < target.last:
            keep(computing.advance(_CHUNK, 1.0))
            progress(computing.replayed, target.last)
        if computing.live.step is not None:
            computing.take_snapshot()
        return computing
    finally:
        reader.close()


def _at(document: Any, path: str) -> Any:
    """The value under a dotted name; None where there is none."""
    for part in path.replace("[", ".[").split("."):
        if part.startswith("["):
            index = int(part[1:-1])
            document = document[index] if isinstance(document, list) and index < len(document) else None
        else:
            document = document.get(part) if isinstance(document, dict) else None
    return document
