"""A broker and its lines, as a client of nats-py sees them: messages take time, and may be lost, doubled or overtaken.

A real line keeps the order and loses messages only when it breaks; the weather can be worse than that.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import Any, NamedTuple

from nats.errors import ConnectionClosedError
from nats.errors import TimeoutError as NoAnswer

from simulation.scheduler import Process, Scheduler

STREAM = "$JS.API.DIRECT.GET."


class Weather(NamedTuple):
    """Of every message: chances that it is lost, doubled, overtaken or slow."""

    loss: float = 0.0
    twice: float = 0.0
    overtaken: float = 0.0
    slow: float = 0.0

    def seconds(self, rng: Random) -> float:
        return rng.uniform(0.02, 0.6) if rng.random() < self.slow else rng.uniform(0.0001, 0.003)


class Message:
    def __init__(self, client: Client, subject: str, data: bytes, reply: str, headers: dict | None):
        self._client, self.subject, self.data, self.reply, self.headers = client, subject, data, reply, headers

    async def respond(self, data: bytes) -> None:
        await self._client.publish(self.reply, data)


class Broker:
    """Routes messages, and keeps the durable stream, which survives everything."""

    def __init__(self, scheduler: Scheduler, rng: Random):
        self.scheduler, self.rng, self.weather = scheduler, rng, Weather()
        self.clients: list[Client] = []
        self.stream: list[bytes] = []
        self._known: set[str] = set()
        self.dialled = 0

    def route(self, sender: Client, subject: str, data: bytes, reply: str, headers: dict | None) -> None:
        if is_of_stream(subject):
            if subject.startswith(STREAM):
                self._read(sender, json.loads(data), reply)
            else:
                self._keep(sender, data, reply, headers or {})
            return
        heard = 0
        for client in list(self.clients):
            if client.known:
                for pattern in list(client.subscriptions):
                    if matches(pattern, subject):
                        heard += 1
                        client.receive(pattern, subject, data, reply, None, safe=False)
        if not heard and reply:
            self._answer(sender, reply, b"", {"Status": "503"})

    def _answer(self, client: Client, subject: str, data: bytes, headers: dict | None = None) -> None:
        for pattern in list(client.subscriptions):
            if matches(pattern, subject):
                client.receive(pattern, subject, data, "", headers, safe=True)

    def _keep(self, sender: Client, data: bytes, reply: str, headers: dict) -> None:
        name = headers.get("Nats-Msg-Id")
        if name is None or name not in self._known:
            self.stream.append(data)
        if name is not None:
            self._known.add(name)
        self._answer(sender, reply, b"{}")

    def _read(self, client: Client, wanted: dict, reply: str) -> None:
        stored = len(self.stream)
        if "last_by_subj" in wanted:
            if not stored:
                self._answer(client, reply, b"", {"Status": "404"})
            else:
                self._answer(client, reply, self.stream[-1], {"Nats-Sequence": str(stored)})
            return
        first, last = wanted["seq"], min(wanted["seq"] + wanted["batch"] - 1, stored)
        if first > stored:
            self._answer(client, reply, b"", {"Status": "404"})
            return
        for number in range(first, last + 1):
            about = {"Nats-Sequence": str(number), "Nats-Num-Pending": str(stored - number)}
            self._answer(client, reply, self.stream[number - 1], about)
        self._answer(client, reply, b"", {"Status": "204", "Nats-Num-Pending": str(stored - last)})


def is_of_stream(subject: str) -> bool:
    """Whether it is to the durable stream: what is stored, and what is read."""
    return subject.startswith(STREAM) or subject.endswith(".steps")


def matches(pattern: str, subject: str) -> bool:
    if "*" not in pattern:
        return pattern == subject
    parts, words = pattern.split("."), subject.split(".")
    return len(parts) == len(words) and all(p in ("*", w) for p, w in zip(parts, words, strict=True))


class _Line:
    """One direction of a connection."""

    def __init__(self, broker: Broker):
        self._broker, self._last = broker, 0.0

    def carry(self, deliver: Callable[[], None], safe: bool = False) -> None:
        """safe: of the connection itself, such as a ping: as TCP carries it."""
        rng, now, weather = self._broker.rng, self._broker.scheduler.time(), self._broker.weather
        times = 1
        if not safe:
            if weather.loss and rng.random() < weather.loss:
                return
            times += bool(weather.twice) and rng.random() < weather.twice
        for _ in range(times):
            when = now + weather.seconds(rng)
            if safe or not (weather.overtaken and rng.random() < weather.overtaken):
                when = self._last = max(when, self._last)
            self._broker.scheduler.call_at(when, deliver, context=Context())


class Subscription:
    """callback: called with messages one after the other; None to ask for them."""

    def __init__(self, client: Client, pattern: str, callback):
        self._client, self._pattern = client, pattern
        self.queue: asyncio.Queue[Message] = asyncio.Queue()
        if callback is not None:
            client.broker.scheduler.create_task(self._serve(callback), context=client.context.copy())

    async def _serve(self, callback) -> None:
        while True:
            await callback(await self.queue.get())

    async def next_msg(self, timeout: float) -> Message:
        try:
            return await asyncio.wait_for(self.queue.get(), timeout)
        except TimeoutError:
            raise NoAnswer from None

    async def unsubscribe(self) -> None:
        self._client.subscriptions.pop(self._pattern, None)


class Client:
    """What hub and owners use of nats-py's client.   known: whether the broker takes it to be connected."""

    def __init__(self, broker: Broker, name: str, process: Process, on_reconnect):
        self.broker, self.name, self.process, self.context = broker, name, process, process.context
        self._on_reconnect = on_reconnect
        self.subscriptions: dict[str, Subscription] = {}
        self.stats = {"reconnects": 0}
        self.is_connected, self.is_closed, self.known = True, False, True
        self._epoch, self._inboxes, self._number = 0, 0, broker.dialled
        self._waiting: list[tuple] = []
        self._up, self._down = _Line(broker), _Line(broker)
        broker.dialled += 1
        broker.clients.append(self)
        process.on_end.append(self._killed)

    def _killed(self) -> None:
        """What it has written is on its way; what was to be read is lost."""
        self.is_connected, self.is_closed, self.known = False, True, False
        self.subscriptions.clear()
        self.broker.clients.remove(self)
        if self.broker.rng.random() < 0.5:
            self._epoch += 1

    def cut(self, seconds: float, noticed: bool) -> None:
        """The line breaks, and is back after a while. noticed: by the broker at once."""
        if not self.is_connected:
            return
        self.is_connected, self.known = False, not noticed
        self._epoch += 1
        self.broker.scheduler.call_later(seconds, self._back, context=self.context)

    def _back(self) -> None:
        if self.is_closed:
            return
        self.is_connected, self.known = True, True
        self._epoch += 1
        self.stats["reconnects"] += 1
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            self._send(*message)
        if self._on_reconnect is not None:
            self.broker.scheduler.create_task(self._on_reconnect(), context=self.context.copy())

    def new_inbox(self) -> str:
        self._inboxes += 1
        return f"_INBOX_{self.name}.{self._number}x{self._inboxes}"

    async def subscribe(self, pattern: str, cb=None, pending_bytes_limit: int = 0) -> Subscription:
        self._check()
        found = self.subscriptions[pattern] = Subscription(self, pattern, cb)
        return found

    def _check(self) -> None:
        if self.is_closed:
            raise ConnectionClosedError

    async def publish(self, subject: str, data: bytes, reply: str = "", headers: dict | None = None) -> None:
        self._check()
        if self.is_connected:
            self._send(subject, data, reply, headers)
        else:
            self._waiting.append((subject, data, reply, headers))

    def _send(self, subject: str, data: bytes, reply: str, headers: dict | None) -> None:
        epoch = self._epoch

        def arrive() -> None:
            if epoch == self._epoch:
                self.broker.route(self, subject, data, reply, headers)

        self._up.carry(arrive, safe=is_of_stream(subject))

    def receive(self, pattern: str, subject: str, data: bytes, reply: str, headers: dict | None, safe: bool) -> None:
        """Of the broker. safe: what the broker itself says is lost with the line only."""
        epoch = self._epoch

        def arrive() -> None:
            subscription = self.subscriptions.get(pattern)
            if epoch == self._epoch and self.is_connected and subscription is not None:
                subscription.queue.put_nowait(Message(self, subject, data, reply, headers))

        self._down.carry(arrive, safe)

    async def request(self, subject: str, data: bytes, timeout: float, headers: dict | None = None) -> Message:
        inbox = self.new_inbox()
        replies = await self.subscribe(inbox)
        try:
            await self.publish(subject, data, reply=inbox, headers=headers)
            return await replies.next_msg(timeout)
        finally:
            await replies.unsubscribe()

    async def flush(self, timeout: float) -> None:
        self._check()
        answered, epoch = asyncio.get_running_loop().create_future(), self._epoch

        def pong() -> None:
            if epoch == self._epoch and self.is_connected and not answered.done():
                answered.set_result(None)

        if self.is_connected:
            self._up.carry(lambda: self._down.carry(pong, safe=True), safe=True)
        try:
            await asyncio.wait_for(answered, timeout)
        except TimeoutError:
            raise NoAnswer from None

    async def close(self) -> None:
        if not self.is_closed:
            self._killed()

    def jetstream(self) -> Any:
        return _Stream(self)


class _Stream:
    def __init__(self, client: Client):
        self._client = client

    async def add_stream(self, config) -> None: ...

    async def publish(self, subject: str, data: bytes, timeout: float, headers: dict) -> None:
        await self._client.request(subject, data, timeout, headers)
