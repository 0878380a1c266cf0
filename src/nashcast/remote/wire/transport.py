"""How turns reach agents elsewhere, and what all of them have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

# Called with the number of a step and its input.
BeforeStep = Callable[[int, np.ndarray], None]


class Failure(NamedTuple):
    """Why there is no reply."""

    reason: str


class Transport(Protocol):
    """Carries turns to agents by name and brings their replies, all at once. deadline: seconds; None: its own."""

    def exchange(self, turns: dict[str, bytes], deadline: float | None) -> dict[str, bytes | Failure]: ...


class Line(NamedTuple):
    """What all agents of a stream have in common."""

    x_dim: int
    y_dim: int
    lookback: int
    run: int


class Run(NamedTuple):
    """number: names a run of the stream.   given: by the caller, so that a saved state of another is refused."""

    number: int
    given: bool
