"""What agents were told in the present step, so that a hub asks nothing twice in two ways: they would refuse it.

A step that is done again, after a late label or because an agent was lost, keeps its anchor, and has the same game or
none: then each agent's own forecast stands.
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
    """Of one step, whatever its number: a new one begins with the first call for it."""

    def __init__(self):
        self._step = -1

    def anchor(self, now: Step) -> np.ndarray:
        """Where agents start from in this step: the last label, as it was when they were first asked."""
        self._at(now.number)
        if self._anchor is None:
            self._anchor = now.window.targets[-1].copy()
        return self._anchor

    def may_invite(self, now: Step) -> bool:
        """Whether the window is that of the step's first game. Notes it, if this is the first."""
        self._at(now.number)
        window = now.window.targets.tobytes() + now.window.weights.tobytes()
        self._window = window if self._window is None else self._window
        return window == self._window

    def check_game(self, now: Step, players: Collection[int]) -> None:
        """Raises NoGame unless a spread game with these players is the one that was played so far."""
        if not self.may_invite(now):
            raise NoGame(LATE_LABEL)
        if self._players not in (None, frozenset(players)):
            raise NoGame(LOST)

    def sums_to(self, players: Collection[int]) -> None:
        """Sums over these players are told to them."""
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
    """Log which agents have refused what, and why. Raises NoGame if it was a game."""
    for i, result in results.items():
        if isinstance(result, Answer | Refused) and result.reason:
            log.warning("step %d: %s refuses: %s", now.number, names[i], result.reason)
        if isinstance(result, Refused):
            raise NoGame(f"{names[i]} refuses: {result.reason}")


def _bytes(array: np.ndarray | None) -> bytes:
    return b"" if array is None else array.tobytes()
