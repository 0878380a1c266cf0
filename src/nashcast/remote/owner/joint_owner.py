"""The owner's side of the joint game: messages in, answers out. All data that leaves an agent passes through here.

This module does no networking: `JointOwner.hear` takes the bytes of a message and returns the bytes of the answer, if
one is wanted. It enforces what the owner shares: with `joint`, only masked terms leave.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter

import numpy as np

from nashcast.agents.agent import Agent
from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.saving.double_buffered_file import DoubleBufferedFile
from nashcast.federation.saving.state_file import read_arrays, write_slot
from nashcast.fields import Fields
from nashcast.remote.masking.joint_masks import JointMasks
from nashcast.remote.masking.owner import MaskSettings
from nashcast.remote.owner.joint_replica import NotAsPublished, Replica
from nashcast.remote.owner.outgoing import Sent, reason_of
from nashcast.remote.wire.checks import NAME, NAME_WORDS, check_hello
from nashcast.remote.wire.format import PROTOCOL, pack, unpack
from nashcast.remote.wire.joint.joint_checks import check_keys, check_told
from nashcast.remote.wire.joint.joint_messages import (
    FORECAST,
    HELLO,
    NOTHING,
    Keys,
    Opening,
    Own,
    Said,
    Told,
    Traits,
    chained,
    players_of,
    read_event,
)
from nashcast.remote.wire.messages import Hello

log = logging.getLogger("nashcast.remote")
# Reads missed events: (run, number of the first one) to the parts of the durable log, in order.
MissedEvents = Callable[[int, int], Iterable[tuple[int, tuple[bytes, ...]]]]
# Number of events whose digests are stored, to detect an event that is sent again with other content.
_REMEMBERED = 256
JOINT = "joint"


class Behind(NashcastError):
    """Events were missed and must be read from the log."""


class JointOwner:
    """Runs one agent of a joint game for its owner.

    state: the file of the agent's state, written at the end of each row; None to store nothing.
    missed: reads missed events; None if there is no log to read.
    log: called with a description of every message sent.   masks: required to share `joint`, otherwise not used.

    `sent` counts the bytes sent, by kind.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        state: str | Path | None = None,
        missed: MissedEvents | None = None,
        log: Callable[[str], None] | None = None,
        masks: MaskSettings | None = None,
    ):
        if NAME.fullmatch(agent.name) is None:
            raise InvalidInput("name", repr(agent.name), f"Name the agent with {NAME_WORDS}: Agent(…, name=…).")
        if agent.share == JOINT and masks is None:
            remedy = "Pass masks (nashcast agent --trusted FILE), or share='forecasts'."
            raise InvalidInput("share", f"{JOINT!r} without masks", remedy)
        self._agent, self._missed, self._sent = agent, missed, Sent(log)
        self._masks = JointMasks(agent.name, masks) if masks is not None and agent.share == JOINT else None
        self._state = None if state is None else DoubleBufferedFile(state)
        self.run: int | None = None
        self._replica: Replica | None = None
        self._opening = b""
        self._number, self._told = 0, b""  # number of the next event, and a digest of all before it
        self._digests: deque[bytes] = deque(maxlen=_REMEMBERED)
        self._last: tuple[int, str, bytes] | None = None  # the last answer with numbers: events so far, question, bytes
        self._disputed: int | None = None  # an event sent twice with different content; later events are refused
        if state is not None and Path(state).is_file():
            self._resume(Path(state))

    @property
    def sent(self) -> Counter[str]:
        return self._sent.bytes

    def hello(self) -> bytes:
        """The message to the hub after each connection."""
        at, run = (-1, -1) if self.run is None else (self._number, self.run)
        key = None if self._masks is None else self._masks.public_key
        hello = Hello(PROTOCOL, self._agent.name, self._agent.share, key, at, run)
        check_hello(hello)
        name, share = self._agent.name, self._agent.share
        return self._sent.hello(f"{name}, shares {share}, at event {at} of run {run}", pack(hello))

    def hear(self, data: bytes, catch_up: bool = True) -> bytes | None:
        """The answer to a message, if it asks for one. An invalid message is answered with the reason.

        catch_up: read missed events from the log; if False, raises Behind instead.
        """
        began, said, ask = perf_counter(), None, HELLO
        try:
            told = unpack(data, (Told,))
            check_told(told)
            ask = told.ask
            self._follow(told, catch_up)
            said = self._answer(told)
        except Behind:
            raise
        except Exception as error:  # a black box may raise anything: the hub is informed, and the agent continues
            said = self._said(reason=reason_of(error))
        if isinstance(said, Said) and said.reason:
            log.warning("%s: %s", self._agent.name, said.reason)
        if ask == NOTHING:
            return None
        if isinstance(said, bytes):
            return said
        said = said._replace(seconds=perf_counter() - began)
        reply = pack(said)
        if said.terms is not None:
            self._last = self._number, ask, reply
        return self._sent.reply(self._number, said.reason, _parts_of(said), reply)

    def _follow(self, told: Told, catch_up: bool) -> None:
        """Take all events up to the end of a message; missed ones are read from the log."""
        have = self._number if told.run == self.run else 0
        disputed = self._disputed
        if told.run == self.run and disputed is not None and not 0 <= disputed - told.number < len(told.events):
            raise NotAsPublished(_otherwise(disputed))
        if told.number > have:
            if not catch_up:
                raise Behind
            self._catch_up(told.run, have, told.number)
        elif told.run != self.run and not told.events:
            raise NotAsPublished(f"run {told.run} has not begun")
        self._take_all(told.run, told.number, told.events)

    def _catch_up(self, run: int, first: int, end: int) -> None:
        for number, events in [] if self._missed is None else self._missed(run, first):
            self._take_all(run, number, events)
        if run != self.run or self._number < end:
            raise NotAsPublished(f"events {self._number if run == self.run else 0} to {end - 1} were missed")

    def _take_all(self, run: int, number: int, events: tuple[bytes, ...]) -> None:
        for i, data in enumerate(events, start=number):
            if run == self.run and i < self._number:
                back = self._number - i
                known = back < len(self._digests) or back == self._number <= len(self._digests)
                if known and chained(self._before(back), data) != self._digests[-back]:
                    self._disputed = i
                    raise NotAsPublished(_otherwise(i))
                if i == self._disputed:
                    self._disputed = None
            elif run != self.run and i == 0:
                self._begin(run, data)
            elif run != self.run or i > self._number:
                raise NotAsPublished(f"events {self._number} to {i - 1} were missed")
            else:
                self._take(data)

    def _before(self, back: int) -> bytes:
        return self._digests[-back - 1] if back < len(self._digests) else b""

    def _begin(self, run: int, data: bytes) -> None:
        opening = read_event(data)
        if not isinstance(opening, Opening):
            raise NotAsPublished(f"run {run} begins with {type(opening).__name__}")
        replica = Replica(self._agent, self._agent.name, opening)
        if self.run is not None and self._masks is not None:
            self._masks.renew(-1)
        self.run, self._replica, self._opening, self._last = run, replica, data, None
        self._number, self._told = 1, chained(b"", data)
        self._digests.clear()
        self._digests.append(self._told)
        self._disputed = None

    def _take(self, data: bytes) -> None:
        event, replica = read_event(data), self._replica
        assert replica is not None
        if isinstance(event, Opening):
            raise NotAsPublished("the run has begun already")
        if isinstance(event, Keys):
            check_keys(event)
            if self._masks is not None:
                self._masks.meet(event.names, event.keys)
        else:
            replica.take(event)
        self._number, self._told = self._number + 1, chained(self._told, data)
        self._digests.append(self._told)
        if self._state is not None and replica.between_rows and not isinstance(event, Keys):
            self._keep(self._state)

    def _answer(self, told: Told) -> Said | bytes:
        if self._last is not None and self._last[:2] == (self._number, told.ask):
            return self._last[2]
        replica = self._replica
        if told.ask in (HELLO, NOTHING) or replica is None:
            return self._said()
        if self._number > told.number + len(told.events):
            raise NotAsPublished(f"the log goes on to event {self._number}")
        if told.ask != FORECAST:
            return self._said(terms=self._terms(replica, told, (replica.recalled(),)))
        answer = replica.answer
        if answer.reason:
            return self._said(reason=answer.reason)
        own = None
        if self._masks is None:
            own = Own(answer.forecasts.experts, answer.forecasts.leverage, answer.distance)
        return self._said(own=own, terms=self._terms(replica, told, answer.terms))

    def _terms(self, replica: Replica, told: Told, terms: tuple[np.ndarray, ...]):
        if self._masks is None:
            return tuple(np.ascontiguousarray(term) for term in terms)
        present = players_of(told.players, replica.opening.names)
        if self._agent.name not in present:
            return None
        masked = self._masks.mask(terms, replica.last_input, f"{told.ask} {self._number}", present, self._told)
        if told.ask == FORECAST:
            replica.added_up_with(present)
        return masked

    def _said(self, **found) -> Said:
        replica, name = self._replica, self._agent.name
        traits = None
        if replica is not None:
            experts = 0 if self._masks is not None else replica.experts
            traits = Traits(experts, self._masks is None and replica.gives_quantiles)
        fields = {"own": None, "terms": None, "reason": "", "seconds": 0.0} | found
        return Said(-1 if self.run is None else self.run, name, self._number, traits, **fields)

    def _keep(self, file: DoubleBufferedFile) -> None:
        assert self._replica is not None
        arrays = {f"replica.{name}": value for name, value in self._replica.save().items()}
        arrays["opening"] = np.frombuffer(self._opening, dtype=np.uint8)
        arrays["digests"] = np.frombuffer(b"".join(self._digests), dtype=np.uint8)
        known = {} if self._masks is None else {name: key.hex() for name, key in self._masks.known.items()}
        write_slot(file, arrays, {"agent": self._agent.name, "run": self.run, "number": self._number, "keys": known})

    def _resume(self, path: Path) -> None:
        arrays, about = read_arrays(path)
        if about.get("agent") != self._agent.name or "opening" not in arrays:
            remedy = "Pass the file that this agent wrote, or another name for a new one."
            raise InvalidInput("state", f"{path.name}, of agent {about.get('agent')!r}", remedy)
        self._begin(int(about["run"]), arrays.pop("opening").tobytes())
        digests = arrays.pop("digests").tobytes()
        assert self._replica is not None
        self._replica.restore(Fields(arrays).part("replica."))
        self._number = int(about["number"])
        self._digests.clear()
        self._digests.extend(digests[i : i + 32] for i in range(0, len(digests), 32))
        self._told = self._digests[-1]
        if self._masks is not None:
            self._masks.renew(self._replica.step)
            self._masks.known = {name: bytes.fromhex(key) for name, key in about["keys"].items()}
            self._masks.known.pop(self._agent.name, None)


def _otherwise(event: int) -> str:
    return f"event {event} is not what was told before"


def _parts_of(said: Said) -> list:
    parts = [] if said.own is None else [("own forecasts", said.own)]
    if isinstance(said.terms, bytes):
        return [*parts, ("terms", said.terms)]
    return parts + [("terms", term) for term in said.terms or ()]
