"""The hub's line to the broker: turns to many agents at once, from ordinary code, over one connection.

An agent that is not connected is known at once: the broker says that nobody listens on its subject. One that does not
answer is asked again after a while: it may have died with the turn, and then be known to be gone, or be back. A line
that breaks is not the agents' fault: whatever was not answered is asked again when it is back, as every turn may be;
and nobody is late as long as the broker itself does not answer.
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
# Seconds to wait for the broker: for one answer of its own, and in all while it is away.
PATIENCE, OUTAGE = 30.0, 120.0
# Seconds after the broker was away in which agents may still be on their way back, and between two looks for them.
RETURN, LOOK = 2.0, 0.02
# Looks for one who answered the last time: a broker that reads its list of keys anew knows nobody for a moment.
LOOKS = 5
# Seconds after which an agent is asked the same again; then twice as many, and so on.
AGAIN = 0.1
# Seconds in which a broker answers a ping, if the line to it holds at all.
PROMPT = 1.0
# How the reason begins when an agent is there but has not answered in time.
LATE = "no answer within"
# The reason when it is not there at all.
AWAY = "not connected"


class Together(NamedTuple):
    """A message to all agents at once. read: of an agent's name and bytes its answer, or None if it is to another.

    before: publishes what agents are to hear first.
    """

    data: bytes
    read: Callable[[str, bytes], Any]
    before: Callable[[], Awaitable[None]]


class _Round:
    """Turns that are out. Replies are known by the round's number and the agent's place in it."""

    def __init__(self, number: int, turns: dict[str, bytes], line: int, together: Together | None = None):
        self.number, self.turns, self.names, self.together = number, turns, list(turns), together
        self.line = line  # which connection they went out on
        self.replies: dict[str, Any] = {}
        self.gone: dict[str, str] = {}  # who cannot be asked, and why
        self.open = set(turns)  # everybody else
        self.looks = 0  # how often those who are gone were looked for
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
        """Those who could not be asked are asked again."""
        self.looks += 1
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
    """connect: makes the connection; called with what to do when it has come back, see `broker.connect`.

    deadlines: how long agents may take when `exchange` is not told; learnt if not given.
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
        self._heard: set[str] = set()  # who answered when last asked
        self._loop = Loop("nashcast bus")
        try:
            self.client = self._loop.run(self._connected(connect))
        except BaseException:
            self._loop.close()
            raise

    def exchange(self, turns: dict[str, bytes], deadline: float | None = None) -> dict[str, bytes | Failure]:
        """Every turn to its agent's own subject, all at once; the replies, and why there are none."""
        return self._loop.run(self._exchange(turns, self._deadlines if deadline is None else Fixed(deadline)))

    def announce(self, names: Sequence[str], together: Together, deadline: float | None = None) -> dict[str, Any]:
        """One message to all agents at once. Answers come to `answered`, and are what `read` makes of them, if any.

        Agents that do not answer in a while are asked the same again, each by itself.
        """
        deadlines = self._deadlines if deadline is None else Fixed(deadline)
        return self._loop.run(self._exchange(dict.fromkeys(names, together.data), deadlines, together))

    def answered(self, name: str, data: bytes) -> None:
        """An agent's answer to what was announced; one that is too late is not read."""
        now = self._round
        if now is not None and now.together is not None and name in now.open:
            self._take(now, name, data)

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = PATIENCE) -> T:
        """Something else on the same connection."""
        return self._loop.run(work, timeout)

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """The same without waiting for it."""
        return self._loop.start(work)

    def finish(self, started: Future[T]) -> T:
        """Wait for it after all."""
        return self._loop.finish(started)

    def close(self) -> None:
        with suppress(Exception):  # of a connection that is broken anyway
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
        """The number of the connection: another one after each that broke."""
        return self.client.stats["reconnects"]

    async def _exchange(
        self, turns: dict[str, bytes], deadlines: Deadlines, together: Together | None = None
    ) -> dict[str, Any]:
        await self.wait_for_broker()
        self._rounds += 1
        self._round = now = _Round(self._rounds, turns, self._line, together)
        allowed, again, excused = {name: deadlines.of(name) for name in turns}, AGAIN, False
        if together is None:
            await self._send(now, now.names)
        else:
            await together.before()
            await self.client.publish(everybody_subject(self._federation), together.data)
        while now.open or self._may_return(now):
            await self.wait_for_broker()
            if now.line != self._line:  # back, and about to ask again
                await asyncio.sleep(LOOK)
                continue
            longest = max((allowed[name] for name in now.open), default=RETURN)
            left = now.began + longest - time.monotonic()
            if left <= 0:
                # A broker that has just answered again has only just passed on the turns.
                seconds = await self._pinged(now.line)
                if seconds < (PROMPT if excused else min(PROMPT, longest / 4)):
                    break
                excused = excused or seconds < PROMPT  # a line may be slow, and nobody for ever
                now.began = time.monotonic()
            elif not now.open:
                await asyncio.sleep(LOOK)
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
        """Whether agents that are not connected may just be slower than the hub to find the broker again."""
        if not now.gone:
            return False
        blink = now.looks < LOOKS and any(why == AWAY and name in self._heard for name, why in now.gone.items())
        return blink or time.monotonic() < self._returned + RETURN

    async def _send(self, now: _Round, names: list[str]) -> None:
        from nats.errors import Error

        places = {name: place for place, name in enumerate(now.names)}
        for name in names:
            subject, reply = ask_subject(self._federation, name), f"{self._inbox}.{now.number}.{places[name]}"
            try:
                await self.client.publish(subject, now.turns[name], reply=reply)
            except Error as error:  # such as a turn longer than the broker takes
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
        """Seconds the broker takes to answer; while it does not, it says nothing of agents that they do not either."""
        began = time.monotonic()
        # Never cancelled on a line that lives: nats-py stops reading when the answer to a ping comes too late.
        ping = asyncio.create_task(self.client.flush(OUTAGE))
        while not (await asyncio.wait({ping}, timeout=LOOK))[0]:
            if not self.client.is_connected or line != self._line:
                ping.cancel()
                return float("inf")
        return time.monotonic() - began if ping.exception() is None and line == self._line else float("inf")

    async def answers(self) -> bool:
        """Whether the broker itself answers promptly, on the connection there is now."""
        return self.client.is_connected and await self._pinged(self._line) < PROMPT

    async def wait_for_broker(self) -> None:
        """Until there is a connection. Raises when that has taken too long, or the hub is shut out."""
        began = time.monotonic()
        while not self.client.is_connected:
            if self.client.is_closed:
                raise NashcastError("the broker has shut the hub out: see the log of either.")
            if time.monotonic() - began > OUTAGE:
                raise NashcastError(f"the broker has been away for {OUTAGE:g} s. Start it; then start the hub again.")
            await asyncio.sleep(LOOK)

    def _found(self, now: _Round, name: str, allowed: float) -> Any:
        if name in now.replies:
            return now.replies[name]
        return Failure(now.gone.get(name, f"{LATE} {allowed:.3g} s"))
