"""Readers of server-sent events, counted over all streams."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from nashcast.service.http.sse import Feed, TooManyReaders
from nashcast.service.streams.stream import Stream


class EventReaders:
    """most: maximum number of readers at once."""

    def __init__(self, most: int):
        self._most = most
        self._tasks: dict[int, asyncio.Task] = {}
        self.count = 0

    def enter(self, stream: Stream) -> Feed:
        """Register a reader; `leave` unregisters it."""
        if self.count >= self._most:
            raise TooManyReaders
        if stream.feed is None:
            stream.feed = Feed(lambda: _greeting(stream), self._most)
            self._tasks[stream.id] = asyncio.create_task(stream.feed.run())
        stream.feed.enter()
        self.count += 1
        return stream.feed

    def leave(self, feed: Feed) -> None:
        feed.leave()
        self.count -= 1

    def drop(self, stream: Stream) -> None:
        """Disconnect the readers of a stream that is no longer served."""
        task = self._tasks.pop(stream.id, None)
        if task is not None:
            task.cancel()
        if stream.feed is not None:
            stream.feed.close()

    def end(self, streams: Iterable[Stream]) -> None:
        """Notify all readers that the service stops."""
        for stream in streams:
            if stream.feed is not None:
                stream.feed.close()

    def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()


def _greeting(stream: Stream) -> dict:
    return {"step": stream.step, "agents": stream.names, "coverages": list(stream.config.serve.coverages)}
