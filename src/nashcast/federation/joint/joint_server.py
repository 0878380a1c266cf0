"""The server's side of the joint game: sums of the agents' contributions, the public player, guard and exclusion.

The public player plays the features that all agents know; agents play the remainder of their own features after a
regression on these. As that regression explains more, the agents drop a part of their contributions whose sum is a
function of the public features. The player adds this part from then on, so that learning the regression never changes
the joint forecast. An agent that makes the joint forecast worse is left out of the sums while that lasts. It is sent
the residual it would have received in them, so that an honest agent recovers. See docs/explanation/joint-game.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nashcast.agents.joint.joint_blocks import REMEMBERED, Contributions, JointBlocks, averaging_rate
from nashcast.encoders.families.rows import inverse
from nashcast.federation.joint.joint_judge import Judge, LeverageGuard
from nashcast.fields import restore_parts, saved_parts
from nashcast.games.joint import AVERAGED_BOLDNESS, JointGame


class JointForecast(NamedTuple):
    changes: np.ndarray  # per variant, (variants, y_dim, horizon)
    leverage: np.ndarray  # per variant, (variants, y_dim)
    shares: np.ndarray  # each agent's part of the changes, (variants, agents, y_dim, horizon)


class _Row(NamedTuple):
    """The row that was forecast and is not over."""

    leverage: np.ndarray  # Σ h, (speeds, y_dim)
    sums: np.ndarray  # sums of contributions, for each variant and the averaged forecast, in usual changes
    taken: np.ndarray  # forecasts of the decoders that were taken over, (variants, y_dim, horizon)


class Residual(NamedTuple):
    """ρ of every variant, in usual changes, and its ratio to the error; both (variants, y_dim, horizon)."""

    value: np.ndarray
    factor: np.ndarray


class JointServer:
    """agents: how many play besides the public player.   public: number of public features.

    groups: the group of each agent, if only sums over groups are known: then each group is judged and left out as one.
    """

    def __init__(self, game: JointGame, agents: int, public: int, y_dim: int, horizon: int, groups=None):
        self.game = game
        variants, speeds = game.variants, len(game.forgetting)
        self._speed = np.array([variant.speed for variant in variants])
        given = [1.0 if variant.boldness is None else variant.boldness for variant in variants]
        self._given_boldness = np.array(given)[:, None, None]
        self._player = JointBlocks(game, [public], 0, y_dim, horizon)
        self._groups = np.arange(agents) if groups is None else np.asarray(groups)
        judged = int(self._groups.max()) + 1
        self._judge, self._guard = Judge(len(variants), judged, y_dim, horizon), LeverageGuard(speeds, y_dim)
        # The averaged variant is reported with the forecasts of its averaged decoders.
        self._spoken = np.arange(len(variants))
        if game.plays_averaged:
            self._spoken[-1] = len(variants)
        self._horizons = np.arange(horizon)
        self._leverages = np.zeros((REMEMBERED, speeds, y_dim))  # Σ h of the last rows, by step
        # Decoders that the player has taken over from the agents, for each variant and the averaged forecast, and
        # their forecasts of the last rows, by step.
        self._taken = np.zeros((len(variants) + 1, y_dim, horizon, public))
        self._taken_said = np.zeros((REMEMBERED, len(variants), y_dim, horizon))

    @property
    def included(self) -> np.ndarray:
        """Which agents are in the sums at present, (agents,)."""
        return self._judge.included[self._groups]

    def forecast(self, contributions: Contributions, public: np.ndarray, usual: np.ndarray) -> JointForecast:
        """The joint change of every variant. public: (y_dim, features).   usual: change of each target, (y_dim,)."""
        own = self._player.forecast(public[None], np.empty((len(usual), 0)))
        contributed, leverages, _ = contributions
        if not self._judge.all_included:
            inside = self.included[:, None, None]
            contributed, leverages = contributed * inside, leverages * inside[..., 0]
        taken = np.vecdot(self._taken, public[:, None])
        sums = np.add.reduce(contributed, axis=1)
        changes = (own.said[:, 0] + taken) * usual[:, None]
        changes += sums
        total = np.add.reduce(leverages, axis=1)
        total += own.leverage[:, 0]
        self._row = _Row(total, sums * inverse(usual)[:, None], taken[:-1])
        changes, shares = changes.take(self._spoken, axis=0), contributed.take(self._spoken, axis=0)
        factor = self._guard.factor(total)
        if factor is not None:
            factor = factor.take(self._speed, axis=0)[:, :, None]
            changes, shares = changes * factor, shares * factor[:, None]
        return JointForecast(changes, total.take(self._speed, axis=0), shares)

    def add_row(self, step: int, taught: bool, gain: np.ndarray) -> None:
        """The row that was forecast is over. taught: whether it may be learnt from.   gain: see `PublicBlock.learn`."""
        place = step % REMEMBERED
        self._leverages[place], self._taken_said[place] = self._row.leverage, self._row.taken
        self._guard.add(self._row.leverage)
        self._player.add_row(step, None, taught)
        if taught and self.game.plays_remainder:
            self._taken += self._row.sums[..., None] * gain[:, None]

    def residuals(
        self, steps: np.ndarray, changes: np.ndarray, known: np.ndarray, recalled: np.ndarray, usual
    ) -> np.ndarray:
        """ρ of every variant, in usual changes. The player learns.

        (variants, agents, y_dim, horizon), or one for all agents, (variants, 1, y_dim, horizon), if all are included.

        steps: at which the labelled forecasts were made, (horizon,).   changes: in the target since, (y_dim, horizon).
        recalled: forecasts of agents' present decoders for those rows.   usual: change of each target, (y_dim,).
        """
        all_included, inside = self._judge.all_included, self.included[:, None, None]
        total = np.add.reduce(recalled if all_included else recalled * inside, axis=1)
        error = self._error(steps, changes, total, usual)
        self._judge.judge(error, self._by_group(recalled), known)
        residual, factor = self._learnt(steps, error, known, usual)
        if all_included:
            return residual[:, None]
        # Agents left out receive the residual they would have received within the sums.
        return np.where(inside, residual[:, None], residual[:, None] - factor[:, None] * recalled)

    def residual(self, steps: np.ndarray, changes: np.ndarray, known: np.ndarray, total: np.ndarray, usual) -> Residual:
        """The same from the sum over agents alone, (variants, y_dim, horizon), as each of them can compute it."""
        return self._learnt(steps, self._error(steps, changes, total, usual), known, usual)

    def _error(self, steps: np.ndarray, changes: np.ndarray, total: np.ndarray, usual: np.ndarray) -> np.ndarray:
        own = (self._player.recall(steps)[:, 0] + self._taken_at(steps)) * usual[:, None]
        error = changes - own
        error -= total
        return error

    def _learnt(self, steps: np.ndarray, error: np.ndarray, known: np.ndarray, usual: np.ndarray) -> Residual:
        """The player learns from the joint error."""
        error, leverage = self._judge.clipped(error, known), self._leverage_at(steps)
        boldness = self._boldness(leverage)
        factor = boldness / (1.0 + boldness * leverage)
        factor *= inverse(usual)[:, None] * known
        residual = factor * error
        self._player.learn(steps, residual[:, None], averaging_rate(int(steps[0]) + 1, self.game.forgetting[0]))
        return Residual(residual, factor)

    def _by_group(self, recalled: np.ndarray) -> np.ndarray:
        """Sums over the agents of each group."""
        judged = len(self._judge.included)
        if judged == recalled.shape[1]:
            return recalled
        return np.stack([recalled[:, self._groups == group].sum(axis=1) for group in range(judged)], axis=1)

    def _taken_at(self, steps: np.ndarray) -> np.ndarray:
        """Forecasts of earlier rows by the decoders taken over, (variants, y_dim, horizon)."""
        places = steps % REMEMBERED
        if len(places) == 1:  # the same as below, without copies
            return self._taken_said[int(places[0])]
        return np.moveaxis(self._taken_said[places, ..., self._horizons], 0, -1)

    def _leverage_at(self, steps: np.ndarray) -> np.ndarray:
        """Leverages of earlier rows, (variants, y_dim, horizon)."""
        return self._leverages[steps % REMEMBERED].transpose(1, 2, 0).take(self._speed, axis=0)

    def relearn(self, public, step: int, unit: np.ndarray) -> None:
        """The public features have changed. public: all remembered rows, now and before, (rows, y_dim, features).

        unit: see `JointBlocks.relearn`. The part that the agents' sum drops is added afterwards, by `take_over`.
        """
        features, everyone = tuple(part[:, None] for part in public), np.ones(1, dtype=bool)
        self._player.take_over(self._taken)
        self._taken[:], self._taken_said[:] = 0.0, 0.0
        self._player.relearn(features, public, None, step, unit, everyone)

    def take_over(self, stopped: np.ndarray) -> None:
        """Add the part that the agents' sum dropped to the player's decoders, see `JointBlocks.relearn`."""
        self._player.take_over(stopped)

    def _boldness(self, leverage: np.ndarray) -> np.ndarray:
        if not self.game.plays_averaged:
            return self._given_boldness
        boldness = np.empty(leverage.shape)
        boldness[:] = self._given_boldness
        boldness[-1] = np.maximum(1.0, AVERAGED_BOLDNESS / np.maximum(leverage[-1], 1e-9))
        return boldness

    def save(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, f"_{name}") for name in _STATE} | saved_parts(self._parts())

    def restore(self, fields) -> None:
        for name in _STATE:
            setattr(self, f"_{name}", fields.take(name, getattr(self, f"_{name}").shape))
        restore_parts(self._parts(), fields)

    def _parts(self) -> list[tuple[str, Any]]:
        return [("player.", self._player), ("judge.", self._judge), ("guard.", self._guard)]


_STATE = ("leverages", "taken", "taken_said")
