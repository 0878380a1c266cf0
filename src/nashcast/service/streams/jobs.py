"""What is asked of the thread that computes, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nashcast.errors import NashcastError
from nashcast.service.journal.entries import Entry, Outcome
from nashcast.service.streams.intake import Item


class Busy(NashcastError):
    """Too much waits already."""


class Failed(NashcastError):
    """The service has stopped computing and says why; it is not to be trusted with more."""


class Published(NamedTuple):
    """What follows from a group: entries in order, each with the forecast after it, and the one that now stands."""

    steps: list[tuple[Entry, Outcome]]
    events: list[tuple]
    outcome: Outcome
    at: float


class Job(NamedTuple):
    items: Sequence[Item]
    call: Callable[[], Any] | None
    future: Any


Answers = list[tuple[Any, Any]]


def deliver_here(answers: Answers) -> None:
    """Each future gets its result, or the exception that is one."""
    for future, answer in answers:
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)


def changes(before: Outcome | None, now: Outcome, at: float, fell_back: str) -> list[tuple]:
    """What is worth a line in the log: agents that sit out or are back, and games that fail from here on."""
    was = {} if before is None else before.absent
    events = [(at, now.step, "agent out", f"{name}: {why}") for name, why in now.absent.items() if name not in was]
    events += [(at, now.step, "agent back", name) for name in was if name not in now.absent]
    if now.fell_back and not (before is not None and before.fell_back):
        events.append((at, now.step, "fallback", f"{fell_back}: the greedy step stands"))
    return events
