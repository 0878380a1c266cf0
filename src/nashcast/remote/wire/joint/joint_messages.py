"""The messages of the joint game between hub and owners: one public log of events, and what each agent answers.

Everything the hub says is an event with a number in the log of its run, the same for all agents. `Told` carries the
next events, to all agents in one publication, and asks for something, or for nothing. `Said` is an agent's answer.
"""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

import numpy as np

from nashcast.games.joint import JointGame
from nashcast.remote.wire.format import pack, unpack

# What a message may ask for.
NOTHING, FORECAST, RECALL, HELLO = "", "forecast", "recall", "hello"
ASKS = (NOTHING, FORECAST, RECALL, HELLO)
# The terms of an agent that gives forecasts of its own and plays no part in the game.
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
    """Public keys for agreeing on masks, with their signatures, of agents that have come or come back."""

    names: tuple[str, ...]
    keys: tuple[bytes, ...]


class Input(NamedTuple):
    """A row begins: what it is forecast from. NaN where a number is missing, or the time."""

    step: int
    x: np.ndarray
    time: float


class Sums(NamedTuple):
    """Of what the agents in the joint game said of the row, before its label; in the target's units.

    absent: agents that are not in the sums, as they gave no answer.   excluded: as they do harm.
    """

    step: int
    absent: tuple[str, ...]
    excluded: tuple[str, ...]
    said: np.ndarray  # (variants + 1, y_dim, horizon)
    leverage: np.ndarray  # (forgettings, y_dim)
    recalled: np.ndarray | None  # of the rows that the next label is of, (variants, y_dim, horizon); if horizon > 1
    stopped: np.ndarray | None  # see `JointBlocks.relearn`, (variants + 1, y_dim, horizon, public); if scales changed


class Label(NamedTuple):
    """A row ends: its label, or None and what stands in for it."""

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
    """Hub to all agents: the events of a run from `number` on, each in bytes of its own.

    ask: one of ASKS.   players: whose masks are in the answers, a bit for each agent in their order; none for no masks.
    """

    run: int
    number: int
    events: tuple[bytes, ...]
    ask: str
    players: bytes


class Traits(NamedTuple):
    """What an agent is once its encoders are built. experts: how many forecasts of its own it gives."""

    experts: int
    quantiles: bool


class Own(NamedTuple):
    """An agent's own forecasts: (y_dim, horizon, experts), their leverages (y_dim, experts), and how far from them it

    expects the targets, (horizon, y_dim), if it says so.
    """

    experts: np.ndarray
    leverage: np.ndarray
    distance: np.ndarray | None


class Said(NamedTuple):
    """An agent's answer.   name: its own.   number: of the next event it waits for.

    terms: what is added up over agents, in usual changes: for a forecast as in `Sums` said, leverage and, where there
    are any, recalled and stopped; for a recall the recalled ones. Bytes under masks; NO_TERMS of an agent that plays no
    part in the game.   reason: why there are none.
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
    """A digest of all events so far: equal for two parties only if both were told the same."""
    return sha256(before + event).digest()


def players_of(flags: bytes, names: tuple[str, ...]) -> frozenset[str]:
    r"""Whom the bits of `Told.players` mean.

    >>> sorted(players_of(b"\x05", ("a", "b", "c")))
    ['a', 'c']
    """
    return frozenset(name for i, name in enumerate(names) if i // 8 < len(flags) and flags[i // 8] >> (i % 8) & 1)


def player_flags(players: frozenset[str], names: tuple[str, ...]) -> bytes:
    flags = bytearray(-(-len(names) // 8))
    for i, name in enumerate(names):
        flags[i // 8] |= (name in players) << (i % 8)
    return bytes(flags)
