"""The hub's connection to the broker: sends turns to many agents at once, from synchronous code.

An agent that is not connected is detected at once: the broker reports that its subject has no subscriber. An agent
that does not answer is sent the same turn again after a back-off: it may have died, and then is reported as not
connected, or has returned. Turns are idempotent: after a broken connection, all unanswered turns are sent again. No
agent counts as late while the broker itself does not answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from nashcast.errors import NashcastError
from nashcast.remote.hub.deadlines import Deadlines, Fixed, Learned
from nashcast.remote.hub.event_loop import Loop
from nashcast.remote.wire.subjects import ask_subject, everybody_subject
from nashcast.remote.wire.transport import Failure

T = TypeVar("T")
# Timeouts for one answer of the broker, and for an outage of the broker.
ANSWER_TIMEOUT_S, OUTAGE_S = 30.0, 120.0
# Grace period for agents to reconnect after an outage, and the polling interval.
RETURN_S, POLL_S = 2.0, 0.02
# Retries for an agent that answered the last time: while a broker reloads its keys, no agent is connected.
RETRIES = 5
# First delay before an agent is sent the same turn again; doubled each time.
RETRY_BACKOFF_S = 0.1
# Time in which a broker answers a ping on a working connection.
PING_TIMEOUT_S = 1.0
# Prefix of the reason for an agent that is connected but has not answered in time.
LATE = "no answer within"
# The reason for an agent that is not connected.
AWAY = "not connected"


class Together(NamedTuple):
    """A message to all agents at once. before: publishes messages that must precede it.

    read: decodes an answer from an agent's name and bytes; None if it answers another message.
    """

    data: bytes
    read: Callable[[str, bytes], Any]
    before: Callable[[], Awaitable[None]]


class _Round:
    """Turns that were sent. Replies carry the round's number and the agent's index in it."""

    def __init__(self, number: int, turns: dict[str, bytes], line: int, together: Together | None = None):
        self.number, self.turns, self.names, self.together = number, turns, list(turns), together
        self.line = line  # number of the connection they were sent on
        self.replies: dict[str, Any] = {}
        self.gone: dict[str, str] = {}  # agents that cannot be reached, and why
        self.open = set(turns)  # agents whose replies are awaited
        self.retries = 0  # of agents that are gone
        self.began = time.monotonic()
        self.over = asyncio.get_running_loop().create_future()  # done when none is open

    def replied(self, name: str, answer: Any) -> None:
        self.replies[name] = answer
        self.gone.pop(name, None)
        self._settled(name)

    def failed(self, name: str, reason: str) -> None:
        self.gone[name] = reason
        self._settled(name)

    def again(self) -> list[str]:
        """Await the agents that could not be reached again, and return their names."""
        self.retries += 1
        missing, self.gone = list(self.gone), {}
        self.open.update(missing)
        if self.open and self.over.done():
            self.over = self.over.get_loop().create_future()
        return missing

    def _settled(self, name: str) -> None:
        self.open.discard(name)
        if not self.open and not self.over.done():
            self.over.set_result(None)


class Bus:
    """connect: makes the connection; called with the callback for reconnection, see `broker.connect`.

    deadlines: of agents, where `exchange` is given none; learnt by default.
    """

    def __init__(
        self,
        federation: str,
        connect: Callable[[Callable[[], Awaitable[None]]], Awaitable[Any]],
        deadlines: Deadlines | None = None,
    ):
        self._federation = federation
        self._deadlines = Learned() if deadlines is None else deadlines
        self._round: _Round | None = None
        self._rounds = 0
        self._returned = float("-inf")
        self._heard: set[str] = set()  # agents that answered the last turn
        self._loop = Loop("nashcast bus")
        try:
            self.client = self._loop.run(self._connected(connect))
        except BaseException:
            self._loop.close()
            raise

    def exchange(self, turns: dict[str, bytes], deadline: float | None = None) -> dict[str, bytes | Failure]:
        """Send every turn to its agent's own subject, all at once. Returns replies, or the reason for their absence."""
        return self._loop.run(self._exchange(turns, self._deadlines if deadline is None else Fixed(deadline)))

    def announce(self, names: Sequence[str], together: Together, deadline: float | None = None) -> dict[str, Any]:
        """Publish one message to all agents. Answers arrive at `answered` and are decoded by `together.read`.

        Agents that do not answer within the back-off are sent the same message again, individually.
        """
        deadlines = self._deadlines if deadline is None else Fixed(deadline)
        return self._loop.run(self._exchange(dict.fromkeys(names, together.data), deadlines, together))

    def answered(self, name: str, data: bytes) -> None:
        """Take an agent's answer to an announced message. Late answers are discarded."""
        now = self._round
        if now is not None and now.together is not None and name in now.open:
            self._take(now, name, data)

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = ANSWER_TIMEOUT_S) -> T:
        """Run a coroutine on the same connection and wait for it."""
        return self._loop.run(work, timeout)

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine without waiting for it."""
        return self._loop.start(work)

    def finish(self, started: Future[T]) -> T:
        """Wait for a started coroutine."""
        return self._loop.finish(started)

    def close(self) -> None:
        with suppress(Exception):  # the connection may be broken already
            self._loop.run(self.client.close(), 5.0)
        self._loop.close()

    async def _connected(self, connect) -> Any:
        client = await connect(self._returning)
        self._inbox = client.new_inbox()
        await client.subscribe(f"{self._inbox}.*.*", cb=self._receive)
        return client

    async def _returning(self) -> None:
        self._returned, now = time.monotonic(), self._round
        if now is not None:
            now.line, now.began = self._line, self._returned
            now.again()
            await self._send(now, sorted(now.open))

    @property
    def _line(self) -> int:
        """The number of the connection; it changes with each reconnection."""
        return self.client.stats["reconnects"]

    async def _exchange(
        self, turns: dict[str, bytes], deadlines: Deadlines, together: Together | None = None
    ) -> dict[str, Any]:
        await self.wait_for_broker()
        self._rounds += 1
        self._round = now = _Round(self._rounds, turns, self._line, together)
        allowed, again, excused = {name: deadlines.of(name) for name in turns}, RETRY_BACKOFF_S, False
        if together is None:
            await self._send(now, now.names)
        else:
            await together.before()
            await self.client.publish(everybody_subject(self._federation), together.data)
        while now.open or self._may_return(now):
            await self.wait_for_broker()
            if now.line != self._line:  # reconnected: `_returning` sends the turns again
                await asyncio.sleep(POLL_S)
                continue
            longest = max((allowed[name] for name in now.open), default=RETURN_S)
            left = now.began + longest - time.monotonic()
            if left <= 0:
                # A broker that has only now answered a ping may have delivered the turns only now.
                seconds = await self._pinged(now.line)
                if seconds < (PING_TIMEOUT_S if excused else min(PING_TIMEOUT_S, longest / 4)):
                    break
                excused = excused or seconds < PING_TIMEOUT_S  # a slow connection extends the deadline once
                now.began = time.monotonic()
            elif not now.open:
                await asyncio.sleep(POLL_S)
                await self._send(now, now.again())
            else:
                await asyncio.wait([now.over], timeout=min(left, again))
                if now.open and again < left:
                    again *= 2
                    await self._send(now, sorted(now.open))
        self._round = None
        self._heard.difference_update(now.names)
        self._heard.update(now.replies)
        for name in now.open:
            deadlines.missed(name)
        return {name: self._found(now, name, allowed[name]) for name in now.names}

    def _may_return(self, now: _Round) -> bool:
        """Whether agents that are not connected may still be reconnecting to the broker."""
        if not now.gone:
            return False
        blink = now.retries < RETRIES and any(why == AWAY and name in self._heard for name, why in now.gone.items())
        return blink or time.monotonic() < self._returned + RETURN_S

    async def _send(self, now: _Round, names: list[str]) -> None:
        from nats.errors import Error

        places = {name: place for place, name in enumerate(now.names)}
        for name in names:
            subject, reply = ask_subject(self._federation, name), f"{self._inbox}.{now.number}.{places[name]}"
            try:
                await self.client.publish(subject, now.turns[name], reply=reply)
            except Error as error:  # such as a turn longer than the broker's limit
                now.failed(name, f"cannot be asked: {error}")

    async def _receive(self, message: Any) -> None:
        *_, number, place = message.subject.split(".")
        now = self._round
        if now is None or number != str(now.number) or not place.isdigit() or int(place) >= len(now.names):
            return  # too late: its round is over
        name = now.names[int(place)]
        if name in now.replies:
            return
        if message.headers and message.headers.get("Status") == "503":
            now.failed(name, AWAY)
        else:
            self._take(now, name, message.data)

    def _take(self, now: _Round, name: str, data: bytes) -> None:
        answer = data if now.together is None else now.together.read(name, data)
        if answer is not None:
            now.replied(name, answer)
            self._deadlines.took(name, time.monotonic() - now.began)

    async def _pinged(self, line: int) -> float:
        """Seconds that the broker takes to answer a ping; infinite if the connection breaks."""
        began = time.monotonic()
        # Never cancelled on a live connection: nats-py stops reading when the answer to a ping comes too late.
        ping = asyncio.create_task(self.client.flush(OUTAGE_S))
        while not (await asyncio.wait({ping}, timeout=POLL_S))[0]:
            if not self.client.is_connected or line != self._line:
                ping.cancel()
                return float("inf")
        return time.monotonic() - began if ping.exception() is None and line == self._line else float("inf")

    async def answers(self) -> bool:
        """Whether the broker answers a ping in time on the present connection."""
        return self.client.is_connected and await self._pinged(self._line) < PING_TIMEOUT_S

    async def wait_for_broker(self) -> None:
        """Wait for a connection. Raises after `OUTAGE_S`, or if the broker refuses the hub."""
        began = time.monotonic()
        while not self.client.is_connected:
            if self.client.is_closed:
                raise NashcastError("the broker has shut the hub out: see the log of either.")
            if time.monotonic() - began > OUTAGE_S:
                raise NashcastError(f"the broker has been away for {OUTAGE_S:g} s. Start it; then start the hub again.")
            await asyncio.sleep(POLL_S)

    def _found(self, now: _Round, name: str, allowed: float) -> Any:
        if name in now.replies:
            return now.replies[name]
        return Failure(now.gone.get(name, f"{LATE} {allowed:.3g} s"))
