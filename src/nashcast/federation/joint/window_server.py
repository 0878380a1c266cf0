r"""The server's side of the joint game in its window form: the residuals of all rows of a window at once.

With K the sums over agents of the kernel values of the window's rows, and e the errors there of the decoders of the
window's start, the equilibrium of all these rows together is

    $a = (I/\mu + K)^{-1} e$,

and the joint forecast of the next row adds $k^\top a$ to the sum of those decoders' forecasts, with k its kernel values
with the window. A row counts if its label comes in time; late labels are not used. No agent is left out of the sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nashcast.agents.joint.joint_blocks import Contributions
from nashcast.agents.joint.window_blocks import WindowBlocks
from nashcast.encoders.families.rows import inverse
from nashcast.errors import InvalidInput
from nashcast.federation.joint.joint_judge import Judge, LeverageGuard
from nashcast.federation.joint.joint_server import JointForecast
from nashcast.fields import restore_parts, saved_parts
from nashcast.games.joint import JointGame


class WindowServer:
    """The window form, with the interface of `JointServer`."""

    def __init__(self, game: JointGame, agents: int, public: int, y_dim: int, horizon: int):
        assert game.window is not None
        self.game, self._window = game, game.window
        V, L = len(game.variants), len(game.forgetting)
        self._speed = np.array([variant.speed for variant in game.variants])
        caution = np.array([1.0 / (variant.boldness or 1.0) for variant in game.variants])
        self._caution = caution[:, None, None, None] * np.eye(game.window)  # I/μ
        self._player = WindowBlocks(game, [public], 0, y_dim, horizon)
        self._judge, self._guard = Judge(V, agents, y_dim, horizon), LeverageGuard(L, y_dim)
        self._kernel = np.zeros((L, y_dim, game.window, game.window))  # K
        self._errors = np.zeros((V, y_dim, game.window))  # e, in usual changes
        self._residuals = np.zeros((V, y_dim, game.window))  # a
        self._count, self._last_row = 0, -1

    @property
    def included(self) -> np.ndarray:
        """Which agents are in the sums at present, (agents,)."""
        return self._judge.included.copy()

    def forecast(self, contributions: Contributions, public: np.ndarray, usual: np.ndarray) -> JointForecast:
        """The joint change of every variant. public: (y_dim, features).   usual: change of each target, (y_dim,)."""
        own, shares = self._player.forecast(public[None], public), contributions.played
        assert contributions.kernel is not None
        assert own.kernel is not None
        changes = np.add.reduce(shares, axis=1) + own.played[:, 0] * usual[:, None]
        k = self._k = np.add.reduce(contributions.kernel, axis=1) + own.kernel[:, 0]
        self._with_itself = np.add.reduce(contributions.leverage, axis=1) + own.leverage[:, 0]
        leverage = self._with_itself.take(self._speed, axis=0)
        if self._count:
            k = k.take(self._speed, axis=0)
            leverage = leverage - np.vecdot(k, np.linalg.solve(self._systems(), k[..., None])[..., 0])
        factor = self._guard.factor(self._with_itself)
        if factor is not None:
            factor = factor.take(self._speed, axis=0)[:, :, None]
            changes, shares = changes * factor, shares * factor[:, None]
        return JointForecast(changes, np.maximum(leverage, 0.0), shares)

    def add_row(self, step: int, taught: bool, gain: np.ndarray) -> None:
        """The row that was forecast is over. taught: whether it may be learnt from."""
        self._last_row = step if taught else -1
        self._guard.add(self._with_itself)

    def residuals(
        self, steps: np.ndarray, changes: np.ndarray, known: np.ndarray, recalled: np.ndarray, usual
    ) -> np.ndarray:
        """The residuals a of every variant and agent, (variants, agents, y_dim, rows), in usual changes.

        steps: at which the labelled forecast was made, (1,).   changes: in the target since, (y_dim, 1).
        recalled: agents' contributions at the last row.   usual: change of each target, (y_dim,).
        """
        if steps[0] == self._last_row and known[0]:
            forecasts = np.add.reduce(recalled, axis=1) + self._player.recall(steps)[:, 0] * usual[:, None]
            self._append(self._judge.clipped(changes - forecasts, known)[..., 0] * inverse(usual))
        n = self._count
        a = self._residuals[:, None, :, :n]
        self._player.learn(steps, a, 0.0)
        residuals = a.repeat(recalled.shape[1], axis=1)
        if n == self._window:
            self._count = 0
        return residuals

    def relearn(self, public, step: int, unit: np.ndarray) -> None:
        """The public features have changed. public: all remembered rows, now and before, (rows, y_dim, features).

        unit: see `JointBlocks.relearn`.
        """
        features, everyone = tuple(part[:, None] for part in public), np.ones(1, dtype=bool)
        self._player.relearn(features, public, None, step, unit, everyone)
        self._count = 0

    def take_over(self, stopped: np.ndarray) -> None:
        """Does nothing: agents play all of their features here, and drop no part of their sum."""
        raise NotImplementedError

    def _append(self, error: np.ndarray) -> None:
        """The last row enters the window. error: that of its joint forecast, (variants, y_dim)."""
        n = self._count
        self._kernel[..., n, :n], self._kernel[..., :n, n] = self._k, self._k
        self._kernel[..., n, n] = self._with_itself
        self._errors[..., n] = error + np.vecdot(self._k.take(self._speed, axis=0), self._residuals[..., :n])
        self._count = n + 1
        errors = self._errors[..., : n + 1]
        self._residuals[..., : n + 1] = np.linalg.solve(self._systems(), errors[..., None])[..., 0]
        self._last_row = -1

    def _systems(self) -> np.ndarray:
        """I/μ + K of every variant, (variants, y_dim, rows, rows)."""
        n = self._count
        return self._kernel[..., :n, :n].take(self._speed, axis=0) + self._caution[..., :n, :n]

    def save(self) -> dict[str, np.ndarray]:
        found = {name: getattr(self, f"_{name}") for name in _STATE}
        found["counts"] = np.array([self._count, self._last_row])
        return found | saved_parts(self._parts())

    def restore(self, fields) -> None:
        for name in _STATE:
            setattr(self, f"_{name}", fields.take(name, getattr(self, f"_{name}").shape))
        self._count, self._last_row = fields.take("counts", (2,), dtype=np.int64, min=-1).tolist()
        if not 0 <= self._count < self._window:
            raise InvalidInput("saved counts", f"{self._count}", f"Pass a number of rows below {self._window}.")
        restore_parts(self._parts(), fields)

    def _parts(self) -> list[tuple[str, Any]]:
        return [("player.", self._player), ("judge.", self._judge), ("guard.", self._guard)]


_STATE = ("kernel", "errors", "residuals")
