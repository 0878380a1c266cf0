"""Server-sent events: one message for all readers, at most every `INTERVAL` seconds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from nashcast.service.journal.entries import Entry, Outcome
from nashcast.service.streams.views import encoded, forecast_row, target_row

INTERVAL = 0.1
# Seconds between heartbeats of an idle stream, by which both ends detect a broken connection.
HEARTBEAT = 15.0
# Steps in one message; beyond this number, the newest.
MOST_STEPS = 200
# Messages buffered for a slow reader; it is notified of missed ones.
BACKLOG = 50


class TooManyReaders(Exception):
    """The maximum number of readers is reached."""


class Feed:
    """greeting: data of a reader's first message."""

    def __init__(self, greeting: Callable[[], dict[str, Any]], most_readers: int = 200):
        self._greeting, self._most = greeting, most_readers
        self._entries: deque[Entry] = deque(maxlen=MOST_STEPS)
        self._outcomes: deque[Outcome] = deque(maxlen=MOST_STEPS)
        self._arrived = 0
        self._events: deque[tuple] = deque(maxlen=MOST_STEPS)
        self._standing: bytes | None = None
        self._messages: deque[tuple[int, bytes]] = deque(maxlen=BACKLOG)
        self._number = 0
        self._news = asyncio.Event()
        self._something = asyncio.Event()
        self._closed = False
        self.readers = 0
        self.sent = 0

    def add(
        self, entries: list[Entry], outcomes: list[Outcome], events: list[tuple], standing: bytes | None = None
    ) -> None:  # fmt: skip
        """Call in the event loop. standing: the current forecast as JSON."""
        if not self.readers:
            return
        self._arrived += len(entries)
        self._entries.extend(entries)
        self._outcomes.extend(outcomes)
        self._events.extend(events)
        self._standing = standing
        self._something.set()

    async def run(self) -> None:
        """Combine new data into messages until cancelled."""
        while True:
            await self._something.wait()
            self._something.clear()
            self._send(self._message())
            await asyncio.sleep(INTERVAL)

    def close(self) -> None:
        self._closed = True
        self._wake()

    def enter(self) -> None:
        """Register a reader; `leave` unregisters it."""
        if self.readers >= self._most:
            raise TooManyReaders
        self.readers += 1

    def leave(self) -> None:
        self.readers -= 1

    async def messages(self, welcome: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Messages for one reader. welcome: called repeatedly; the stream ends when it returns False."""
        yield b"retry: 1000\n" + _event("hello", self._greeting())
        seen = self._number
        while not self._closed and welcome():
            news = self._news
            if seen == self._number:
                try:
                    await asyncio.wait_for(news.wait(), HEARTBEAT)
                except TimeoutError:
                    yield b": alive\n\n"
                continue
            ready = [(number, data) for number, data in self._messages if number > seen]
            if ready[0][0] > seen + 1:
                yield _event("missed", {"messages": ready[0][0] - seen - 1})
            for number, data in ready:
                yield data
                seen = number
                self.sent += 1
        yield _event("end", {"why": "the service stops" if self._closed else "the token is no longer valid"})

    def _message(self) -> bytes:
        entries, outcomes, events = list(self._entries), list(self._outcomes), list(self._events)
        skipped = self._arrived - len(entries)
        self._entries.clear()
        self._outcomes.clear()
        self._events.clear()
        self._arrived = 0
        data = {
            "targets": [target_row(entry) for entry in entries],
            "forecasts": [{"step": outcome.step, **forecast_row(outcome)} for outcome in outcomes],
            "skipped": skipped,
            "log": [dict(zip(("at", "step", "kind", "text"), event, strict=True)) for event in events],
        }
        return _line("steps", encoded(data)[:-1] + b',"standing":' + (self._standing or b"null") + b"}")

    def _send(self, data: bytes) -> None:
        self._number += 1
        self._messages.append((self._number, data))
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _event(kind: str, data: Any) -> bytes:
    return _line(kind, encoded(data))


def _line(kind: str, data: bytes) -> bytes:
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"
