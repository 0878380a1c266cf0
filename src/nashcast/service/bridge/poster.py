"""The thread that posts brokers' messages in order and acknowledges each once it is durable."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import Any

from nashcast.client import Client, ServiceRefused
from nashcast.service.bridge.messages import Message

logger = logging.getLogger("nashcast.bridge")
# Queue length in messages, and rows per post.
WAITING, TOGETHER = 2000, 500
# First and longest back-off in seconds of a post without a response.
BACKOFF_S, MAX_BACKOFF_S = 0.2, 10.0
# Transient statuses: no response, no valid token at present, rate limit, busy, full disk.
_TRANSIENT = (0, 401, 403, 408, 429, 500, 502, 503, 504, 507)


class Poster(threading.Thread):
    """make_client: called once, in this thread."""

    def __init__(self, make_client: Callable[[], Client]):
        super().__init__(name="nashcast bridge posts", daemon=True)
        self._make_client = make_client
        self._messages: queue.Queue[Message | None] = queue.Queue(WAITING)
        self._stopping = threading.Event()
        self.counts = {"posted": 0, "duplicates": 0, "refused": 0}
        self._refused: set[str] = set()

    def put(self, message: Message) -> None:
        """Add a message; blocks while the queue is full."""
        while not self._stopping.is_set():
            try:
                self._messages.put(message, timeout=0.5)
                return
            except queue.Full:
                continue

    def stop(self) -> None:
        """Stop without acknowledging queued messages, so that brokers redeliver them."""
        self._stopping.set()

    def run(self) -> None:
        with self._make_client() as client:
            while not self._stopping.is_set():
                group = self._group()
                for stream, labels, messages in _runs(group):
                    self._post(client, stream, labels, messages)

    def _group(self) -> list[Message]:
        found: list[Message] = []
        count = 0
        while count < TOGETHER:
            try:
                message = self._messages.get(timeout=0.2) if not found else self._messages.get_nowait()
            except queue.Empty:
                break
            if message is not None:
                found.append(message)
                count += len(message.rows)
        return found

    def _post(self, client: Client, stream: str, labels: bool, messages: list[Message]) -> None:
        rows, wait = [row for message in messages for row in message.rows], BACKOFF_S
        while not self._stopping.is_set():
            try:
                receipt = _send(client, stream, labels, rows)
            except ServiceRefused as error:
                if error.status not in _TRANSIENT:
                    self._refuse(client, stream, labels, messages, error)
                    return
                logger.warning("stream %s: %s; trying again", stream, error)
                self._stopping.wait(wait)
                wait = min(2 * wait, MAX_BACKOFF_S)
                continue
            self.counts["posted"] += receipt["accepted"]
            self.counts["duplicates"] += receipt["duplicates"]
            for message in messages:
                message.done()
            return

    def _refuse(self, client: Client, stream: str, labels: bool, messages: list[Message], error: Exception) -> None:
        """Drop a bad message: it must neither block others nor be redelivered forever."""
        if len(messages) > 1:
            for message in messages:
                self._post(client, stream, labels, [message])
            return
        self.counts["refused"] += 1
        if stream not in self._refused:
            # One log line per stream: a faulty sender usually sends many bad messages.
            self._refused.add(stream)
            logger.error("stream %s refuses a message: %s", stream, str(error)[:300])
        messages[0].done()


def _send(client: Client, stream: str, labels: bool, rows: list[dict[str, Any]]) -> dict[str, Any]:
    if labels:
        return client.stream(stream).post_labels(rows)
    return client.stream(stream).post(rows)


def _runs(messages: list[Message]) -> list[tuple[str, bool, list[Message]]]:
    """Group messages by stream and kind, preserving the order within a stream."""
    found: list[tuple[str, bool, list[Message]]] = []
    last: dict[str, int] = {}
    for message in messages:
        at = last.get(message.stream)
        if at is None or found[at][1] != message.labels:
            last[message.stream] = len(found)
            found.append((message.stream, message.labels, []))
        found[last[message.stream]][2].append(message)
    return found
