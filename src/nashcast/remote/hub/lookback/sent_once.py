"""What was sent to agents in the present step: agents refuse a second question that differs from the first.

A repeated step, after a late label or the loss of an agent, keeps its anchor and has the same game or none; without a
game each agent's own forecast remains valid.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from nashcast.agents.protocol import Answer
from nashcast.federation.lookback.transport import NoGame
from nashcast.remote.hub.lookback.step import Step
from nashcast.remote.wire.messages import Adopt, Refused

log = logging.getLogger(__name__)
LATE_LABEL = "a late label has changed the window since this step's first game"
LOST = "an agent was lost in the middle of this step's game"


class ToldOnce:
    """The record of one step; a new step begins with the first call for it."""

    def __init__(self):
        self._step = -1

    def anchor(self, now: Step) -> np.ndarray:
        """The starting point of agents in this step: the last label at the time of the first question."""
        self._at(now.number)
        if self._anchor is None:
            self._anchor = now.window.targets[-1].copy()
        return self._anchor

    def may_invite(self, now: Step) -> bool:
        """Whether the window is that of the step's first game. Records it, if this is the first."""
        self._at(now.number)
        window = now.window.targets.tobytes() + now.window.weights.tobytes()
        self._window = window if self._window is None else self._window
        return window == self._window

    def check_game(self, now: Step, players: Collection[int]) -> None:
        """Raises NoGame unless the spread game so far was played with these players."""
        if not self.may_invite(now):
            raise NoGame(LATE_LABEL)
        if self._players not in (None, frozenset(players)):
            raise NoGame(LOST)

    def sums_to(self, players: Collection[int]) -> None:
        """Record that sums over these players are sent to them."""
        self._players = frozenset(players)

    def check_syncs(self, now: Step, asked: Mapping[int, Adopt]) -> None:
        """Raises NoGame if an agent was asked to adopt something else in this step."""
        self._at(now.number)
        wanted = {i: (call.sync.forecast.tobytes(), _bytes(call.sync.decoder)) for i, call in asked.items()}
        if any(self._syncs.get(i, sync) != sync for i, sync in wanted.items()):
            raise NoGame(LOST if self.may_invite(now) else LATE_LABEL)
        self.may_invite(now)
        self._syncs |= wanted

    def _at(self, step: int) -> None:
        if step != self._step:
            self._step, self._anchor, self._window = step, None, None
            self._players: frozenset[int] | None = None
            self._syncs: dict[int, tuple[bytes, bytes]] = {}


def note_refusals(now: Step, names: Sequence[str], results: Mapping[int, Any]) -> None:
    """Log refusals and their reasons. Raises NoGame if an agent refused a game."""
    for i, result in results.items():
        if isinstance(result, Answer | Refused) and result.reason:
            log.warning("step %d: %s refuses: %s", now.number, names[i], result.reason)
        if isinstance(result, Refused):
            raise NoGame(f"{names[i]} refuses: {result.reason}")


def _bytes(array: np.ndarray | None) -> bytes:
    return b"" if array is None else array.tobytes()
