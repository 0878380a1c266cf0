"""A log of a hub's forecasts: one row of numbers per step, appended at once, so that a killed run loses none."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from nashcast.errors import NashcastError


class Rows(NamedTuple):
    """By step. present: whether each agent took part.   fell_back: whether a game that was due was not played by all.

    seconds: the duration of the step.
    """

    forecasts: np.ndarray
    weights: np.ndarray
    agents: np.ndarray
    present: np.ndarray
    fell_back: np.ndarray
    seconds: np.ndarray


class StepLog:
    """A file of rows: forecast, weights, the agents' forecasts, agents present, whether there was no game, seconds."""

    def __init__(self, path: str | Path, agents: int, y_dim: int):
        self._path, self._N, self._p = Path(path), agents, y_dim
        self._width = y_dim + 2 * agents + agents * y_dim + 2
        self._file = self._path.open("ab", buffering=0)

    def cut(self, steps: int) -> None:
        """Remove rows from this step on, which are written again, and an unfinished row at the end."""
        have = self._path.stat().st_size // (8 * self._width)
        if have < steps:
            raise NashcastError(f"{self._path} has {have} steps, but the run is at step {steps}. Begin anew: --fresh.")
        self._file.truncate(8 * self._width * steps)

    def append(self, forecast, weights, agents, present, fell_back: bool, seconds: float) -> None:
        parts = [np.ravel(part) for part in (forecast, weights, agents, present, fell_back, seconds)]
        row = np.concatenate(parts).astype(np.float64)
        assert row.size == self._width
        self._file.write(row.tobytes())

    def rows(self) -> Rows:
        table = np.fromfile(self._path).reshape(-1, self._width)
        ends = np.cumsum([self._p, self._N, self._N * self._p, self._N, 1])
        forecasts, weights, agents, present, fell_back, seconds = np.split(table, ends, axis=1)
        agents = agents.reshape(-1, self._N, self._p)
        return Rows(forecasts, weights, agents, present.astype(bool), fell_back[:, 0].astype(bool), seconds[:, 0])

    def close(self) -> None:
        self._file.close()
