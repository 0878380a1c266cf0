"""Every message between the server and its agents passes here: timed, counted and, if wished, written down."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from nashcast.agents.protocol import Answer, Participant


class Message(NamedTuple):
    """One message: from whom to whom, of which kind, the names and shapes of the numbers in it, and their bytes."""

    step: int
    sender: str
    receiver: str
    kind: str
    contents: dict[str, tuple[int, ...]]
    bytes: int


class Post:
    """deadline: seconds an agent may take to forecast; later answers are not waited for in this step.

    transcript: every message since the stream began, if `keep` is set; values: the numbers agents sent in them.
    """

    def __init__(self, names: list[str], deadline: float | None = None, keep: bool = False):
        self._names, self._deadline, self._keep = names, deadline, keep
        self.step = 0
        self.transcript: list[Message] = []
        self.values: list[tuple[str, np.ndarray]] = []

    def forecast(self, i: int, agent: Participant, x: np.ndarray) -> Answer:
        if self._deadline is None:
            return self.ask(i, "forecast", agent.forecast, x)
        started = perf_counter()
        answer = self.ask(i, "forecast", agent.forecast, x)
        took = perf_counter() - started
        if answer.forecast is not None and took > self._deadline:
            agent.sit_out()
            return Answer(None, f"its answer took {took:.3g} s, longer than the deadline of {self._deadline:g} s")
        return answer

    def ask(self, i: int, kind: str, method: Callable, *arguments: Any) -> Any:
        """One message of the protocol and its reply."""
        reply = method(*arguments)
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
            self.transcript.append(Message(self.step, sender, receiver, kind, contents, size))
            if sender != "server":
                self.values += [(f"{kind}.{key}", value.copy()) for key, value in numbers.items()]


def _numbers(name: str, part):
    """The numbers in a message, with their names."""
    if isinstance(part, np.ndarray):
        yield name, part
    elif isinstance(part, bool | int | float):
        yield name, np.array(part)
    elif isinstance(part, tuple):
        fields = getattr(part, "_fields", range(len(part)))
        for field, value in zip(fields, part, strict=True):
            yield from _numbers(str(field), value)
