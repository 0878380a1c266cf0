"""Runs an agent for its owner: connects to the broker, says hello, and answers the hub's turns."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeGuard
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from nashcast.agents.agent import Agent
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.errors import InvalidInput, NashcastError
from nashcast.remote.broker.certificates.certs import AUTHORITY
from nashcast.remote.broker.certificates.expiry import ExpiryWatch
from nashcast.remote.broker.certificates.keys import read_seed
from nashcast.remote.broker.running.server import connect
from nashcast.remote.masking.masks import read_enrolled
from nashcast.remote.masking.owner import MaskSettings
from nashcast.remote.masking.rule import LEAST
from nashcast.remote.owner.catch_up import missed_events, missed_inputs
from nashcast.remote.owner.joint_owner import JointOwner
from nashcast.remote.owner.joint_runner import JointRunner
from nashcast.remote.owner.owner import Owner
from nashcast.remote.owner.warm_up import warm_up
from nashcast.remote.wire.checks import check_notice
from nashcast.remote.wire.format import MalformedMessage, unpack
from nashcast.remote.wire.joint.joint_messages import is_told
from nashcast.remote.wire.messages import Notice
from nashcast.remote.wire.subjects import ask_subject, everybody_subject, tell_subject

log = logging.getLogger("nashcast.remote")
# Timeout for reading missed inputs, timeout of one answer of the broker, and delay between attempts.
CATCH_UP_S, ANSWER_S, RETRY_S = 60.0, 2.0, 0.1
# A turn answered within QUICK_S makes the next likely to be as quick; SLOW names calls that may take longer anyway.
QUICK_S, SLOW = 0.05, (b"begin", b"missed")
# Interval between checks of certificates.
EXPIRY_S = 3600.0


def serve_agent(
    agent: Agent | PaperAgent,
    hub: str,
    *,
    key: str | Path,
    certs: str | Path | None = None,
    state: str | Path | None = None,
    sent: Callable[[str], None] | None = None,
    trusted: str | Path | None = None,
    least_present: int = LEAST,
    patience: float = 20.0,
) -> Owner | JointOwner:
    """Take part in a federation until the process is stopped, or the broker refuses this agent.

    hub: tls://HOST:PORT/FEDERATION, or nats:// without TLS.   key: the agent's seed, see `nashcast enroll request`.
    certs: a folder with ca.pem and the agent's certificate.   state: the file of the agent's state.
    agent: plays the joint game; with `decoders=Window(…)` the paper's.
    sent: called with a description of every message sent.   trusted: a file of the other agents' public keys, see
    `nashcast enroll list --toml`; with it the agent plays masked games only.
    least_present: minimum number of agents in a masked sum. If it is the number of all agents, then hub, broker and all
    other agents but one cannot together compute anything of this one; but there is no joint game while one is away.
    patience: timeout of the first connection in seconds.
    """
    runner = Runner(
        agent, hub, key=key, certs=certs, state=state, sent=sent, trusted=trusted, least_present=least_present
    )
    if not plays_joint(agent):
        warm_up()
    return asyncio.run(runner.run(patience))


def plays_joint(agent: Agent | PaperAgent) -> TypeGuard[Agent]:
    """Whether an agent plays the joint game; an agent with a `Window` plays the paper's."""
    return isinstance(agent, Agent) and agent.decoders is None


def broker_and_federation(hub: str) -> tuple[str, str]:
    """The two parts of an agent's address of its hub.

    >>> broker_and_federation("tls://localhost:4222/tide")
    ('tls://localhost:4222', 'tide')
    """
    parts = urlsplit(hub)
    federation = parts.path.strip("/")
    if not parts.netloc or not federation or "/" in federation:
        raise InvalidInput("hub", f"{hub!r:.80}", "Pass tls://HOST:PORT/FEDERATION, as the hub's operator says.")
    return urlunsplit((parts.scheme, parts.netloc, "", "", "")), federation


class Runner:
    """One agent and its connection to the broker; see `serve_agent`."""

    def __init__(
        self,
        agent: Agent | PaperAgent,
        hub: str,
        *,
        key: str | Path,
        certs: str | Path | None = None,
        state: str | Path | None = None,
        sent: Callable[[str], None] | None = None,
        trusted: str | Path | None = None,
        least_present: int = LEAST,
    ):
        self._url, self._federation = broker_and_federation(hub)
        self._agent, self._key, self._certs = agent, key, certs
        masks = None
        if trusted is not None:
            masks = MaskSettings(self._federation, read_seed(key), read_enrolled(trusted), least_present)
        self.owner: Owner | JointOwner
        self._joint: JointRunner | None = None
        if plays_joint(agent):
            self.owner = JointOwner(agent, state=state, missed=self._missed_events, log=sent, masks=masks)
            self._joint = JointRunner(self.owner, self._tell)
        else:
            self.owner = Owner(agent, state=state, inputs=self._missed, log=sent, masks=masks)
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn: Any = None  # the latest turn to be answered; it replaces an earlier one that was not begun
        self._quick, self._busy = False, False  # whether the last turn was quick, and whether one is being processed
        self._woken = asyncio.Event()
        self._ended: str | None = None
        self._expiry = None if certs is None else ExpiryWatch(certs, (agent.name, AUTHORITY))

    def health(self) -> dict[str, Any]:
        """Days until the agent's certificates expire, by name, and warnings in words."""
        if self._expiry is None:
            return {"certificate days": {}, "warnings": []}
        return {"certificate days": self._expiry.days_left(), "warnings": self._expiry.warnings()}

    async def _warn_of_expiry(self) -> None:
        while self._expiry is not None:
            self._expiry.tell()
            await asyncio.sleep(EXPIRY_S)

    async def run(self, patience: float = 20.0) -> Owner | JointOwner:
        self._loop = asyncio.get_running_loop()
        for each in (signal.SIGTERM, signal.SIGINT):
            with suppress(NotImplementedError, ValueError, RuntimeError):  # not in the main thread
                self._loop.add_signal_handler(each, self.stop)
        self._client = await connect(
            self._url, seed_file=self._key, name=self._agent.name, tls=self._certs, patience=patience,
            on_reconnect=self._greet, on_close=self._closed,
        )  # fmt: skip
        try:
            await self._client.subscribe(ask_subject(self._federation, self._agent.name), cb=self._asked)
            await self._client.subscribe(everybody_subject(self._federation), cb=self._noticed)
            await self._greet()
            watching = asyncio.create_task(self._warn_of_expiry())
            await self._answer_turns()
            watching.cancel()
        finally:
            with suppress(Exception):  # the connection may be broken already
                await asyncio.wait_for(self._client.close(), ANSWER_S)
        if self._ended:
            raise NashcastError(self._ended)
        return self.owner

    def stop(self) -> None:
        self._ended = self._ended or ""
        self._woken.set()

    async def _answer_turns(self) -> None:
        """Answer slow turns, one after the other in a thread, so that the connection stays alive."""
        assert self._loop is not None
        while self._ended is None:
            await self._woken.wait()
            self._woken.clear()
            turn, self._turn = self._turn, None
            if turn is not None:
                began = time.monotonic()
                assert isinstance(self.owner, Owner)
                reply = await self._loop.run_in_executor(None, self.owner.answer, turn.data)
                await self._respond(turn, reply, time.monotonic() - began)
            self._busy = self._turn is not None

    async def _asked(self, message: Any) -> None:
        if self._joint is not None:
            await self._joint.asked(message)
            return
        assert isinstance(self.owner, Owner)
        if self._quick and not self._busy and not any(kind in message.data for kind in SLOW):
            began = time.monotonic()  # without the overhead of a thread
            reply = self.owner.answer(message.data)
            await self._respond(message, reply, time.monotonic() - began)
        else:
            self._turn, self._busy = message, True
            self._woken.set()

    async def _respond(self, turn: Any, reply: bytes, seconds: float) -> None:
        self._quick = seconds < QUICK_S
        try:
            await turn.respond(reply)
        except Exception as error:  # the connection broke: the hub asks again
            log.warning("%s: a reply was not sent: %s", self._agent.name, error)

    async def _noticed(self, message: Any) -> None:
        if is_told(message.data):
            if self._joint is not None:
                await self._joint.told(message)
            return
        try:
            notice = unpack(message.data, (Notice,))
            check_notice(notice)
        except MalformedMessage as error:
            log.warning("%s: a notice makes no sense: %s", self._agent.name, error)
            return
        who = f": {', '.join(notice.names)}" if notice.names else ""
        log.info("%s: step %d, %s%s", self._agent.name, notice.step, notice.kind, who)
        if notice.kind == "begins":
            await self._greet()

    async def _greet(self) -> None:
        await self._tell(self.owner.hello())

    async def _tell(self, data: bytes) -> None:
        await self._client.publish(tell_subject(self._federation, self._agent.name), data)

    async def _closed(self) -> None:
        if self._ended is None:
            self._ended = f"the broker has shut {self._agent.name!r} out: its key was revoked, or is not enrolled."
            self._woken.set()

    def _missed(self, first: int, last: int) -> Sequence[np.ndarray | None]:
        """Called by the owner, in its thread."""
        assert self._loop is not None
        assert asyncio._get_running_loop() is None, "a loop cannot wait for itself"
        found = asyncio.run_coroutine_threadsafe(self._caught_up(first, last), self._loop)
        return found.result()

    def _missed_events(self, run: int, number: int) -> list[tuple[int, tuple[bytes, ...]]]:
        """Called by the owner of a joint game, in its thread."""
        assert self._loop is not None
        found = asyncio.run_coroutine_threadsafe(
            missed_events(self._client, self._federation, run, number, ANSWER_S), self._loop
        ).result()
        log.info("%s: missed events from %d on, %d parts of the log", self._agent.name, number, len(found))
        return found

    async def _caught_up(self, first: int, last: int) -> Sequence[np.ndarray | None]:
        """The stored inputs of these steps; waits for the broker if it is away."""
        from nats.errors import Error

        run, until = self.owner.run, time.monotonic() + CATCH_UP_S
        assert run is not None
        while True:
            try:
                found = await missed_inputs(self._client, self._federation, run, first, last, ANSWER_S)
                lost = sum(x is None for x in found)
                level = logging.WARNING if lost else logging.INFO
                log.log(level, "%s: missed steps %d to %d, %d lost", self._agent.name, first, last, lost)
                return found
            except (Error, NashcastError, TimeoutError) as error:
                if time.monotonic() > until or self._ended is not None:
                    log.warning("%s: steps %d to %d are not to be had: %s", self._agent.name, first, last, error)
                    raise
                await asyncio.sleep(RETRY_S)
