"""The server's side of the joint game: sums of what agents contribute, the public player, guard and exclusion.

The public player holds what all agents know of the targets; agents play what that does not explain of their features.
As they come to explain more of them, the sum of what they stop saying is a function of the public features: the player
says it from then on, so that learning what is public never changes the joint forecast.
An agent that makes the joint forecast worse is left out of the sums while that lasts, and hears the residual it would
have heard in them, so that an honest one finds back. See docs/explanation/joint-game.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.agents.joint_blocks import REMEMBERED, Contributions, JointBlocks, averaging_rate
from nashcast.encoders.rows import inverse
from nashcast.games.joint import AVERAGED_BOLDNESS, JointGame

# Errors beyond this many usual ones are clipped before anything is learnt from them.
_CLIP, _ERROR_MEMORY, _FIRST = 3.0, 0.98, 10
# The joint change is divided by the leverage beyond this many times its mean.
_GUARD, _LEVERAGE_MEMORY = 2.0, 0.002
# Fading of an agent's worth, and how far below 0 it falls before the agent is left out, in its standard deviations.
_WORTH_FADING, _WORTH_CLIP, _WORTH_LIMIT = 0.01, 9.0, 0.1


class JointForecast(NamedTuple):
    changes: np.ndarray  # of each variant, (variants, y_dim, horizon)
    leverage: np.ndarray  # of each variant, (variants, y_dim)
    shares: np.ndarray  # each agent's part of the changes, (variants, agents, y_dim, horizon)


class _Row(NamedTuple):
    """Of the row that was forecast and is not over."""

    leverage: np.ndarray  # Σ h, (speeds, y_dim)
    sums: np.ndarray  # of contributions, of each variant and of the averaged forecast, in usual changes
    taken: np.ndarray  # what the decoders that were taken over say, (variants, y_dim, horizon)


class JointServer:
    """agents: how many play besides the public player.   public: number of public features."""

    def __init__(self, game: JointGame, agents: int, public: int, y_dim: int, horizon: int):
        self.game = game
        variants, speeds = game.variants, len(game.forgetting)
        self._speed = np.array([variant.speed for variant in variants])
        given = [1.0 if variant.boldness is None else variant.boldness for variant in variants]
        self._given_boldness = np.array(given)[:, None, None]
        self._player = JointBlocks(game, [public], 0, y_dim, horizon)
        self._squares = np.zeros((len(variants), y_dim, horizon))  # fading mean of squared errors
        self._learnt, self._horizons = np.zeros(horizon, dtype=np.int64), np.arange(horizon)
        self._mean_leverage = np.zeros((speeds, y_dim))
        self._rows = 0
        self._leverages = np.zeros((REMEMBERED, speeds, y_dim))  # Σ h of the last rows, by step
        # Decoders that the player has taken over from the agents, of each variant and of the averaged forecast, and
        # what they said of the last rows, by step.
        self._taken = np.zeros((len(variants) + 1, y_dim, horizon, public))
        self._taken_said = np.zeros((REMEMBERED, len(variants), y_dim, horizon))
        self._worth = np.zeros((agents, y_dim))
        self._worth_squares = np.zeros((agents, y_dim))
        self._include(np.ones(agents, dtype=bool))

    @property
    def included(self) -> np.ndarray:
        """Which agents are in the sums at present, (agents,)."""
        return self._included.copy()

    def _include(self, agents: np.ndarray) -> None:
        self._included, self._all_included = agents, bool(agents.all())

    def forecast(self, contributions: Contributions, public: np.ndarray, usual: np.ndarray) -> JointForecast:
        """The joint change of every variant. public: (y_dim, features).   usual: change of each target, (y_dim,)."""
        own = self._player.forecast(public[None], np.empty((len(usual), 0)))
        played, averaged, leverages = contributions
        if not self._all_included:
            inside = self._included[:, None, None]
            played, averaged, leverages = played * inside, averaged * inside, leverages * inside[..., 0]
        taken = np.vecdot(self._taken, public[:, None])
        shares, player = played, own.played[:, 0] + taken[:-1]
        sums = np.concatenate([np.add.reduce(played, axis=1), np.add.reduce(averaged, axis=0)[None]])
        if self.game.averaged:
            shares = np.concatenate([played[:-1], averaged[None]])
            player[-1] = own.averaged[0] + taken[-1]
            changes = sums[:-1].copy()
            changes[-1] = sums[-1]
        else:
            changes = sums[:-1].copy()
        changes += player * usual[:, None]
        total = np.add.reduce(leverages, axis=1) + own.leverage[:, 0]
        self._row = _Row(total, sums * inverse(usual)[:, None], taken[:-1])
        trusted = np.maximum(1.0, _GUARD * self._mean_leverage) if self._rows else 1.0
        leverage, beyond = total.take(self._speed, axis=0), total / trusted
        if beyond.max() > 1.0:
            guard = (1.0 / np.maximum(1.0, beyond)).take(self._speed, axis=0)[:, :, None]
            changes, shares = changes * guard, shares * guard[:, None]
        return JointForecast(changes, leverage, shares)

    def add_row(self, step: int, taught: bool, gain: np.ndarray) -> None:
        """The row that was forecast is over. taught: whether it may teach.   gain: of `PublicBlock.learn`."""
        place = step % REMEMBERED
        self._leverages[place], self._taken_said[place] = self._row.leverage, self._row.taken
        self._rows += 1
        self._mean_leverage += (self._row.leverage - self._mean_leverage) * max(1.0 / self._rows, _LEVERAGE_MEMORY)
        self._player.add_row(step, None, taught)
        if taught and self.game.partial:
            self._taken += self._row.sums[..., None] * gain[:, None]

    def residuals(
        self, steps: np.ndarray, changes: np.ndarray, known: np.ndarray, recalled: np.ndarray, usual
    ) -> np.ndarray:
        """ρ of every variant and agent, (variants, agents, y_dim, horizon), in usual changes. The player learns.

        steps: at which the labelled forecasts were made, (horizon,).   changes: of the target since, (y_dim, horizon).
        recalled: what agents' present decoders say of those rows.   usual: change of each target, (y_dim,).
        """
        all_included, inside = self._all_included, self._included[:, None, None]
        taken = np.moveaxis(self._taken_said[steps % REMEMBERED, ..., self._horizons], 0, -1)
        own = (self._player.recall(steps)[:, 0] + taken) * usual[:, None]
        error = changes - own - np.add.reduce(recalled if all_included else recalled * inside, axis=1)
        self._judge(error, recalled, known)
        error = self._clipped(error, known)
        scale = inverse(usual)[:, None]
        # (variants, y_dim, horizon)
        leverage = self._leverages[steps % REMEMBERED].transpose(1, 2, 0).take(self._speed, axis=0)
        boldness = self._boldness(leverage)
        factor = boldness / (1.0 + boldness * leverage) * scale * known
        averaging = averaging_rate(int(steps[0]) + 1, self.game.forgetting[0])
        residual = (factor * error)[:, None]
        self._player.learn(steps, residual, averaging)
        heard = residual.repeat(recalled.shape[1], axis=1)
        if not all_included:  # agents left out hear what they would have heard within the sums
            heard -= np.where(inside, 0.0, factor[:, None] * recalled)
        return heard

    def relearn(self, now: np.ndarray, before: np.ndarray, step: int, unit: np.ndarray) -> None:
        """Public features mean something else: all remembered rows, (rows, y_dim, features), now and before."""
        self._player.take_over(self._taken)
        self._taken[:], self._taken_said[:] = 0.0, 0.0
        self._player.relearn((now[:, None], before[:, None]), (now, before), None, step, unit)

    def _boldness(self, leverage: np.ndarray) -> np.ndarray:
        boldness = np.empty(leverage.shape)
        boldness[:] = self._given_boldness
        if self.game.averaged:
            boldness[-1] = np.maximum(1.0, AVERAGED_BOLDNESS / np.maximum(leverage[-1], 1e-9))
        return boldness

    def _clipped(self, error: np.ndarray, known: np.ndarray) -> np.ndarray:
        limit, rate = _CLIP * np.sqrt(self._squares), 1.0 - _ERROR_MEMORY
        if self._learnt.min() < _FIRST:
            limit, rate = np.where(self._learnt >= _FIRST, limit, np.inf), np.where(self._learnt > 0, rate, 1.0)
        clipped = np.minimum(np.maximum(error, -limit), limit)
        rate = rate * known
        size = np.minimum(np.abs(clipped), 1e150)  # its square is finite
        self._squares += rate * (size * size - self._squares)
        self._learnt += known
        return clipped

    def _judge(self, error: np.ndarray, recalled: np.ndarray, known: np.ndarray) -> None:
        """Whether each agent makes the next step's joint forecast better; by the first variant."""
        if not known[0] or self._learnt[0] < _FIRST:
            return
        e, c, limit = error[0, :, 0], recalled[0, :, :, 0], _WORTH_CLIP * self._squares[0, :, 0]
        with np.errstate(over="ignore", invalid="ignore"):
            if self._all_included:
                worth = (e + c) ** 2 - e * e
            else:  # of agents left out of the sums, the question is what they would do within them
                sign = np.where(self._included, 1.0, -1.0)[:, None]
                worth = ((e + sign * c) ** 2 - e * e) * sign
        worth = np.where(np.isnan(worth), 0.0, np.minimum(np.maximum(worth, -limit), limit))
        self._worth += _WORTH_FADING * (worth - self._worth)
        self._worth_squares += _WORTH_FADING * (worth * worth - self._worth_squares)
        spread = np.sqrt(np.maximum(self._worth_squares - self._worth * self._worth, 0.0))
        self._include(np.logical_and.reduce(self._worth >= -_WORTH_LIMIT * spread, axis=1))

    def save(self) -> dict[str, np.ndarray]:
        player = {f"player.{name}": value for name, value in self._player.save().items()}
        own = {name: getattr(self, f"_{name}") for name in _STATE}
        return {**player, **own, "rows": np.array(self._rows), "included": self._included, "learnt": self._learnt}

    def restore(self, fields) -> None:
        self._player.restore(fields.part("player."))
        for name in _STATE:
            setattr(self, f"_{name}", fields.take(name, getattr(self, f"_{name}").shape))
        self._rows = int(fields.take("rows", (), dtype=np.int64, min=0))
        self._include(fields.take("included", self._included.shape, dtype=bool))
        self._learnt = fields.take("learnt", self._learnt.shape, dtype=np.int64, min=0)


_STATE = ("squares", "mean_leverage", "leverages", "taken", "taken_said", "worth", "worth_squares")
