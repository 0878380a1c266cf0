"""Remote agents as one federation, with the same verbs and the same numbers as in one process."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, cast

from nashcast import validation as check
from nashcast.agents.protocol import Participant
from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.lookback.paper_loop import PaperLoop, PaperLoopFactory
from nashcast.federation.lookback.transport import Opening
from nashcast.federation.paper import paper_federation
from nashcast.remote.hub.lookback.batched_transport import HubPost
from nashcast.remote.hub.peer import Peer
from nashcast.remote.masking.hub import MaskedHubPost, check_masked
from nashcast.remote.wire.checks import NAME, NAME_WORDS, read_hello
from nashcast.remote.wire.format import MalformedMessage
from nashcast.remote.wire.messages import Hello
from nashcast.remote.wire.transport import BeforeStep, Run, Transport


class RemoteAgents:
    """names: of the agents, in order; none needs to be connected yet.   transport: of turns, see `Transport`.

    run: number of this run, below 2^63; random by default. Agents that are in another run begin this one.
    masked: agents mask their terms of a spread game, so that the hub sees only the sums.
    before_step: called with each step and its input.   settings: as of `paper_federation`; deadline is for each turn.

    `federation` has all verbs. An agent without a valid answer sits the step out and is informed when it is back; one
    that was never connected, or has lost its state, begins the run and sits out all earlier steps. A federation that is
    saved after every `learn_one` and killed at any moment resumes where it was.
    """

    def __init__(
        self,
        names: Sequence[str],
        transport: Transport,
        *,
        run: int | None = None,
        masked: bool = False,
        before_step: BeforeStep = lambda step, x: None,
        **settings: Any,
    ):
        names = [names] if isinstance(names, str) else list(names)
        for name in names:
            if not isinstance(name, str) or NAME.fullmatch(name) is None:
                raise InvalidInput("names", check.describe(name), f"Name each agent with {NAME_WORDS}.")
        if len(set(names)) < len(names):
            raise InvalidInput("names", f"one name twice among {', '.join(names)}", "Name each agent differently.")
        number = secrets.randbits(63) if run is None else check.integer("run", run, min=0)
        if number >= 1 << 63:
            raise InvalidInput("run", f"{run}", "Pass a whole number below 2^63.")
        self.peers = [Peer(name) for name in names]
        self._run, self._transport = Run(number, run is not None), transport
        self._masked, self._before_step = bool(masked), before_step
        peers = cast(list[Participant], self.peers)
        self.federation = paper_federation(peers, make_post=self._make_post, **settings)
        if masked:
            factory = cast(PaperLoopFactory, self.federation.for_replay()[0])
            check_masked(factory.settings.game, factory.y_dim, len(names))

    @property
    def loop(self) -> PaperLoop | None:
        """The federation's loop; None before its stream begins."""
        return cast(PaperLoop | None, self.federation.loop)

    @property
    def post(self) -> HubPost | None:
        """Its transport; None before its stream begins."""
        return None if self.loop is None else cast(HubPost, self.loop.post)

    @property
    def names(self) -> list[str]:
        return [peer.name for peer in self.peers]

    @property
    def at(self) -> int:
        """The present step, as agents count."""
        return 0 if self.loop is None else self.loop.state.step

    @property
    def last_absent(self) -> tuple[object, dict[int, str]] | None:
        """An object that identifies the last learnt step, and the agents that sat it out, with reasons."""
        last = None if self.loop is None else self.loop.last
        return None if last is None else (last, last.absent)

    @property
    def run(self) -> int:
        """The number of this run of the stream."""
        return self._run.number if self.post is None else self.post.run

    @property
    def traffic(self) -> dict[str, int]:
        """The number of rounds of turns, and the bytes sent to agents and received from them."""
        if self.post is None:
            return {"turns": 0, "down": 0, "up": 0}
        return {"turns": self.post.turns, **self.post.traffic}

    def greet(self, data: bytes, sender: str | None = None) -> Hello:
        """Take the hello of an agent that has connected or reconnected. Raises MalformedMessage if it is invalid.

        sender: the required name, if known.
        """
        hello = read_hello(data, sender)
        peer = next((peer for peer in self.peers if peer.name == hello.name), None)
        if peer is None:
            raise MalformedMessage(f"hello.name: got {hello.name!r}, which is no agent of this federation")
        peer.public_key = hello.public_key
        if peer.introduced is not None and (hello.run != self.run or hello.share != peer.introduced.share):
            peer.introduced = None
        return hello

    def renew(self) -> None:
        """Begin another run from the present step on, for a hub with an older state. Agents begin anew."""
        loop = self.loop
        if loop is None:
            raise NashcastError("the stream has not begun: no target is known yet.")
        self._run = self._run._replace(number=secrets.randbits(63))
        for peer in self.peers:
            peer.introduced = None
        loop.post = self._make_post(loop.opening)
        self.federation.discard_forecast()

    def _make_post(self, opening: Opening) -> HubPost:
        kind = MaskedHubPost if self._masked else HubPost
        return kind(opening, self._transport, self._run, self._before_step)
