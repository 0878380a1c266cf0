"""The transport of turns to remote agents, and the settings common to all of them."""

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
    """Sends turns to agents by name and returns all replies. deadline: seconds; None for the transport's default."""

    def exchange(self, turns: dict[str, bytes], deadline: float | None) -> dict[str, bytes | Failure]: ...


class Line(NamedTuple):
    """Settings common to all agents of a stream."""

    x_dim: int
    y_dim: int
    lookback: int
    run: int


class Run(NamedTuple):
    """number: identifies a run of the stream.   given: set by the caller; the state of another run is then refused."""

    number: int
    given: bool
