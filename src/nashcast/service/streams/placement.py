"""Where streams are computed and how their entries become durable: the interface between one machine and many.

The service asks its placement; HTTP, intake, workers and recovery are the same for both. `OneMachine` is the embedded
journal; `nashcast.service.cluster.node.ClusterNode` is one machine of several.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from nashcast.errors import NashcastError
from nashcast.service.journal.entries import Entry
from nashcast.service.snapshots.folders import remove_unreferenced
from nashcast.service.streams.recorded_forecast import recorded_standing
from nashcast.service.streams.registry import Declared, registered
from nashcast.service.streams.stream import SPARK, Stream

if TYPE_CHECKING:
    from nashcast.service.streams.service import Service

Groups = Sequence[tuple[Stream, Sequence[Entry]]]


class LogAway(NashcastError):
    """The cluster's log did not confirm a write, or another machine now owns the stream.

    The post may or may not have been stored; posted again, it counts once.
    """


class GroupTooLarge(NashcastError):
    """More entries than fit into one message of the log."""


class Placement(Protocol):
    """Everything that differs between one machine and many. The writer thread calls `append`, `make` and `remove`."""

    def open(self, service: Service) -> None:
        """Called before threads start: validate, and add the known streams."""

    async def start(self, service: Service) -> None:
        """Called in the event loop, with workers running: place streams."""

    async def stop(self) -> None:
        """Called before workers are stopped."""

    def append(self, groups: Groups) -> None:
        """Append entries of several streams; they are durable and in the journal when this returns."""

    def make(self, name: str, document: dict[str, Any]) -> None:
        """A stream is about to be made over HTTP."""

    def made(self, stream: Stream) -> None:
        """The new stream is in the journal."""

    def remove(self, stream: Stream) -> None:
        """A stream is about to be removed over HTTP."""

    def check_supported(self, what: str) -> None:
        """Raise Conflict if this placement does not support the operation."""

    def snapshot_kept(self, stream: Stream, found: dict[str, Any]) -> None:
        """A snapshot was registered. Called by the writer thread."""

    def published(self, stream: Stream) -> None:
        """The stream has a new current forecast. Called in the event loop."""

    def not_ready(self) -> str | None:
        """Why no observation can be accepted now; None if it can."""

    def figures(self) -> dict[str, float]:
        """Figures for Prometheus, by name."""
        return {}

    async def forward(self, request: Any) -> Any:
        """The response of the machine that owns the request's stream; None where this machine responds."""


class OneMachine:
    """Every stream is computed here, and the journal is one SQLite file."""

    def __init__(self, declared: Sequence[Declared]):
        self._declared = declared

    def open(self, service: Service) -> None:
        self._journal = journal = service.journal
        for stream in registered(journal, self._declared):
            service.add(stream)
        folders = {
            each["folder"] for row in journal.streams() for each in service.reader.stream(row.id).snapshots()
        }  # fmt: skip
        remove_unreferenced(service.folder, folders)
        for stream in service.streams.values():
            reader = service.reader.stream(stream.id)
            stream.remembered(reader.last_targets(SPARK))
            stream.step = stream.journal.step
            stream.standing, stream.computed = recorded_standing(reader, stream)
        journal.log("start", f"{len(service.streams)} streams")

    async def start(self, service: Service) -> None:
        for stream in service.streams.values():
            service.place(stream)

    async def stop(self) -> None:
        """Nothing to release."""

    def append(self, groups: Groups) -> None:
        self._journal.append([(stream.journal, entries) for stream, entries in groups])

    def make(self, name: str, document: dict[str, Any]) -> None:
        """The journal stores it."""

    def made(self, stream: Stream) -> None:
        """No other machine is informed."""

    def remove(self, stream: Stream) -> None:
        """The journal deletes it."""

    def check_supported(self, what: str) -> None:
        """Everything is."""

    def snapshot_kept(self, stream: Stream, found: dict[str, Any]) -> None:
        """Its files stay where they are."""

    def published(self, stream: Stream) -> None:
        """Requests are answered from memory."""

    def not_ready(self) -> str | None:
        return None

    def figures(self) -> dict[str, float]:
        return {}

    async def forward(self, request: Any) -> Any:
        return None
