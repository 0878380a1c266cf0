"""Carries every message between the server and its agents: timed, counted and, if wished, recorded."""

from __future__ import annotations

from collections.abc import Sequence, Set
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from nashcast.agents.protocol import Answer, Hello, Participant
from nashcast.fields import Fields

Players = Sequence[tuple[int, Participant]]


class AgentLost(Exception):
    """The agents taking part in this step have changed: repeat it; the post repeats the answers it already has."""


class NoGame(Exception):
    """The game that is due cannot be played in this step; the text is the reason."""


class Message(NamedTuple):
    """One message: sender, receiver, kind, the names and shapes of the numbers in it, and their bytes."""

    step: int
    sender: str
    receiver: str
    kind: str
    contents: dict[str, tuple[int, ...]]
    bytes: int


class Opening(NamedTuple):
    """The server's information at the beginning of a stream.

    needed: what an agent must share to play the game; None without a game.
    deadline: seconds an agent may take to forecast; the step goes on without later answers.
    keep: whether every message is added to the transcript.
    """

    agents: Sequence[Participant]
    hellos: Sequence[Hello]
    x_dim: int
    y_dim: int
    lookback: int
    needed: str | None
    deadline: float | None = None
    keep: bool = False


class Post:
    """Carries messages within this process, one after the other.

    transcript: every message since the stream began, if recorded; values: the numbers agents sent in them.
    """

    def __init__(self, opening: Opening):
        self._agents, self._names = opening.agents, [hello.name for hello in opening.hellos]
        self._deadline, self._keep = opening.deadline, opening.keep
        needed = opening.needed
        plays = [needed is not None and hello.lets_out(needed) for hello in opening.hellos]
        self._all_players = frozenset(np.flatnonzero(plays).tolist())
        self._step = 0
        self.transcript: list[Message] = []
        self.values: list[tuple[str, np.ndarray]] = []

    def prepare(self, step: int, x: np.ndarray) -> None:
        """Called first in a step, when its input is known."""

    def players(self) -> frozenset[int]:
        """The agents that share what the game needs."""
        return self._all_players

    def why_nobody(self) -> str:
        """Why a game that is due has no players, where that counts as a fallback; else empty."""
        return ""

    def save(self) -> dict[str, np.ndarray]:
        """The learnt state of the agents."""
        saved = [agent.save() for agent in self._agents]
        return {f"{i}.{name}": value for i, own in enumerate(saved) for name, value in own.items()}

    def restore(self, fields: Fields) -> None:
        for i, agent in enumerate(self._agents):
            agent.restore(fields.part(f"{i}.").rest())

    def begin_step(self, step: int, game, anchored: bool, window, players: Set[int], forecasts: np.ndarray) -> None:
        """A step begins, or begins anew with another input. The other arguments let a transport ask agents ahead.

        game: the one to be played in it, or None.   players: the agents that share what it needs.
        forecasts: each agent's forecast of the present target.
        """
        self._step = step

    def forecasts(self, players: Players, x: np.ndarray) -> list[Answer]:
        """The forecast of every agent, or why there is none."""
        return [self._forecast(i, agent, x) for i, agent in players]

    def ask_all(self, kind: str, players: Players, *arguments: Any) -> list:
        """Send the same message of the protocol to each player; returns their replies."""
        return [self._ask(i, agent, kind, arguments) for i, agent in players]

    def ask_each(self, kind: str, players: Players, arguments: Sequence[tuple]) -> list:
        """Send each player its own message; returns their replies."""
        return [self._ask(i, agent, kind, own) for (i, agent), own in zip(players, arguments, strict=True)]

    def ask_sums(self, kind: str, players: Players, *arguments: Any) -> list[np.ndarray]:
        """Send the same message to each player; returns the sums over players of the arrays in the replies."""
        replies = self.ask_all(kind, players, *arguments)
        terms = [reply if isinstance(reply, tuple) else (reply,) for reply in replies]
        return [np.add.reduce(parts) for parts in zip(*terms, strict=True)]

    def _forecast(self, i: int, agent: Participant, x: np.ndarray) -> Answer:
        if self._deadline is None:
            return self._ask(i, agent, "forecast", (x,))
        started = perf_counter()
        answer = self._ask(i, agent, "forecast", (x,))
        took = perf_counter() - started
        if answer.forecast is not None and took > self._deadline:
            agent.sit_out()
            return Answer(None, f"its answer took {took:.3g} s, longer than the deadline of {self._deadline:g} s")
        return answer

    def _ask(self, i: int, agent: Participant, kind: str, arguments: tuple) -> Any:
        reply = getattr(agent, kind)(*arguments)
        if self._keep:
            name = self._names[i]
            self._write("server", name, kind, list(arguments))
            self._write(name, "server", kind, [] if reply is None else [reply])
        return reply

    def _write(self, sender: str, receiver: str, kind: str, parts: list) -> None:
        numbers = {key: value for part in parts for key, value in _numbers("value", part)}
        if numbers:
            contents = {key: value.shape for key, value in numbers.items()}
            size = sum(value.nbytes for value in numbers.values())
            self.transcript.append(Message(self._step, sender, receiver, kind, contents, size))
            if sender != "server":
                self.values += [(f"{kind}.{key}", value.copy()) for key, value in numbers.items()]


def _numbers(name: str, part):
    """The numbers in a message, with their names."""
    if isinstance(part, np.ndarray):
        yield name, part
    elif isinstance(part, bool | int | float):
        yield name, np.array(part)
    elif isinstance(part, bytes):
        yield name, np.frombuffer(part, dtype=np.uint8)
    elif isinstance(part, tuple):
        fields = getattr(part, "_fields", range(len(part)))
        for field, value in zip(fields, part, strict=True):
            yield from _numbers(str(field), value)
