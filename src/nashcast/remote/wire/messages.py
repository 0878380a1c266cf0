"""The messages between hub and agents.

A `Turn` asks an agent for calls, done in order. Most are methods of `nashcast.agents.protocol.Participant`; `Close`,
`Missed` and `LearnLate` end steps, and do nothing when told again. A `Reply` holds the results of those calls that
have one (`RESULTS`), in order. What each must be is in `checks`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.agents.protocol import (
    SHARES,
    Answer,
    BackwardSums,
    BackwardTerms,
    GameView,
    Invitation,
    Sync,
)
from nashcast.remote.wire.format import type_name

NOTICES = ("begins", "absent", "late", "ends")
LONGEST_REASON = 500
# How many features an agent has that has not said so yet. None is something else: private.
UNKNOWN = -1


class Hello(NamedTuple):
    """Agent to hub: who it is, and where it stands."""

    version: int
    name: str
    share: str
    public_key: bytes | None  # for agreeing on masks with other agents, and its signature; opaque to the hub
    at: int  # the step it is at; -1: it has begun no stream
    run: int  # of the stream it is in; -1: none


class Begin(NamedTuple):
    """A stream begins, unless the agent has begun this run already. target: where it stands before the first step."""

    x_dim: int
    target: np.ndarray
    key: int
    lookback: int
    run: int

    def settled(self) -> tuple[int, int, int, int]:
        """What stays the same throughout a run."""
        return self.x_dim, len(self.target), self.key, self.lookback


class Forecast(NamedTuple):
    """features: whether the raw ones are wanted as well, from who shares them."""

    x: np.ndarray
    features: bool


class View(NamedTuple): ...


class Adopt(NamedTuple):
    sync: Sync


class Masking(NamedTuple):
    """A game whose terms are masked: what all its agents are told alike, and the keys that this one has not got yet."""

    attempt: int  # 0 for a step's first game; more after somebody was lost in it
    present: tuple[str, ...]  # all who play, in the order of the weights' columns
    weights: np.ndarray  # (lookback, present)
    named: tuple[str, ...]  # whose keys follow
    keys: tuple[bytes, ...]  # as in their hellos


class JoinGame(NamedTuple):
    """masking: None where terms are sent plainly."""

    invitation: Invitation
    masking: Masking | None = None


class Backward(NamedTuple):
    back: int


class Receive(NamedTuple):
    back: int
    sums: BackwardSums


class FinishGame(NamedTuple):
    """totals: of the weights of all who play, at each step of the window."""

    totals: np.ndarray


class Close(NamedTuple):
    """The end of a step the agent took part in, if it still is at that step: adopt, if there is a sync, and learn."""

    step: int
    sync: Sync | None
    target: np.ndarray | None


class Missed(NamedTuple):
    """Steps that went on without the agent: it sits out those of them that it is not past yet."""

    first: int
    last: int


class LearnLate(NamedTuple):
    """The target of an earlier step. number: counts late labels, so that each is learnt once."""

    number: int
    step: int
    target: np.ndarray


Call = (
    Begin | Forecast | View | Adopt | JoinGame | Backward | Receive | FinishGame | Close | Missed | LearnLate
)  # fmt: skip


class Introduced(NamedTuple):
    """What an agent is once its encoder is built; only what its share of it needs, and False or None for the rest."""

    features: int | None  # None: private
    relative: bool  # its features are forecasts, taken relative to where it stands
    varies: bool  # its features are random
    share: str
    public_key: bytes | None = None  # as in its hello

    def lets_out(self, share: str) -> bool:
        return SHARES.index(self.share) >= SHARES.index(share)


class RemoteAnswer(NamedTuple):
    """An `Answer`, and where they were asked for and the owner shares them the raw features (y_dim, features)."""

    forecast: np.ndarray | None
    reason: str = ""
    features: np.ndarray | None = None


class Refused(NamedTuple):
    """Instead of a result in a masked game: why the agent does not play on in this step. Its forecast stands."""

    reason: str


Result = Introduced | RemoteAnswer | GameView | Answer | BackwardTerms | bytes | Refused

# The result of each kind of call that has one. Where terms of sums are masked, they are bytes.
RESULTS: dict[str, type] = {
    "begin": Introduced, "forecast": RemoteAnswer, "view": GameView, "adopt": Answer, "backward": BackwardTerms,
    "finish_game": Answer,
}  # fmt: skip
MASKED = ("backward",)
REFUSABLE = (*MASKED, "finish_game")

# The least an agent's owner must share for a call to be made; "forecasts" for all others.
LEAST_SHARE = {"view": "moments"} | dict.fromkeys(("join_game", "backward", "receive", "finish_game"), "sums")


class Turn(NamedTuple):
    """Hub to agent: what it is asked for in one step, in order."""

    step: int
    calls: tuple[Call, ...]


class Reply(NamedTuple):
    """Agent to hub: the results of a turn, or none and the reason why the agent sits out."""

    step: int
    results: tuple[Result, ...]
    reason: str
    seconds: float


class Notice(NamedTuple):
    """Hub to all: the stream begins or ends, or who is absent or late. keys: the public keys of those named, if any."""

    step: int
    kind: str
    names: tuple[str, ...]
    keys: tuple[bytes, ...] = ()


class StepRecord(NamedTuple):
    """Hub to the durable stream: the input of one step of a run."""

    run: int
    step: int
    x: np.ndarray


class Dimensions(NamedTuple):
    """What was declared of one agent and its stream."""

    x_dim: int
    y_dim: int
    features: int | None  # None: private; UNKNOWN: not told yet
    lookback: int
    noisy: bool = False  # somebody's features vary in the game being played
    masked: bool = False  # an agent's terms of sums come as bytes, which only their sum over agents opens

    def after(self, call: Call) -> Dimensions:
        """What holds once a call is made: a stream or a game may begin with it."""
        if isinstance(call, Begin):
            return Dimensions(call.x_dim, len(call.target), UNKNOWN, call.lookback, False, self.masked)
        if isinstance(call, JoinGame):
            return self._replace(noisy=call.invitation.noisy, masked=call.masking is not None)
        return self


def kind_of(call: Call) -> str:
    """What a call is called on the wire; the method of the protocol, where it is of one."""
    return type_name(type(call))


def shortened(reason: str) -> str:
    """A reason, for example an error's text, as it may be sent: on one line and not too long."""
    line = "".join(letter if letter.isprintable() else " " for letter in reason[: 2 * LONGEST_REASON])
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"
