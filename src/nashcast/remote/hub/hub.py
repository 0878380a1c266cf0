"""The hub: a federation whose agents are reached through the broker, and that resumes after a crash."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from nashcast import validation as check
from nashcast.agents.arrangement import BASELINES, JOINT
from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.saving.double_buffered_file import DoubleBufferedFile
from nashcast.federation.saving.saved_state import saved
from nashcast.federation.saving.state_file import write_slot
from nashcast.games.joint import JointGame
from nashcast.remote.broker.certificates.certs import AUTHORITY, BROKER
from nashcast.remote.broker.certificates.expiry import ExpiryWatch
from nashcast.remote.broker.enrolling.enrolment import HUB_SEED, read
from nashcast.remote.broker.names import HUB
from nashcast.remote.broker.running.server import EmbeddedBroker, broker_url, connect, lasting_broker
from nashcast.remote.broker.steps import Bounds
from nashcast.remote.hub.bus import AWAY, LATE, Bus
from nashcast.remote.hub.deadlines import Fixed, Learned
from nashcast.remote.hub.joint.joint_federation import JointHub
from nashcast.remote.hub.joint.joint_line import BusLine
from nashcast.remote.hub.lookback.batched_transport import MALFORMED
from nashcast.remote.hub.lookback.input_store import KeptInputs
from nashcast.remote.hub.lookback.remote_agents import RemoteAgents
from nashcast.remote.hub.row_journal import RowJournal
from nashcast.remote.wire.checks import read_hello
from nashcast.remote.wire.format import MalformedMessage, pack
from nashcast.remote.wire.joint.joint_messages import is_said
from nashcast.remote.wire.messages import Hello, Notice, StepRecord
from nashcast.remote.wire.rate_limited_log import Complaints
from nashcast.remote.wire.subjects import everybody_subject, tell_subject

log = logging.getLogger("nashcast.remote")
STATE, ROW = "hub.state", ".row"  # ROW is a suffix of the state's name: the journal of the present row
# Polling intervals for agents and for certificates.
POLL_S, EXPIRY_S = 0.02, 3600.0
# Bytes of hellos that may wait to be read; more are dropped. Agents say hello again when asked.
MOST_WAITING = 4 << 20


class Hub:
    """folder: of the federation, see `nashcast enroll create`.   agents: their names; all that are enrolled by default.

    url: of a running broker; None to run one from the folder while this hub is open.
    certs: certificates, if not those that the folder names.   deadline: of an agent's turn in seconds, or None to learn
    it from earlier response times.   state: the file to resume from and to write after every step; None for the
    folder's own, False for none.   fresh: ignore the state and start again.   settings: as of `Federation`; with a
    `LookbackGame`, or None for no game, as of `RemoteAgents`.

    A context manager. `federation` has all verbs; the state file is up to date when `learn_one` returns.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        agents: Sequence[str] | None = None,
        url: str | None = None,
        certs: str | Path | None = None,
        deadline: float | None = None,
        state: str | Path | Literal[False] | None = None,
        fresh: bool = False,
        **settings: Any,
    ):
        folder = Path(folder).expanduser()
        enrolment = read(folder)
        self.name = enrolment.federation
        names = list(enrolment.agents) if agents is None else list(agents)
        if not names:
            remedy = f"Invite one: nashcast enroll invite NAME --folder {folder}."
            raise InvalidInput("agents", "nobody enrolled", remedy)
        for name in names:
            if name not in enrolment.agents:
                known = ", ".join(enrolment.agents) or "nobody"
                raise InvalidInput("agents", f"{name!r}, who is not enrolled", f"Enrolled are: {known}.")
        path = folder / STATE if state is None else Path(state or "")
        self._state_file = None if state is False else DoubleBufferedFile(path)
        self._journal = RowJournal(None if state is False else path.with_name(path.name + ROW))
        self._names = frozenset(names)
        self._heard: dict[str, bytes] = {}  # each agent's last hello, until it is processed
        self._complaints = Complaints(lambda line: log.warning("hub: %s", line))
        self._here: set[str] = set()
        self._said: dict[str, Hello] = {}  # each agent's last hello
        self._away: dict[str, str] = {}  # agents that missed the last step: "late" or "absent"
        self._expiry_checked = float("-inf")  # time of the last check of certificates
        self._told: object = None  # the last step whose absences were announced
        if url is None and lasting_broker(folder) is not None:
            url = broker_url(enrolment.settings)
        self._broker = None if url is not None else EmbeddedBroker(folder, port=enrolment.settings.port, tls=certs)
        self._bus: Bus | None = None
        self._remote: Any = None
        try:
            address = url if self._broker is None else self._broker.start().url
            assert address is not None
            self._address = address
            if certs is None and address.startswith("tls"):
                certs = enrolment.settings.certificates
            self._expiry = None if certs is None else ExpiryWatch(certs, (AUTHORITY, BROKER, HUB))

            async def dial(on_reconnect) -> Any:
                return await connect(
                    address, seed_file=folder / HUB_SEED, name=HUB, tls=certs, on_reconnect=on_reconnect
                )

            learnt = Learned() if deadline is None else Fixed(check.number("deadline", deadline, above=0.0))
            self._bus = Bus(self.name, dial, learnt)
            self._kept = KeptInputs(
                lambda: self._line, self.name, Bounds(enrolment.settings.stream_bytes, enrolment.settings.stream_days)
            )
            self._remote = self._make_remote(names, self._bus, settings)
            self.federation = self._remote.federation
            if fresh:
                path.unlink(missing_ok=True)
                self._journal.forget()
            if self._state_file is not None and path.is_file():
                self.federation.load(path)
            self._bus.run(self._open())
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The address of this hub for agents on this machine."""
        return f"{self._address}/{self.name}"

    @property
    def names(self) -> list[str]:
        """Names of all agents, in order, connected or not."""
        return list(self._remote.names)

    @property
    def members(self) -> list[str]:
        """The members of the mixture: the agents, and in the joint game the baselines and the game itself."""
        return [BASELINES, *self.names, JOINT] if isinstance(self._remote, JointHub) else self.names

    @property
    def run(self) -> int:
        """The number of this run of the stream."""
        return self._remote.run

    @property
    def traffic(self) -> dict[str, int]:
        """The number of rounds of turns, and the bytes sent to agents and received from them."""
        return self._remote.traffic

    @property
    def health(self) -> dict[str, Any]:
        """Health of federation and connection: days until certificates expire, number of inputs lost, warnings."""
        days = {} if self._expiry is None else self._expiry.days_left()
        warnings = [] if self._expiry is None else self._expiry.warnings()
        if self._kept.warning is not None:
            warnings.append(self._kept.warning)
        line = {"certificate days": days, "inputs lost": self._kept.lost, "warnings": warnings}
        return {**self.federation.health, **line}

    def renew(self) -> None:
        """Begin another run from the present step on, for a hub with an older state: see `RemoteAgents`, `JointHub`."""
        self._remote.renew()

    @property
    def is_behind(self) -> bool:
        """Whether all connected agents of this run are past the present step: see `renew`."""
        self._greet_all()
        at = [said.at for name, said in self._said.items() if name in self._here and said.run == self.run]
        return bool(at) and min(at) > self._step

    def wait_for_agents(
        self, seconds: float, names: Sequence[str] | None = None, progress: Callable[[list[str]], None] | None = None
    ) -> list[str]:
        """Wait until all agents, or those named, have said hello, or the time is over. Returns the missing ones."""
        wanted, until = list(names or self.names), time.monotonic() + seconds
        while True:
            self._greet_all()
            missing = [name for name in wanted if name not in self._here]
            if progress is not None:
                progress(missing)
            if not missing or time.monotonic() > until:
                return missing
            time.sleep(POLL_S)

    def close(self) -> None:
        """Notify the agents, and stop the broker if this hub started it. The state file remains."""
        bus, self._bus = self._bus, None
        self._complaints.flush()
        try:
            if bus is not None:
                if bus.client.is_connected and self._remote is not None:
                    bus.run(bus.client.publish(everybody_subject(self.name), pack(Notice(self._step, "ends", ()))))
                bus.close()
        finally:
            if self._state_file is not None:
                self._state_file.close()
            self._journal.close()
            if self._broker is not None:
                self._broker.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @property
    def _line(self) -> Bus:
        if self._bus is None:
            raise NashcastError("this hub is closed.")
        return self._bus

    def _make_remote(self, names: list[str], bus: Bus, settings: dict[str, Any]) -> RemoteAgents | JointHub:
        """The joint game by default; with a `LookbackGame`, or None, the paper's federation."""
        if isinstance(settings.get("game", JointGame()), JointGame):
            line = BusLine(bus, self.name, self._greet, self._kept.keep, self._journal)
            return JointHub(names, line, on_learnt=self._on_learnt, **settings)
        return RemoteAgents(names, bus, before_step=self._before_step, on_learnt=self._on_learnt, **settings)

    def _greet(self) -> None:
        self._greet_all()
        self._warn_of_expiry()

    async def _open(self) -> None:
        client = self._line.client
        await self._kept.open()
        await client.subscribe(tell_subject(self.name, "*"), cb=self._hear, pending_bytes_limit=MOST_WAITING)
        # Agents that connected before the hub say hello again.
        await client.publish(everybody_subject(self.name), pack(Notice(self._step, "begins", ())))

    async def _hear(self, message: Any) -> None:
        sender = message.subject.split(".")[-2]
        try:
            if sender not in self._names:
                raise MalformedMessage("it is no agent of this hub")
            if is_said(message.data):
                self._line.answered(sender, message.data)
                return
            read_hello(message.data, sender)
            self._heard[sender] = message.data
        except MalformedMessage as error:
            self._complaints.add(sender, f"a hello is refused: {error}")

    def _greet_all(self) -> None:
        while self._heard:
            sender, data = self._heard.popitem()
            self._said[sender] = self._remote.greet(data, sender)
            self._here.add(sender)

    @property
    def _step(self) -> int:
        """The position in the stream as the agents count: the present step, or the next event."""
        return self._remote.at

    def _before_step(self, step: int, x: np.ndarray) -> None:
        self._greet()
        self._kept.keep(step, pack(StepRecord(self.run, step, x)))

    def _warn_of_expiry(self) -> None:
        if self._expiry is not None and time.monotonic() > self._expiry_checked + EXPIRY_S:
            self._expiry_checked = time.monotonic()
            self._expiry.tell()

    def _on_learnt(self) -> None:
        """Called after a row or a late label was learnt."""
        if isinstance(self._remote, RemoteAgents):  # a joint log is in the hub's state until it is stored
            self._kept.wait()
        if self._remote.loop is None:
            return
        if self._state_file is not None:
            write_slot(self._state_file, *saved(self.federation, records=False))
        last = self._remote.last_absent
        if last is not None and last[0] is not self._told:
            self._told, absent = last
            self._tell_who_is_away(absent)

    def _tell_who_is_away(self, absent: dict[int, str]) -> None:
        names, number = self.names, self.federation.step - 1
        for i, reason in absent.items():
            if reason.startswith(MALFORMED) and self._away.get(names[i]) == "absent":
                self._complaints.add(names[i], f"step {number}, {reason}")
        self._here -= {names[i] for i, reason in absent.items() if reason == AWAY}  # they say hello again
        away = {names[i]: "late" if reason.startswith(LATE) else "absent" for i, reason in absent.items()}
        why = {names[i]: reason for i, reason in absent.items()}
        for kind in ("late", "absent"):
            who = tuple(name for name, how in away.items() if how == kind and self._away.get(name) != kind)
            for name in who:
                log.warning("hub: step %d, %s is %s: %s", number, name, kind, why[name])
            if who:
                notice = pack(Notice(number, kind, who))
                self._line.start(self._line.client.publish(everybody_subject(self.name), notice))
        for name in self._away.keys() - away.keys():
            log.info("hub: step %d, %s is back", number, name)
        self._away = away
