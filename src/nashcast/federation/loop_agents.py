"""The interface of agents to the loop of the joint game, in this process (`LocalAgents`) or remote."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from nashcast.agents.local_agents import AgentForecasts
from nashcast.encoders.families.rows import Rows


class LoopAgents(Protocol):
    """All agents of one stream. For each row: `forecast`, `add_row`, then lessons as their labels come."""

    names: list[str]
    public_now: np.ndarray  # public features of the present row, after `forecast`
    public_gain: np.ndarray  # gain with which the row is learnt, after `add_row`

    @property
    def owner(self) -> np.ndarray:
        """The agent of each expert."""
        ...

    @property
    def groups(self) -> np.ndarray | None:
        """The group of each agent, where only sums over groups are known."""
        ...

    @property
    def gives_quantiles(self) -> bool: ...

    def forecast(self, x: np.ndarray, included: np.ndarray | None = None) -> AgentForecasts:
        """Own forecasts and contributions from the present input. included: agents in the sums of the joint game."""
        ...

    def add_row(self, label: np.ndarray | None, taught: bool = True) -> None: ...

    def learn(self, steps: np.ndarray, changes: np.ndarray, known: np.ndarray) -> None: ...

    def teach(self, step: int, target: np.ndarray) -> None: ...

    def recall(self, steps: np.ndarray, included: np.ndarray | None = None) -> np.ndarray | None:
        """Forecasts of earlier rows by present decoders, (variants, agents, y_dim, horizon); None if unavailable."""
        ...

    def learn_jointly(self, steps: np.ndarray, residuals: np.ndarray) -> None: ...

    def relearn(self, before: Rows, included: np.ndarray) -> None: ...

    def expected_distance(self) -> np.ndarray | None: ...

    def end_row(self, target: np.ndarray | None, stand_in: np.ndarray) -> None:
        """Called before a row is learnt, with its label or the value that stands in for it."""
        ...

    def learn_late(self, step: int, target: np.ndarray) -> None:
        """Called before the label of an earlier step is learnt."""
        ...

    def save(self) -> dict[str, np.ndarray]: ...

    def restore(self, fields) -> None: ...
