"""Admits only questions that a hub asks when it follows Algorithm 1; all others are refused.

Each answer is an equation about the agent. A hub that could ask for the same step from another starting point, with
another decoder or with other weights could solve these equations. So a step has one starting point, one decoder from
outside and one game; starting points are labels, and labels and weights must equal those sent before. A repeated
question has the same answer.
"""

from __future__ import annotations

import numpy as np

from nashcast.agents.protocol import SHARES, Sync
from nashcast.errors import NashcastError
from nashcast.games.lookback.spread import Invitation
from nashcast.remote.wire.messages import Receive

OWN = b"its own"
# Steps before the window whose labels and weights are stored.
_SPARE = 2


class NotHonest(NashcastError):
    """A call that a hub following Algorithm 1 does not make."""


class GameRefused(NotHonest):
    """A move of a game that is not this step's. The agent's forecast remains valid."""


class TurnGuard:
    """share: what the agent's owner shares.   lookback: of the stream's games.   start: the label before step 0, if it
    is known.
    """

    def __init__(self, share: str, lookback: int, start: np.ndarray | None):
        self._below_moments = SHARES.index(share) < SHARES.index("moments")
        self._shares_all = share == SHARES[-1]
        self._remembered = lookback + _SPARE
        self._labels: dict[int, bytes] = {} if start is None else {-1: start.tobytes()}
        self._weights: dict[int, float] = {}
        self._begin_step(0)

    def _begin_step(self, step: int) -> None:
        self._step = step
        self._place: bytes | None = None
        self._adopted: bytes | None = None
        self._invited: bytes | None = None
        self._received: dict[int, bytes] = {}

    def forecast(self, step: int, anchored: bool) -> None:
        """Check a call for a forecast. anchored: the same turn gives its starting point."""
        self._at(step)
        if self._below_moments and not anchored:
            self._stand(OWN)

    def adopt(self, step: int, sync: Sync) -> None:
        """Check a call to forecast again, from another starting point or with another decoder."""
        self._at(step)
        if sync.past is not None:
            raise NotHonest("adopt.past: got numbers, expected nothing before the step is over")
        if not self._below_moments:
            what = _bytes(sync.forecast, sync.decoder)
            if self._adopted not in (None, what):
                raise NotHonest(f"adopt: a second one for step {step}")
            self._adopted = what
            return
        label = self._labels.get(step - 1)
        if label not in (None, sync.forecast.tobytes()):
            raise NotHonest("adopt.forecast: got another place than the last label")
        self._stand(sync.forecast.tobytes())

    def close(self, step: int, sync: Sync | None, present: np.ndarray) -> None:
        """Check what the agent is to adopt at the end of a step. present: its starting point in it."""
        if sync is None or self._shares_all:
            return
        self._at(step)
        if self._below_moments and sync.past is not None:
            raise NotHonest("close.sync.past: got numbers, expected nothing from agents that share less than moments")
        back = sync.decoder is None and sync.forecast.tobytes() == present.tobytes()
        if back or (self._adopted in (None, _bytes(sync.forecast, sync.decoder)) and not self._below_moments):
            return
        raise NotHonest("close.sync: got something else than what the agent has adopted, or where it stood")

    def learn(self, step: int, target: np.ndarray | None) -> None:
        """Store the label of a step, in time or late."""
        if target is not None:
            self._labels[step] = target.tobytes()
        for kept in (self._labels, self._weights):
            for old in [s for s in kept if s < self._step - self._remembered]:
                del kept[old]

    def join_game(self, step: int, invitation: Invitation) -> None:
        """Check the start of a game of the last steps, or its restart."""
        self._at(step)
        targets, weights, start, _ = invitation
        invited = _bytes(targets, weights, start)
        if self._invited not in (None, invited):
            raise GameRefused(f"join_game: a second game in step {step}, with other targets or weights")
        first = step - len(weights)
        for s, target in zip(range(first - 1, step), [start, *targets], strict=True):
            if self._labels.get(s) not in (None, target.tobytes()):
                raise GameRefused(f"join_game.targets: got another label of step {s} than the one told before")
        for s, weight in zip(range(first, step), weights.tolist(), strict=True):
            told = self._weights.get(s, 0.0)  # a step has no weight until its label is known
            if told not in (0.0, weight):
                raise GameRefused(f"join_game.weights: got {weight:.6g} of step {s}, and {told:.6g} before")
        self._invited = invited
        self._weights |= dict(zip(range(first, step), weights.tolist(), strict=True))

    def receive(self, call: Receive) -> None:
        """Check sums of the game: if sent again, they must be the same."""
        sums = _bytes(*call.sums)
        if self._received.setdefault(call.back, sums) != sums:
            raise GameRefused(f"receive: other sums than before in step {self._step}")

    def _stand(self, place: bytes) -> None:
        if self._place not in (None, place):
            raise NotHonest(f"a second place to forecast from in step {self._step}")
        self._place = place

    def _at(self, step: int) -> None:
        if step != self._step:
            self._begin_step(step)


def _bytes(*arrays: np.ndarray | None) -> bytes:
    return b"|".join(b"-" if array is None else array.tobytes() for array in arrays)
