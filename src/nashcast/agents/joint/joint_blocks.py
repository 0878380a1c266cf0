"""The agents' side of the joint game: the memories of several agents with features of about one size.

Each target is a game of its own, with one leverage for each agent. Horizons share the information matrices and the
gains; each has its own decoders, which learn when its labels come, with the gain of the row that was forecast.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.agents.joint import small_solve
from nashcast.games.joint import FIRST_STEPS, JointGame

# Rows whose features are stored, to fit the decoders anew when the scales of features change.
REMEMBERED = 256
# Information and forgetting of the regression of private features on public ones.
_PUBLIC_RIDGE, _PUBLIC_FORGETTING = 0.1, 0.998
_REFIT_RIDGE = 1e-3
# Neighbouring agents with up to this many features are solved together, in a few calls in all.
_SIZES, _MOST_CALLS = (8, 16, 32), 4
_MANY_HORIZONS = 8


class Contributions(NamedTuple):
    """What agents send. said: in usual changes of the target from blocks, in the target's units from agents."""

    said: np.ndarray  # Z β̄ of each variant, and the averaged variant's forecast, (variants + 1, agents, y_dim, horizon)
    leverage: np.ndarray  # (forgettings, agents, y_dim)
    kernel: np.ndarray | None = None  # with the window's rows, (forgettings, agents, y_dim, rows): see `WindowBlocks`

    @property
    def played(self) -> np.ndarray:
        return self.said[:-1]

    @property
    def averaged(self) -> np.ndarray:
        return self.said[-1]


class _PendingRow(NamedTuple):
    """A row that was forecast and is not over."""

    z: np.ndarray  # features played, (agents, y_dim, size)
    unexplained: np.ndarray  # the same, including absent agents
    gains: np.ndarray  # (forgettings, agents, y_dim, size)


class PublicBlock:
    """The regression that explains private features by public ones; its gain is the same for all agents."""

    def __init__(self, y_dim: int, features: int):
        self._ridge = _PUBLIC_RIDGE * np.eye(features)
        self._refill = (1 - _PUBLIC_FORGETTING) * self._ridge  # added back at each step: the ridge does not fade
        self._information = np.repeat(self._ridge[None], y_dim, axis=0)

    def learn(self, public: np.ndarray) -> np.ndarray:
        """Add a row (y_dim, features); returns the gain (y_dim, features) with which it is learnt."""
        self._information *= _PUBLIC_FORGETTING
        self._information += public[:, :, None] * public[:, None, :] + self._refill
        return np.linalg.solve(self._information, public[..., None])[..., 0]

    def relearn(self, public: np.ndarray) -> None:
        """Fit again to all rows, (rows, y_dim, features), oldest first."""
        weights = _PUBLIC_FORGETTING ** np.arange(len(public))[::-1]
        self._information = np.einsum("t,tkq,tkr->kqr", weights, public, public)
        self._information += self._ridge

    def explain(self, public: np.ndarray, private: np.ndarray) -> np.ndarray:
        """Coefficients (agents, y_dim, size, public features) of the private rows (rows, agents, y_dim, size)."""
        weights = _PUBLIC_FORGETTING ** np.arange(len(public))[::-1]
        cross = np.einsum("t,tkq,tikd->ikqd", weights, public, private)
        # In one order of memory, so that a restored run sums in the same order.
        return np.ascontiguousarray(np.linalg.solve(self._information, cross).swapaxes(2, 3))

    def save(self) -> dict[str, np.ndarray]:
        return {"information": self._information}

    def restore(self, fields) -> None:
        self._information = fields.take("information", self._information.shape)


class JointBlocks:
    """sizes: features of each agent, padded to the largest.   public: number of public features, 0 to play all.

    remembered: how many rows may still receive labels.
    """

    def __init__(
        self, game: JointGame, sizes: list[int], public: int, y_dim: int, horizon: int, remembered: int = REMEMBERED
    ):
        self._game, N, D, L = game, len(sizes), max(sizes), len(game.forgetting)
        self.agents = N
        self._remembered, self._tiny = remembered, small_solve.pays(D, L * N * y_dim)
        self._runs = _runs(sizes)
        self._speed = np.array([variant.speed for variant in game.variants])
        self._forgetting = np.array(game.forgetting)[:, None, None, None, None]
        self._ridge = game.ridge * np.array(sizes, dtype=float)[:, None, None, None] * np.eye(D)
        # Added back to the diagonals at each step, so that the ridge does not fade.
        self._refill = (1.0 - self._forgetting[..., 0]) * (game.ridge * np.array(sizes, dtype=float))[:, None, None]
        self._information = self._laid_out(np.broadcast_to(self._ridge, (L, N, y_dim, D, D)), 1)
        self._spare = self._laid_out(self._information, 1)  # swapped with the information
        # Decoders of every variant, and the mean of the averaged variant's.
        self._all_decoders = self._laid_out(np.zeros((len(game.variants) + 1, N, y_dim, horizon, D)), 1)
        self._decoders, self._averaged = self._all_decoders[:-1], self._all_decoders[-1]  # views
        self._coefficients = np.zeros((N, y_dim, D, public))
        # Features played in the last rows and their gains, by step.
        self._rows = self._laid_out(np.zeros((remembered, N, y_dim, D)), 1)
        self._gains = self._laid_out(np.zeros((remembered, L, N, y_dim, D)), 2)

    def forecast(self, features: np.ndarray, public: np.ndarray) -> Contributions:
        """features: (agents, y_dim, size), 0 for agents that are absent.   public: (y_dim, public features)."""
        unexplained = z = features
        if self._coefficients.shape[3]:
            unexplained = z = features - np.matmul(self._coefficients, public[..., None])[..., 0]
            present = np.logical_or.reduce(features.reshape(len(features), -1), axis=1)
            if np.count_nonzero(present) < len(present):
                z = np.where(present[:, None, None], unexplained, 0.0)
        if self._tiny:
            z = self._laid_out(z, 0)
        gains = self._solved(self._prior(), z)
        leverage = self._dot(gains, z)
        if np.count_nonzero(leverage > self._game.largest_leverage):
            capped = 1.0 / np.maximum(1.0, leverage / self._game.largest_leverage)
            gains, leverage = gains * capped[..., None], leverage * capped
        self._pending = _PendingRow(z, unexplained, gains)
        contributed = self._dot(self._all_decoders, z[:, :, None])  # features are the same for all horizons
        return Contributions(contributed, leverage)

    def add_row(self, step: int, gain: np.ndarray | None, taught: bool) -> None:
        """The row that was forecast is over; it is learnt from if `taught`. gain: see `PublicBlock.learn`, if used."""
        z, unexplained, gains = self._pending
        place = step % self._remembered
        self._information, self._spare = self._spare, self._information
        if not taught:
            self._rows[place], self._gains[place] = 0.0, 0.0
            return
        self._rows[place], self._gains[place] = z, gains
        if self._tiny:
            small_solve.add_outer(self._information, z)
        else:
            self._information += z[:, :, :, None] * z[:, :, None, :]
        if self._coefficients.shape[3]:
            assert gain is not None
            self._coefficients += unexplained[..., None] * gain[:, None, :]

    def sit_out(self) -> None:
        """The sums of the row that was forecast exclude these agents."""
        z, unexplained, gains = self._pending
        self._pending = _PendingRow(np.zeros_like(z), unexplained, np.zeros_like(gains))

    def take_over(self, decoders: np.ndarray) -> None:
        """Add decoders, (variants + 1, y_dim, horizon, size): each variant's, then the averaged forecast's."""
        self._all_decoders += decoders[:, None]

    def forget(self, steps: int) -> None:
        """Discount the information matrices by `steps` steps without a row."""
        left = self._forgetting**steps
        self._information *= left
        self._information += (1.0 - left) * self._ridge

    def gains_of(self, z: np.ndarray) -> np.ndarray:
        """Γ⁻¹ z of every forgetting, (forgettings, agents, y_dim, size). z: (agents, y_dim, size)."""
        return self._solved(self._information, z)

    def said_of(self, z: np.ndarray) -> np.ndarray:
        """Forecasts of the next step by the decoders of every variant, (variants, agents, y_dim)."""
        return self._dot(self._decoders[:, :, :, 0], z)

    def absorb(self, rows: np.ndarray, moves: np.ndarray) -> None:
        """Add rows (rows, agents, y_dim, size) to the information; move decoders by (variants, agents, y_dim, size)."""
        self._information += np.einsum("sikd,sike->ikde", rows, rows)
        self._decoders[:, :, :, 0] += moves

    def recall(self, steps: np.ndarray) -> np.ndarray:
        """Forecasts of earlier rows by the present decoders, a row per horizon: (variants, agents, y_dim, horizon)."""
        z = self._of_steps(self._rows, steps).transpose(1, 2, 0, 3)  # (agents, y_dim, horizon, size)
        return self._dot(self._decoders, z)

    def learn(self, steps: np.ndarray, residuals: np.ndarray, averaging: float) -> None:
        """residuals: ρ of each variant for the rows of `steps`, (variants, agents, y_dim, horizon)."""
        # (speeds, agents, y_dim, horizon, size)
        gains = self._of_steps(self._gains, steps).transpose(1, 2, 3, 0, 4)
        if self._tiny or len(steps) >= _MANY_HORIZONS:  # without a copy of the gains for each variant
            for decoders, speed, residual in zip(self._decoders, self._speed, residuals, strict=True):
                decoders += gains[speed] * residual[..., None]
        else:
            self._decoders += gains.take(self._speed, axis=0) * residuals[..., None]
        if self._game.plays_averaged:
            self._averaged += averaging * (self._decoders[-1] - self._averaged)

    def relearn(
        self, features, public, block: PublicBlock | None, step: int, unit: np.ndarray, included: np.ndarray
    ) -> np.ndarray | None:
        """The features have changed: rows as they are now and as they were, the last one before `step`.

        features: two arrays (rows, agents, y_dim, size).   public: two arrays (rows, y_dim, public features).
        unit: the usual change before in units of the present one, (y_dim,).   included: agents whose sum counts.

        The decoders are fitted to their earlier forecasts of these rows. The part that the agents' sum loses is
        returned as decoders of the public features for `take_over`, so that the joint forecast does not change.
        """
        now, before = features
        if self._coefficients.shape[3]:
            assert block is not None
            before = before - np.einsum("tkq,ikdq->tikd", public[1], self._coefficients)
            # Contiguous, as after `restore`: the rounding of products depends on it.
            self._coefficients = np.ascontiguousarray(block.explain(public[0], now))
            now = now - np.einsum("tkq,ikdq->tikd", public[0], self._coefficients)
        rows, before = (np.ascontiguousarray(np.moveaxis(part, 0, 2)) for part in (now, before))
        before = before * unit[:, None, None]
        old = [np.matmul(before, beta.swapaxes(2, 3)) for beta in self._all_decoders]  # (agents, y_dim, rows, horizon)
        count = min(len(now), self._remembered)
        recent = np.arange(step - count, step) % self._remembered
        self._rows[recent] = now[len(now) - count :]
        ages = np.arange(len(now))[::-1]
        for speed, forgetting in enumerate(self._game.forgetting):
            faded = (rows * (forgetting**ages)[:, None]).swapaxes(2, 3)
            gram = np.matmul(faded, rows)
            self._information[speed] = gram + self._ridge
            normal = gram + _REFIT_RIDGE * self._ridge
            for place, beta in enumerate(self._all_decoders):
                if self._speed_of(place) == speed:
                    beta[:] = np.linalg.solve(normal, np.matmul(faded, old[place])).swapaxes(2, 3)
            last = rows[:, :, len(now) - count :].swapaxes(2, 3)
            gains = np.linalg.solve(self._information[speed], last)  # (agents, y_dim, size, rows)
            self._gains[recent, speed] = np.moveaxis(gains, 3, 0)
        if block is None:
            return None
        new = [np.matmul(rows, beta.swapaxes(2, 3)) for beta in self._all_decoders]
        stopped = np.array([(a - b)[included].sum(axis=0) for a, b in zip(old, new, strict=True)])
        return block.explain(public[0], stopped.transpose(2, 0, 1, 3))

    def _prior(self) -> np.ndarray:
        """The information before the next row."""
        if self._tiny:
            return small_solve.faded(self._information, self._forgetting[..., 0, 0], self._refill[..., 0], self._spare)
        faded = np.multiply(self._information, self._forgetting, out=self._spare)
        diagonals = faded.reshape(*faded.shape[:3], -1)[..., :: faded.shape[4] + 1]
        diagonals += self._refill
        return faded

    def _of_steps(self, memory: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """The rows of a memory by step; a view for a single step."""
        places = steps % self._remembered
        return memory[places[0] : places[0] + 1] if len(places) == 1 else memory[places]

    def _laid_out(self, values: np.ndarray, agents: int) -> np.ndarray:
        """A copy. For very many small blocks, the axis `agents` is contiguous in memory."""
        if not self._tiny:
            return values.copy()
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(values, agents, -1)), -1, agents)

    def _solved(self, systems: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Γ⁻¹ z of every forgetting and agent. Padded features are 0."""
        if self._tiny:
            return small_solve.solve(systems, z)
        z = z[..., None]
        if len(self._runs) == 1:
            return np.linalg.solve(systems, z)[..., 0]
        gains = np.zeros((*systems.shape[:-1], 1))
        for agents, size in self._runs:
            own = systems[:, agents, :, :size, :size]
            gains[:, agents, :, :size] = np.linalg.solve(own, z[agents, :, :size])
        return gains[..., 0]

    def _dot(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return small_solve.dot(a, b) if self._tiny else np.vecdot(a, b)

    def _speed_of(self, place: int) -> int:
        return int(self._speed[place]) if place < len(self._speed) else 0

    def save(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, f"_{name}") for name in _STATE}

    def restore(self, fields) -> None:
        for name in _STATE:
            array = getattr(self, f"_{name}")
            array[:] = fields.take(name, array.shape)


_STATE = ("information", "decoders", "averaged", "coefficients", "rows", "gains")


def _runs(sizes: list[int]) -> list[tuple[slice, int]]:
    """Neighbours of about the same size, and the largest size among them; one run of all if there would be many."""
    classes = [next((limit for limit in _SIZES if size <= limit), size) for size in sizes]
    starts = [i for i in range(len(sizes)) if i == 0 or classes[i] != classes[i - 1]]
    if len(starts) > _MOST_CALLS:
        starts = [0]
    return [(slice(a, b), max(sizes[a:b])) for a, b in zip(starts, [*starts[1:], len(sizes)], strict=True)]


def averaging_rate(step: int, forgetting: float) -> float:
    """How much of the newest decoder enters the running mean."""
    return max(FIRST_STEPS / (step + FIRST_STEPS), 1.0 - forgetting)
