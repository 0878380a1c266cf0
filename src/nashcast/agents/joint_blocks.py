"""The agents' side of the joint game: what several agents with features of about one size remember of it.

Each target is a game of its own, with one leverage for each agent. Horizons share the information matrices and the
gains; each has its own decoders, which learn when its labels come, with the gain of the row that was forecast.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.games.joint import FIRST_STEPS, JointGame

# Rows whose features are remembered, to fit the decoders anew when features change their meaning.
REMEMBERED = 256
# Information and forgetting of the regression of private features on public ones.
_PUBLIC_RIDGE, _PUBLIC_FORGETTING = 0.1, 0.998
_REFIT_RIDGE = 1e-3


class Contributions(NamedTuple):
    """What crosses the line: of each agent, in usual changes of the target."""

    played: np.ndarray  # Z β̄ of each variant, (variants, agents, y_dim, horizon)
    averaged: np.ndarray  # the averaged variant's forecast, (agents, y_dim, horizon)
    leverage: np.ndarray  # (forgettings, agents, y_dim)


class PublicBlock:
    """The regression that explains private features by public ones; its gain is the same for all agents."""

    def __init__(self, y_dim: int, features: int):
        self._information = np.broadcast_to(_PUBLIC_RIDGE * np.eye(features), (y_dim, features, features)).copy()

    def learn(self, public: np.ndarray) -> np.ndarray:
        """Take in a row (y_dim, features); returns the gain (y_dim, features) with which it is learnt from."""
        eye = np.eye(public.shape[1])
        self._information *= _PUBLIC_FORGETTING
        self._information += public[:, :, None] * public[:, None, :] + (1 - _PUBLIC_FORGETTING) * _PUBLIC_RIDGE * eye
        return np.linalg.solve(self._information, public[..., None])[..., 0]

    def relearn(self, public: np.ndarray) -> None:
        """All rows again, (rows, y_dim, features), oldest first."""
        weights = _PUBLIC_FORGETTING ** np.arange(len(public))[::-1]
        self._information = np.einsum("t,tkq,tkr->kqr", weights, public, public)
        self._information += _PUBLIC_RIDGE * np.eye(public.shape[2])

    def explain(self, public: np.ndarray, private: np.ndarray) -> np.ndarray:
        """Coefficients (agents, y_dim, size, public features) of the private rows (rows, agents, y_dim, size)."""
        weights = _PUBLIC_FORGETTING ** np.arange(len(public))[::-1]
        cross = np.einsum("t,tkq,tikd->ikqd", weights, public, private)
        return np.linalg.solve(self._information, cross).swapaxes(2, 3)

    def save(self) -> dict[str, np.ndarray]:
        return {"information": self._information}

    def restore(self, fields) -> None:
        self._information = fields.take("information", self._information.shape)


class JointBlocks:
    """sizes: features of each agent, padded to the largest.   public: number of public features, 0 to play all."""

    def __init__(self, game: JointGame, sizes: list[int], public: int, y_dim: int, horizon: int):
        self._game, N, D, L = game, len(sizes), max(sizes), len(game.forgetting)
        self._speed = np.array([variant.speed for variant in game.variants])
        self._forgetting = np.array(game.forgetting)[:, None, None, None, None]
        self._ridge = game.ridge * np.array(sizes, dtype=float)[:, None, None, None] * np.eye(D)
        self._information = np.broadcast_to(self._ridge, (L, N, y_dim, D, D)).copy()
        self._decoders = np.zeros((len(game.variants), N, y_dim, horizon, D))
        self._averaged = np.zeros((N, y_dim, horizon, D))
        self._coefficients = np.zeros((N, y_dim, D, public))
        self._rows = np.zeros((REMEMBERED, N, y_dim, D))  # what was played in the last rows, by step
        self._gains = np.zeros((REMEMBERED, L, N, y_dim, D))

    def forecast(self, features: np.ndarray, public: np.ndarray) -> Contributions:
        """features: (agents, y_dim, size), 0 for agents that are absent.   public: (y_dim, public features)."""
        z = self._private(features, public)
        prior = self._faded()
        gains = np.linalg.solve(prior, np.broadcast_to(z[..., None], (*prior.shape[:-1], 1)))[..., 0]
        leverage = (z * gains).sum(axis=3)
        # One agent's leverage counts as 1 at most, so that no agent can stop the others from learning.
        capped = 1.0 / np.maximum(1.0, leverage)
        self._pending = (z, gains * capped[..., None], prior)
        played = np.matmul(self._decoders, z[..., None])[..., 0]
        return Contributions(played, np.matmul(self._averaged, z[..., None])[..., 0], leverage * capped)

    def add_row(self, step: int, features: np.ndarray, public: np.ndarray, gain: np.ndarray, taught: bool) -> None:
        """The row that was forecast is over. gain: of `PublicBlock.learn`.   taught: whether the row may teach."""
        z, gains, prior = self._pending
        if not taught:
            z, gains = np.zeros_like(z), np.zeros_like(gains)
        self._rows[step % REMEMBERED], self._gains[step % REMEMBERED] = z, gains
        prior += z[:, :, :, None] * z[:, :, None, :]
        self._information = prior
        if self._coefficients.shape[3] and taught:
            unexplained = features - np.matmul(self._coefficients, public[..., None])[..., 0]
            self._coefficients += unexplained[..., None] * gain[:, None, :]

    def recall(self, steps: np.ndarray) -> np.ndarray:
        """What the present decoders say of earlier rows, one for each horizon: (variants, agents, y_dim, horizon)."""
        z = np.moveaxis(self._rows[steps % REMEMBERED], 0, 2)  # (agents, y_dim, horizon, size)
        return (self._decoders * z).sum(axis=4)

    def learn(self, steps: np.ndarray, residuals: np.ndarray, averaging: float) -> None:
        """residuals: ρ of each variant for the rows of `steps`, (variants, agents, y_dim, horizon)."""
        gains = np.moveaxis(self._gains[steps % REMEMBERED], 0, 3)  # (speeds, agents, y_dim, horizon, size)
        self._decoders += gains[self._speed] * residuals[..., None]
        if self._game.averaged:
            self._averaged += averaging * (self._decoders[-1] - self._averaged)

    def relearn(self, features, public, block: PublicBlock | None, step: int, unit: np.ndarray) -> None:
        """Features mean something else: rows as they are now and as they were, the last one before `step`.

        features: two arrays (rows, agents, y_dim, size).   public: two arrays (rows, y_dim, public features).
        unit: the usual change before in units of the present one, (y_dim,). The decoders are fitted to what they said
        of these rows, so that the joint forecast stays what it was.
        """
        now, before = features
        if self._coefficients.shape[3]:
            assert block is not None
            before = before - np.einsum("tkq,ikdq->tikd", public[1], self._coefficients)
            # In one piece, as it is after `restore`: the rounding of products depends on it.
            self._coefficients = np.ascontiguousarray(block.explain(public[0], now))
            now = now - np.einsum("tkq,ikdq->tikd", public[0], self._coefficients)
        rows, before = (np.ascontiguousarray(np.moveaxis(part, 0, 2)) for part in (now, before))
        before = before * unit[:, None, None]
        said = [
            np.matmul(before, kept.swapaxes(2, 3)) for kept in self._all_decoders()
        ]  # (agents, y_dim, rows, horizon)
        count = min(len(now), REMEMBERED)
        recent = np.arange(step - count, step) % REMEMBERED
        self._rows[recent] = now[len(now) - count :]
        ages = np.arange(len(now))[::-1]
        for speed, forgetting in enumerate(self._game.forgetting):
            faded = (rows * (forgetting**ages)[:, None]).swapaxes(2, 3)
            gram = np.matmul(faded, rows)
            self._information[speed] = gram + self._ridge
            normal = gram + _REFIT_RIDGE * self._ridge
            for place, kept in enumerate(self._all_decoders()):
                if self._speed_of(place) == speed:
                    kept[:] = np.linalg.solve(normal, np.matmul(faded, said[place])).swapaxes(2, 3)
            last = rows[:, :, len(now) - count :].swapaxes(2, 3)
            gains = np.linalg.solve(self._information[speed], last)  # (agents, y_dim, size, rows)
            self._gains[recent, speed] = np.moveaxis(gains, 3, 0)

    def _all_decoders(self) -> list[np.ndarray]:
        return [*self._decoders, self._averaged]

    def _speed_of(self, place: int) -> int:
        return int(self._speed[place]) if place < len(self._speed) else 0

    def _private(self, features: np.ndarray, public: np.ndarray) -> np.ndarray:
        if not self._coefficients.shape[3]:
            return features
        z = features - np.matmul(self._coefficients, public[..., None])[..., 0]
        return np.where(features.any(axis=(1, 2))[:, None, None], z, 0.0)

    def _faded(self) -> np.ndarray:
        return self._forgetting * self._information + (1.0 - self._forgetting) * self._ridge

    def save(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, f"_{name}") for name in _STATE}

    def restore(self, fields) -> None:
        for name in _STATE:
            setattr(self, f"_{name}", fields.take(name, getattr(self, f"_{name}").shape))


_STATE = ("information", "decoders", "averaged", "coefficients", "rows", "gains")


def averaging_rate(step: int, forgetting: float) -> float:
    """How much of the newest decoder enters the running mean."""
    return max(FIRST_STEPS / (step + FIRST_STEPS), 1.0 - forgetting)
