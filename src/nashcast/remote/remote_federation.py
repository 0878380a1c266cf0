"""A federation whose agents are elsewhere, with the same verbs and the same numbers."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np

from nashcast import validation as check
from nashcast.agents.protocol import Participant
from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.algorithm import ServerState, Step, game_due
from nashcast.federation.paper import PaperFederation
from nashcast.federation.placements import NEEDED
from nashcast.federation.state_file import read_arrays
from nashcast.remote.hub_post import HubPost, Line, Transport
from nashcast.remote.masked_hub import MaskedHubPost, check_masked
from nashcast.remote.message_checks import NAME, NAME_WORDS, read_hello
from nashcast.remote.messages import Hello
from nashcast.remote.peer import Peer
from nashcast.remote.wire import MalformedMessage


class RemoteFederation(PaperFederation):
    """names: the agents', in order; none has to be there yet.   transport: carries turns and replies, see `Transport`.

    run: names this run of the stream, below 2^63; drawn if not given. Agents that have begun another begin anew.
    masked: agents mask their terms of a spread game, so that the hub sees their sums and nothing else of them.
    settings: as of `Federation`; deadline is for each turn.

    An agent that does not answer, or not what it was asked for, sits the step out and is told so when it is back; one
    that was never there, or has lost its memory, begins anew and sits out all steps before. `save` keeps what the hub
    knows; saved after every `learn_one`, a hub that was killed at any moment goes on where it was.
    """

    def __init__(
        self,
        names: Sequence[str],
        transport: Transport,
        *,
        run: int | None = None,
        masked: bool = False,
        **settings: Any,
    ):
        names = [names] if isinstance(names, str) else list(names)
        for name in names:
            if not isinstance(name, str) or NAME.fullmatch(name) is None:
                raise InvalidInput("names", check.describe(name), f"Name each agent with {NAME_WORDS}.")
        if len(set(names)) < len(names):
            raise InvalidInput("names", f"one name twice among {', '.join(names)}", "Name each agent differently.")
        self._peers = [Peer(name) for name in names]
        super().__init__(cast(list[Participant], self._peers), **settings)
        self._run_given = run is not None
        self._run = secrets.randbits(63) if run is None else check.integer("run", run, min=0)
        if self._run >= 1 << 63:
            raise InvalidInput("run", f"{run}", "Pass a whole number below 2^63.")
        self._transport, self._masked = transport, bool(masked)
        if masked:
            check_masked(self._settings.game, self._y_dim, len(names))

    @property
    def run(self) -> int:
        """The name of this run of the stream."""
        return self._run

    @property
    def traffic(self) -> dict[str, int]:
        """How often agents were asked, all at once, and the bytes that went down to them and came up from them."""
        if not self._hellos:
            return {"turns": 0, "down": 0, "up": 0}
        post = cast(HubPost, self._post)
        return {"turns": post.turns, **post.traffic}

    def greet(self, data: bytes, sender: str | None = None) -> Hello:
        """An agent has found the hub, or has found it again: its hello. Raises MalformedMessage if it is none.

        sender: whose it must be, where that is known.
        """
        hello = read_hello(data, sender)
        peer = next((peer for peer in self._peers if peer.name == hello.name), None)
        if peer is None:
            raise MalformedMessage(f"hello.name: got {hello.name!r}, which is no agent of this federation")
        peer.public_key = hello.public_key
        if peer.introduced is not None and (hello.run != self._run or hello.share != peer.introduced.share):
            peer.introduced = None
        return hello

    def load(self, path: str | Path) -> None:
        """Continue where `save` left off. Agents may have been asked for the present step, in part or in whole."""
        if not self._run_given:
            self._run = int(read_arrays(path)[1].get("run", -1))
        super().load(path)

    def renew(self) -> None:
        """Another run from the present step on, for a hub that has gone back: agents past it begin anew."""
        self._begun()
        self._run, self._pending = secrets.randbits(63), None
        for peer in self._peers:
            peer.introduced = None
        self._post = self._make_post(self.agents, self._deadline, self._keep_messages)

    def _save_agents(self) -> dict[str, np.ndarray]:
        # All in two arrays: a hub saves after every step, and each array of a file costs time.
        saved = [peer.save() for peer in self._peers]
        counts = np.array([[*own["counts"], own["unsaid"].size] for own in saved])
        return {"peers.unsaid": np.concatenate([own["unsaid"] for own in saved]), "peers.counts": counts}

    def _restore_agents(self, arrays: dict[str, np.ndarray]) -> None:
        counts = arrays["peers.counts"]
        unsaid = np.split(arrays["peers.unsaid"], np.cumsum(counts[:-1, 2]))
        for peer, own, words in zip(self._peers, counts, unsaid, strict=True):
            peer.restore({"counts": own[:2], "unsaid": words})

    def for_replay(self) -> NoReturn:
        raise NashcastError("the agents of this federation are elsewhere: replay it online, with its own `replay`.")

    def _fingerprint(self) -> dict:
        return {**super()._fingerprint(), "run": self._run}

    def _make_post(self, names: list[str], deadline: float | None, keep: bool) -> HubPost:
        lookback = 0 if self._settings.game is None else self._settings.game.lookback
        line = Line(self._x_dim, self._y_dim, lookback, self._run)
        kind = MaskedHubPost if self._masked else HubPost
        return kind(self._peers, self._transport, line, deadline, keep)

    def _players(self) -> frozenset[int]:
        game = self._settings.game
        if game is None:
            return frozenset()
        said = [(i, peer.introduced) for i, peer in enumerate(self._peers)]
        players = frozenset(i for i, agent in said if agent is not None and agent.lets_out(NEEDED[game.placement]))
        return self._post.may_play(players) if isinstance(self._post, MaskedHubPost) else players

    def _done(self, state: ServerState, x: np.ndarray) -> Step:
        # Agents come and go, and say anew what they share.
        self._settings = self._settings._replace(players=self._players())
        step, post = super()._done(state, x), self._post
        due = game_due(self._settings.game, state.step) is not None and len(step.absent) < len(self._peers)
        if isinstance(post, MaskedHubPost) and due and not step.played and not step.fell_back:
            return step._replace(fell_back=post.why_nobody())
        return step
