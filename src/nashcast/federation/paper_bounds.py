"""Intervals round a federation's forecasts and, if wished, round those of each agent."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.columns import Columns
from nashcast.intervals import Intervals


class PaperBounds:
    """agents: how many have intervals of their own, 0 for none. The federation's columns come first, then theirs."""

    def __init__(self, coverages: Sequence[float], y_dim: int, agents: int):
        self._y_dim, self._agents = y_dim, agents
        self._intervals = Intervals((1 + agents) * y_dim, coverages)

    def learn(self, forecast: np.ndarray, own: np.ndarray | None, absent: Set[int], target: np.ndarray) -> None:
        """own: the agents' forecasts (agents, y_dim), None if they are not known any more."""
        parts = np.full((1 + self._agents, self._y_dim), np.nan)
        parts[0] = forecast
        if self._agents and own is not None:
            parts[1:] = own
            parts[[1 + i for i in absent]] = np.nan
        self._intervals.learn(parts.ravel(), np.tile(target, 1 + self._agents))

    def around(self, coverage: float, forecast: np.ndarray, agent: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Low and high. forecast: of the federation, or of the agent if one is asked for."""
        known = self._intervals.coverages
        if coverage not in known:
            listed = ", ".join(f"{one:g}" for one in known)
            remedy = f"Pass one of {listed}, or make the federation with coverages=(…, {coverage!r})."
            raise InvalidInput("coverage", repr(coverage), remedy)
        if agent is not None and not self._agents:
            raise InvalidInput("agent", f"number {agent}", "Make the federation with agent_intervals=True.")
        first = 0 if agent is None else (1 + agent) * self._y_dim
        middle = np.zeros((1 + self._agents) * self._y_dim)
        middle[first : first + self._y_dim] = forecast
        low, high = self._intervals.bounds(middle)[known.index(coverage)]
        return low[first : first + self._y_dim], high[first : first + self._y_dim]

    def save(self) -> dict[str, np.ndarray]:
        return self._intervals.save()

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        self._intervals.restore(saved)


class PaperBounded:
    """A federation with intervals: `_bounds`, or None without, and `_named` and `_open` for what they are round."""

    _bounds: PaperBounds | None

    def __init__(self, x_dim: int | None, y_dim: int):
        self._columns = Columns(x_dim, y_dim)
        self._y_dim = self._columns.y_dim

    @property
    def y_dim(self) -> int:
        """How many numbers a target has."""
        return self._y_dim

    @property
    def _x_dim(self) -> int:
        return self._columns.x_dim or 0

    def _named(self) -> list[str]:
        """The agents, in the order of their forecasts."""
        raise NotImplementedError

    def _open(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The forecast whose target is not known yet, and the agents' own (agents, y_dim); None if there is none.

        Before the stream begins that is 0, and the intervals are infinite.
        """
        raise NotImplementedError

    def interval(self, coverage: float = 0.9, agent: str | None = None) -> tuple:
        """Low and high round the forecast whose target is not known yet: the federation's, or a named agent's."""
        if self._bounds is None:
            raise NashcastError("this federation was made without intervals: pass coverages=(0.8, 0.9, 0.95).")
        now = self._open()
        if now is None:
            raise NashcastError("there is no forecast to put an interval round: call predict_one(x) first.")
        names, place = self._named(), None
        if agent is not None:
            if agent not in names:
                known = f"Pass one of {', '.join(names)}." if names else "Ask when the first target is known."
                raise InvalidInput("agent", repr(agent), known)
            place = names.index(agent)
        low, high = self._bounds.around(coverage, now[0] if place is None else now[1][place], place)
        return self._columns.show(low), self._columns.show(high)
