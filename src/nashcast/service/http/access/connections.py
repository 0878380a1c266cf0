"""Limits on connections, counted on accept before TLS, in total and by address; and on open files."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
import time
from collections import Counter
from typing import Any

from nashcast.errors import InvalidInput

logger = logging.getLogger("nashcast.service")
# File descriptors for the journal, its readers, snapshots, workers and logs.
OTHER = 200
WANTED = 65_536
# Seconds between two log lines on connections that cannot be accepted.
_QUIET_S = 10.0


def raise_descriptors(connections: int) -> int:
    """Raise the limit of open files. Returns the number of connections it allows, at most `connections`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, WANTED) if hard != resource.RLIM_INFINITY else WANTED
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    allowed = min(connections, soft - OTHER)
    if allowed < 16:
        remedy = f"Allow at least {OTHER + 16}: ulimit -n."
        raise InvalidInput("descriptors", f"a limit of {soft} open files", remedy)
    if allowed < connections:
        logger.warning("%d connections at once, not %d: only %d files may be open", allowed, connections, soft)
    return allowed


class ConnectionLimit:
    """Counts open connections, in total and by address."""

    def __init__(self, most: int, per_address: int):
        self._most, self._per_address = most, per_address
        self._open: Counter[str] = Counter()
        self._last = -_QUIET_S
        self.total = self.refused = 0

    def enter(self, address: str) -> bool:
        if self.total < self._most and self._open[address] < self._per_address:
            self.total += 1
            self._open[address] += 1
            return True
        self.refused += 1
        now = time.monotonic()
        if now - self._last >= _QUIET_S:
            self._last = now
            logger.warning(
                "too many connections: %d in all, %d from %s; %d were closed at once so far", self.total,
                self._open[address], address, self.refused,
            )  # fmt: skip
        return False

    def leave(self, address: str) -> None:
        self.total -= 1
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]


class Listener(socket.socket):
    """A listening socket that closes connections beyond the limit before the TLS handshake."""

    limit: ConnectionLimit | None = None

    def accept(self):
        while True:
            connection, address = super().accept()
            name = address[0] if isinstance(address, tuple) else "unknown"
            if self.limit is None:
                return connection, address
            if self.limit.enter(name):
                return _Counted(connection, self.limit, name), address
            connection.close()


class _Counted(socket.socket):
    """A connection that is counted until it is closed."""

    def __init__(self, connection: socket.socket, limit: ConnectionLimit, address: str):
        super().__init__(connection.family, connection.type, connection.proto, fileno=connection.detach())
        self._place: tuple[ConnectionLimit, str] | None = (limit, address)

    def close(self) -> None:
        super().close()
        place, self._place = self._place, None
        if place is not None:
            place[0].leave(place[1])


class QuietErrors:
    """Rate-limits the event loop's reports of failed accepts, with their number."""

    def __init__(self) -> None:
        self._last, self._count = -_QUIET_S, 0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS):
            loop.default_exception_handler(context)
            return
        self._count += 1
        now = time.monotonic()
        if now - self._last >= _QUIET_S:
            logger.error("connections cannot be accepted: %s (%d times)", error, self._count)
            self._last, self._count = now, 0
