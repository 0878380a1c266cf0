r"""The agents' side of the joint game in its window form: all rows of a window are played as one game.

Decoders $\bar\beta$ and information matrices Γ stay as they were at the window's start. An agent's row z has kernel
values $z^\top\Gamma^{-1}z_s$ with the rows before it; the sums of these over agents give the residuals a of all
rows of the window at once (see `WindowServer`), and the agent plays

    $\beta = \bar\beta + \sum_s a_s \Gamma^{-1} z_s$.

A full window is absorbed: β becomes $\bar\beta$, and its rows enter Γ, which has forgotten as many steps before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.agents.joint.joint_blocks import Contributions, JointBlocks, PublicBlock
from nashcast.games.joint import JointGame


class _PendingRow(NamedTuple):
    z: np.ndarray  # (agents, y_dim, size)
    gains: np.ndarray  # Γ⁻¹ z, (forgettings, agents, y_dim, size)


class WindowBlocks:
    """The interface of `JointBlocks`; agents play all of their features, and forecast the next step only.

    sizes: features of each agent, padded to the largest.
    """

    def __init__(self, game: JointGame, sizes: list[int], public: int, y_dim: int, horizon: int):
        assert game.window is not None
        assert horizon == 1
        self._window, self.agents = game.window, len(sizes)
        self._speed = np.array([variant.speed for variant in game.variants])
        self._kept = JointBlocks(game, sizes, 0, y_dim, 1, remembered=1)  # β̄ and Γ
        N, D = len(sizes), max(sizes)
        self._rows = np.zeros((game.window, N, y_dim, D))
        self._gains = np.zeros((game.window, len(game.forgetting), N, y_dim, D))
        self._residuals = np.zeros((len(game.variants), N, y_dim, game.window))  # a, of the rows so far
        self._count = 0
        self._said = np.zeros((len(game.variants), N, y_dim, 1))  # contributions at the last row
        self._kept.forget(game.window)

    def forecast(self, features: np.ndarray, public: np.ndarray) -> Contributions:
        """features: (agents, y_dim, size), 0 for agents that are absent."""
        n = self._count
        gains = self._kept.gains_of(features)
        self._pending = _PendingRow(features, gains)
        kernel = np.einsum("slikd,ikd->liks", self._gains[:n], features)  # (forgettings, agents, y_dim, rows)
        said = self._kept.said_of(features)
        said += np.vecdot(kernel[self._speed], self._residuals[..., :n])
        self._said = said[..., None]
        return Contributions(np.concatenate([self._said, self._said[-1:]]), np.vecdot(gains, features), kernel)

    def add_row(self, step: int, gain: np.ndarray | None, taught: bool) -> None:
        """The row that was forecast is over. It enters the window when its label comes."""

    def recall(self, steps: np.ndarray) -> np.ndarray:
        """The contributions at the last row, (variants, agents, y_dim, 1)."""
        return self._said

    def learn(self, steps: np.ndarray, residuals: np.ndarray, averaging: float) -> None:
        """residuals: a of all rows of the window, (variants, agents, y_dim, rows); one more row if it has a label."""
        n = residuals.shape[3]
        if n > self._count:
            self._rows[n - 1], self._gains[n - 1] = self._pending
        self._count = n
        self._residuals[..., :n] = residuals
        if n == self._window:
            self._absorb()

    def relearn(
        self, features, public, block: PublicBlock | None, step: int, unit: np.ndarray, included: np.ndarray
    ) -> None:
        """The features have changed: see `JointBlocks.relearn`. The window ends early."""
        self._absorb()
        self._kept.relearn(features, public, None, step, unit, included)
        self._kept.forget(self._window)

    def _absorb(self) -> None:
        n = self._count
        gains = self._gains[:n].take(self._speed, axis=1)  # (rows, variants, agents, y_dim, size)
        moves = np.einsum("viks,svikd->vikd", self._residuals[..., :n], gains)
        self._kept.absorb(self._rows[:n], moves)
        self._kept.forget(self._window)
        self._count = 0

    def save(self) -> dict[str, np.ndarray]:
        own = {name: getattr(self, f"_{name}") for name in _STATE}
        kept = {f"kept.{name}": value for name, value in self._kept.save().items()}
        return {**own, **kept, "count": np.array(self._count)}

    def restore(self, fields) -> None:
        for name in _STATE:
            array = getattr(self, f"_{name}")
            array[:] = fields.take(name, array.shape)
        self._count = int(fields.take("count", (), dtype=np.int64, min=0, max=self._window - 1))
        self._kept.restore(fields.part("kept."))


_STATE = ("rows", "gains", "residuals", "said")
