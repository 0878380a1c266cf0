"""The hub's state within the present step: answers, results asked for ahead, and queued calls."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np

from nashcast.agents.protocol import Answer, Sync
from nashcast.federation.lookback.algorithm import LookbackGame
from nashcast.federation.lookback.placements import Window
from nashcast.remote.wire.messages import Call


class Step:
    """One step, by agent."""

    def __init__(
        self, number: int, game: LookbackGame | None, anchored: bool, window: Window, players: Set[int], stands
    ):
        self.number, self.game, self.anchored, self.window = number, game, anchored, window
        self.players, self.stands = players, stands
        self.answers: dict[int, Answer] = {}
        self.features: dict[int, np.ndarray | None] = {}
        self.ahead: dict[tuple[int, str], Any] = {}  # results asked for ahead, by agent and kind
        self.invited: dict[int, bool] = {}  # agents invited to a game, and whether it was announced as noisy
        self.waiting: dict[int, list[Call]] = {}  # calls without a result
        self.syncs: dict[int, Sync] = {}  # to be sent at the end of the step
        self.moved: set[int] = set()  # agents that adopted a result, in this or in an abandoned game
        self.finished: set[int] = set()  # agents that adopted the result of this game
        self.lost: dict[int, str] = {}
