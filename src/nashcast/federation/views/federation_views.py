"""Read-only views of a federation: members, weights, health, intervals, trust, certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.lookback.transport import Message
from nashcast.federation.views.trust import Trust
from nashcast.games.certificate import Certificate, certify

if TYPE_CHECKING:
    import threading

    from nashcast.federation.forecast import Forecast
    from nashcast.federation.incoming.columns import Columns
    from nashcast.federation.incoming.stream_start import Waiting
    from nashcast.federation.loop_factory import LoopFactory, StepLoop
    from nashcast.federation.views.bounds import Bounds
    from nashcast.federation.views.health import Health
    from nashcast.games.lookback.game import Equilibrium


class Views:
    """Reads the state of a `Federation`, and changes nothing."""

    if TYPE_CHECKING:
        _lock: threading.RLock
        _factory: LoopFactory
        _loop: StepLoop | None
        _columns: Columns
        _start: np.ndarray | None
        _waiting: Waiting
        _bounds: Bounds | None
        _health: Health
        _present: tuple[bytes, Forecast] | None
        _last_weights: np.ndarray | None
        _last_game: Equilibrium | None

    @property
    def y_dim(self) -> int:
        """How many numbers a target has."""
        return self._columns.y_dim

    @property
    def horizon(self) -> int:
        """The forecast horizon in steps."""
        return self._factory.horizon

    @property
    def loop(self) -> StepLoop | None:
        """The loop that takes its steps; None before the first known target."""
        return self._loop

    @property
    def step(self) -> int:
        """How many rows have been learnt, with or without a label."""
        return self._waiting.steps if self._loop is None else self._loop.step

    @property
    def members(self) -> list[str]:
        """Names of the members whose forecasts are mixed, once the stream has begun.

        Persistence, the agents, and the joint game if there is one; in the paper's federation the agents alone.
        """
        return [] if self._loop is None else list(self._loop.members)

    @property
    def season(self) -> int | None:
        """The season length in use, if any."""
        return None if self._loop is None else self._loop.season

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each member in the last learnt forecast, averaged over targets."""
        if self._loop is None or self._last_weights is None:
            return {}
        return dict(zip(self._loop.members, map(float, self._last_weights), strict=True))

    @property
    def present(self) -> Forecast | None:
        """The last result of `predict_one`, until it is learnt: forecast, weights, own forecasts, absences."""
        return None if self._present is None else self._present[1]

    @property
    def health(self) -> dict[str, Any]:
        """Counters: steps, games, fallbacks and why, missing, late and suspect labels, absences and last reasons."""
        return self._health.report(self.step, 0 if self._loop is None else self._loop.suspect_labels)

    @property
    def transcript(self) -> list[Message]:
        """Every message between server and agents so far, if it was made with transcript=True."""
        return [] if self._loop is None else list(self._loop.transcript)

    def interval(self, coverage: float = 0.9, agent: str | None = None) -> tuple[Any, Any]:
        """Low and high round the forecasts whose targets are not known yet: the federation's, or one member's."""
        with self._lock:
            if self._bounds is None:
                raise NashcastError("this federation was made without intervals: pass coverages=(0.8, 0.9, 0.95).")
            if self._loop is None and self._start is None:
                middle, place = np.zeros((self.horizon, self.y_dim)), None
            elif self._present is None:
                raise NashcastError("there is no forecast to put an interval round: call predict_one(x) first.")
            else:
                place = None if agent is None else self._member(agent)
                present = self._present[1]
                middle = present.forecast if place is None else present.own[place][None]
            low, high = self._bounds.around(coverage, middle, place)
            return self._shown(low, agent is not None), self._shown(high, agent is not None)

    def trust(self) -> list[Trust]:
        """For each member: own error, weight, and what the federation would lose without it; see `Trust`."""
        with self._lock:
            loop = self._begun()
            weights = np.zeros(len(loop.members)) if self._last_weights is None else self._last_weights
            return loop.trust.report(loop.members, weights, loop.included)

    def certificate(self) -> Certificate:
        """What the agents could have gained by deviating in the last look-back game (central placement)."""
        if self._last_game is None:
            raise NashcastError("no game has been played on the server yet; it needs a full window of labels.")
        return certify(self._last_game)

    def _shown(self, forecast: np.ndarray, one: bool = False) -> Any:
        return self._columns.show(forecast[0] if one or self.horizon == 1 else forecast)

    def _begun(self) -> StepLoop:
        if self._loop is None:
            raise NashcastError("the stream has not begun: no target is known yet.")
        return self._loop

    def _member(self, name: str) -> int:
        members = self._begun().members
        if name not in members:
            raise InvalidInput("agent", repr(name), f"Pass one of {', '.join(members)}.")
        return members.index(name)
