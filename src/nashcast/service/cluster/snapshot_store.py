"""JetStream's object store: checkpoints, and each stream's newest snapshot, from which any machine can continue."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from nashcast.errors import NashcastError
from nashcast.service.cluster import checkpoint
from nashcast.service.cluster.broker import Broker
from nashcast.service.snapshots.folders import check_snapshot, write_folder
from nashcast.service.streams.stream import Stream
from nashcast.service.workers import frames

logger = logging.getLogger("nashcast.service")
VERSION, LARGEST = 1, 256 * 2**20
# Timeout in seconds of storing or reading a snapshot, and the pause between two tries.
TRANSFER_S, RETRY_S = 20.0, 1.0
_NAME, _MOST_FILES = re.compile(r"[a-z][a-z0-9._-]{0,60}"), 16


class Stored(NamedTuple):
    """A stored snapshot. chain: checksum of entry `seq`, which must match the journal's."""

    seq: int
    step: int
    chain: int
    files: dict[str, bytes]

    def keep(self, journal: Path, stream: Stream) -> bool:
        """Register it in the local journal if its checksum matches. Called by the writer thread."""
        here = stream.journal
        if not here.holds(self.seq) or here.chain_at(self.seq) != self.chain:
            return False

        def fill(folder: Path) -> None:
            for name, data in self.files.items():
                (folder / name).write_bytes(data)

        folder, digests = write_folder(journal, f"s{stream.id}-{self.seq:012d}", fill)
        here.add_snapshot(self.step, self.seq, self.chain, folder, digests)
        return True


def encode(journal: Path, found: dict[str, Any]) -> bytes:
    """found: a snapshot as listed in the journal. Its files are verified."""
    folder = check_snapshot(journal, found)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    return frames.encode(
        {"version": VERSION, "seq": found["seq"], "step": found["step"], "chain": found["chain"], "files": files}
    )


def decode(data: bytes) -> Stored:
    message = frames.decode(data, LARGEST)
    numbers, files = [message.get(name) for name in ("seq", "step", "chain")], message.get("files")
    sound = message.get("version") == VERSION and all(type(each) is int and each >= 0 for each in numbers)
    if not sound or not isinstance(files, dict) or len(files) > _MOST_FILES:
        raise frames.BadFrame("a stored snapshot has an invalid form.")
    for name, content in files.items():
        if _NAME.fullmatch(name) is None or not isinstance(content, bytes):
            raise frames.BadFrame("a stored snapshot has invalid file names.")
    return Stored(*numbers, files)  # type: ignore[arg-type]


class SnapshotStore:
    """folder: the local journal's folder."""

    def __init__(self, broker: Broker, folder: Path):
        self._broker, self._folder = broker, folder
        self._waiting: dict[str, dict[str, Any]] = {}
        self._something = asyncio.Event()
        self.stored: dict[str, int] = {}  # position of the last entry in each stream's stored snapshot
        self.counts = {"stored": 0, "failed": 0}

    def put_later(self, stream: str, found: dict[str, Any]) -> None:
        """Queue a snapshot, replacing an older one of the stream. Call in the event loop."""
        self._waiting.pop(stream, None)
        self._waiting[stream] = found
        self._something.set()

    def forget(self, stream: str) -> None:
        self._waiting.pop(stream, None)
        self.stored.pop(stream, None)

    async def run(self) -> None:
        """Store queued snapshots until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._something.wait()
            if not self._waiting:
                self._something.clear()
                continue
            stream = next(iter(self._waiting))
            found = self._waiting.pop(stream)
            try:
                data = await loop.run_in_executor(None, encode, self._folder, found)
            except NashcastError:
                continue  # replaced by a newer one
            try:
                async with asyncio.timeout(TRANSFER_S):
                    await self._broker.snapshots.put(stream, data)
                self.counts["stored"] += 1
                self.stored[stream] = found["seq"]
            except Exception as error:
                # Without it a takeover recomputes more steps and reaches the same state.
                self.counts["failed"] += 1
                self._waiting.setdefault(stream, found)
                logger.warning("cluster: snapshot of %s not stored (%s)", stream, type(error).__name__)
                await asyncio.sleep(RETRY_S)

    async def put_checkpoint(self, partition: int, data: bytes) -> None:
        async with asyncio.timeout(3 * TRANSFER_S):
            await self._broker.snapshots.put(f"/partition/{partition}", data)

    async def get_checkpoint(self, partition: int) -> checkpoint.Checkpoint | None:
        return await self._get(f"/partition/{partition}", checkpoint.decode)

    async def get(self, stream: str) -> Stored | None:
        """The newest usable snapshot, or None."""
        return await self._get(stream, decode)

    async def _get(self, name: str, read: Callable[[bytes], Any]) -> Any:
        from nats.js.errors import NotFoundError

        for _ in range(3):
            try:
                async with asyncio.timeout(TRANSFER_S):
                    found = await self._broker.snapshots.get(name)
                return await asyncio.get_running_loop().run_in_executor(None, read, found.data or b"")
            except NotFoundError:
                return None
            except frames.BadFrame as error:
                logger.error("cluster: snapshot of %s: %s", name, error)
                return None
            except Exception as error:
                # It may have been replaced while it was being read.
                logger.warning("cluster: snapshot of %s not read (%s)", name, type(error).__name__)
                await asyncio.sleep(0.2)
        return None
