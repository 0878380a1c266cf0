"""The messages between hub and agents.

A `Turn` asks an agent for calls, done in order. Most are methods of `nashcast.agents.protocol.Participant`; `Close`,
`Missed` and `LearnLate` end steps and are idempotent. A `Reply` has the results of those calls that have one
(`RESULTS`), in order. `checks` validates all of them.
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
# The number of features of an agent that has not declared it yet. None means private.
UNKNOWN = -1


class Hello(NamedTuple):
    """Agent to hub: its name, what it shares, and its step and run."""

    version: int
    name: str
    share: str
    public_key: bytes | None  # for key agreement with other agents, and its signature; opaque to the hub
    at: int  # its present step; -1: it has begun no stream
    run: int  # its present run; -1: none


class Begin(NamedTuple):
    """A stream begins, unless the agent has begun this run already. target: its value before the first step."""

    x_dim: int
    target: np.ndarray
    key: int
    lookback: int
    run: int

    def settled(self) -> tuple[int, int, int, int]:
        """The fields that are constant throughout a run."""
        return self.x_dim, len(self.target), self.key, self.lookback


class Forecast(NamedTuple):
    """features: whether the raw features are wanted as well, if the agent shares them."""

    x: np.ndarray
    features: bool


class View(NamedTuple): ...


class Adopt(NamedTuple):
    sync: Sync


class Masking(NamedTuple):
    """A game whose terms are masked: data common to all its agents, and the keys that this agent does not have yet."""

    attempt: int  # 0 for a step's first game; greater after an agent was lost in it
    present: tuple[str, ...]  # all agents of the game, in the order of the weights' columns
    weights: np.ndarray  # (lookback, present)
    named: tuple[str, ...]  # the agents of `keys`
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
    """totals: the sum of all players' weights at each step of the window."""

    totals: np.ndarray


class Close(NamedTuple):
    """The end of a step in which the agent took part: adopt `sync`, if any, and learn. Ignored in a later step."""

    step: int
    sync: Sync | None
    target: np.ndarray | None


class Missed(NamedTuple):
    """Steps that were played without the agent: it sits out those that it has not reached yet."""

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
    """An agent's properties once its encoder is built; those that its share does not need are False or None."""

    features: int | None  # None: private
    relative: bool  # its features are forecasts, relative to its present forecast
    varies: bool  # its features are random
    share: str
    public_key: bytes | None = None  # as in its hello

    def lets_out(self, share: str) -> bool:
        return SHARES.index(self.share) >= SHARES.index(share)


class RemoteAnswer(NamedTuple):
    """An `Answer`, with raw features (y_dim, features) if they were asked for and the owner shares them."""

    forecast: np.ndarray | None
    reason: str = ""
    features: np.ndarray | None = None


class Refused(NamedTuple):
    """Replaces a result in a masked game: why the agent leaves the game of this step. Its forecast remains valid."""

    reason: str


Result = Introduced | RemoteAnswer | GameView | Answer | BackwardTerms | bytes | Refused

# The result of each kind of call that has one. Where terms of sums are masked, they are bytes.
RESULTS: dict[str, type] = {
    "begin": Introduced, "forecast": RemoteAnswer, "view": GameView, "adopt": Answer, "backward": BackwardTerms,
    "finish_game": Answer,
}  # fmt: skip
MASKED = ("backward",)
REFUSABLE = (*MASKED, "finish_game")

# The minimum share that a call requires; "forecasts" for all others.
LEAST_SHARE = {"view": "moments"} | dict.fromkeys(("join_game", "backward", "receive", "finish_game"), "sums")


class Turn(NamedTuple):
    """Hub to agent: the calls of one step, in order."""

    step: int
    calls: tuple[Call, ...]


class Reply(NamedTuple):
    """Agent to hub: the results of a turn, or no results and the reason why the agent sits out."""

    step: int
    results: tuple[Result, ...]
    reason: str
    seconds: float


class Notice(NamedTuple):
    """Hub to all: the stream begins or ends, or agents are absent or late. keys: public keys of `names`, if any."""

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
    """The declared dimensions of one agent and its stream."""

    x_dim: int
    y_dim: int
    features: int | None  # None: private; UNKNOWN: not declared yet
    lookback: int
    noisy: bool = False  # an agent's features are random in the present game
    masked: bool = False  # an agent's terms come as masked bytes; only the sum over agents can be decoded

    def after(self, call: Call) -> Dimensions:
        """The dimensions after a call, which may begin a stream or a game."""
        if isinstance(call, Begin):
            return Dimensions(call.x_dim, len(call.target), UNKNOWN, call.lookback, False, self.masked)
        if isinstance(call, JoinGame):
            return self._replace(noisy=call.invitation.noisy, masked=call.masking is not None)
        return self


def kind_of(call: Call) -> str:
    """The name of a call on the wire: that of the protocol's method, if there is one."""
    return type_name(type(call))


def shortened(reason: str) -> str:
    """A reason, for example an error's text, shortened for sending: one line of limited length."""
    line = "".join(letter if letter.isprintable() else " " for letter in reason[: 2 * LONGEST_REASON])
    return line if len(line) <= LONGEST_REASON else line[: LONGEST_REASON - 1] + "…"
