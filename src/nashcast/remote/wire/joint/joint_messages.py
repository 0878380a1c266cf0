"""The messages of the joint game between hub and owners: one public log of events, and each agent's answers.

Everything the hub sends is a numbered event in the log of its run, the same for all agents. `Told` carries the next
events to all agents in one publication, with or without a question. `Said` is an agent's answer.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import numpy as np

from nashcast.games.joint import JointGame
from nashcast.remote.wire.format import pack, unpack

# The questions of a message.
NOTHING, FORECAST, RECALL, HELLO = "", "forecast", "recall", "hello"
ASKS = (NOTHING, FORECAST, RECALL, HELLO)
# The terms of an agent that gives forecasts of its own and does not play the game.
NO_TERMS = ()


class Opening(NamedTuple):
    """Event 0: a stream begins.   names: of all agents, in their order.   start: the target before the first row."""

    names: tuple[str, ...]
    x_dim: int
    x_names: tuple[str, ...]  # of the inputs, none if they have no names
    start: np.ndarray
    first_step: int
    horizon: int
    season: int | None
    seed: int
    forgetting: tuple[float, ...]
    boldness: tuple[float, ...]
    averaged: bool
    ridge: float
    partial: bool
    largest_leverage: float

    @property
    def game(self) -> JointGame:
        return JointGame(
            tuple(self.forgetting), tuple(self.boldness), self.averaged, self.ridge, self.partial, self.largest_leverage
        )


class Keys(NamedTuple):
    """Signed public keys for key agreement, from agents that have connected or reconnected."""

    names: tuple[str, ...]
    keys: tuple[bytes, ...]


class Input(NamedTuple):
    """A row begins: its input. NaN marks a missing number or time."""

    step: int
    x: np.ndarray
    time: float


class Sums(NamedTuple):
    """Sums of the contributions of the joint game's agents to the row, before its label; in the target's units.

    absent: agents left out because they gave no answer.   excluded: agents left out because they increase the error.
    """

    step: int
    absent: tuple[str, ...]
    excluded: tuple[str, ...]
    said: np.ndarray  # (variants + 1, y_dim, horizon)
    leverage: np.ndarray  # (forgettings, y_dim)
    recalled: np.ndarray | None  # for the rows of the next label, (variants, y_dim, horizon); if horizon > 1
    stopped: np.ndarray | None  # see `JointBlocks.relearn`, (variants + 1, y_dim, horizon, public); if scales changed


class Label(NamedTuple):
    """A row ends: its label, or None and a substitute value."""

    step: int
    target: np.ndarray | None
    stand_in: np.ndarray | None


class LateLabel(NamedTuple):
    step: int
    target: np.ndarray


class Recalled(NamedTuple):
    """The sums that a lesson waited for, (variants, y_dim, horizon), in the target's units; None if not known."""

    said: np.ndarray | None
    excluded: tuple[str, ...]


Event = Opening | Keys | Input | Sums | Label | LateLabel | Recalled
EVENTS: tuple[type, ...] = (Opening, Keys, Input, Sums, Label, LateLabel, Recalled)


class Told(NamedTuple):
    """Hub to all agents: the events of a run from `number` on, each encoded separately.

    ask: one of ASKS.   players: the agents of the masked sum, one bit per agent in order; empty without masks.
    """

    run: int
    number: int
    events: tuple[bytes, ...]
    ask: str
    players: bytes


class Traits(NamedTuple):
    """An agent's properties once its encoders are built. experts: the number of its own forecasts."""

    experts: int
    quantiles: bool


class Own(NamedTuple):
    """An agent's own forecasts (y_dim, horizon, experts), and their leverages (y_dim, experts).

    distance: the expected distance of the targets from them, (horizon, y_dim), if the agent gives it.
    """

    experts: np.ndarray
    leverage: np.ndarray
    distance: np.ndarray | None


class Said(NamedTuple):
    """An agent's answer.   name: of the agent.   number: of the next event it expects.

    terms: summed over agents, in units of the usual change: for a forecast `said`, `leverage` and, where present,
    `recalled` and `stopped`, as in `Sums`; for a recall `recalled`. Bytes under masks; NO_TERMS from an agent that does
    not play the game.   reason: why there are none.
    """

    run: int
    name: str
    number: int
    traits: Traits | None
    own: Own | None
    terms: tuple[np.ndarray, ...] | bytes | None
    reason: str
    seconds: float


class LogPart(NamedTuple):
    """Hub to the durable stream: events of a run from `number` on, for agents that have missed them."""

    run: int
    step: int
    number: int
    events: tuple[bytes, ...]


def is_said(data: bytes) -> bool:
    """Whether these bytes are an agent's answer, as `pack` writes it, rather than its hello."""
    return b"\xa4type\xa4said" in data[:24]


def is_told(data: bytes) -> bool:
    """Whether these bytes are a message of the joint game to all agents, rather than a notice."""
    return b"\xa4type\xa4told" in data[:24]


def event_bytes(event: Event) -> bytes:
    return pack(event)


def read_event(data: bytes) -> Event:
    return unpack(data, EVENTS)


def chained(before: bytes, event: bytes) -> bytes:
    """A digest of all events so far: equal for two parties only if both received the same events."""
    return sha256(before + event).digest()


def players_of(flags: bytes, names: tuple[str, ...]) -> frozenset[str]:
    r"""The agents whose bits are set in `Told.players`.

    >>> sorted(players_of(b"\x05", ("a", "b", "c")))
    ['a', 'c']
    """
    return frozenset(name for i, name in enumerate(names) if i // 8 < len(flags) and flags[i // 8] >> (i % 8) & 1)


def player_flags(players: frozenset[str], names: tuple[str, ...]) -> bytes:
    flags = bytearray(-(-len(names) // 8))
    for i, name in enumerate(names):
        flags[i // 8] |= (name in players) << (i % 8)
    return bytes(flags)
