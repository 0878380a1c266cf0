r"""The joint game, in which agents keep the decoders they played, and its equilibrium in closed form.

All agents are anchored at the last target. Agent i has features $Z^i$ (d_y × d_i) and keeps one decoder $\beta^i$; its
cost is

    $J_i = \|r - \sum_j Z^j\beta^j\|^2 + \|\beta^i - \bar\beta^i\|^2_{\Gamma_i}$,      $r = y_{t+1} - y_t$,

with $\bar\beta^i$ the decoder it played last and $\Gamma_i$ its information matrix so far. The equilibrium is unique,
and needs only two sums over agents: the contributions $c_i = Z^i\bar\beta^i$ and the leverages
$h_i = Z^i\Gamma_i^{-1}Z^{i\top}$:

    $e = r - \sum_j c_j$
    $\rho = (I + \mu\sum_j h_j)^{-1}\mu e$
    $\beta^i = \bar\beta^i + \Gamma_i^{-1}Z^{i\top}\rho$

The boldness μ replaces $\Gamma_i$ by $\Gamma_i/\mu$: correlated agents need a large one. See
docs/explanation/joint-game.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.short_repr import short_repr
from nashcast.validation import integer, number

# The averaged variant's boldness is this over the leverage, at least 1; it forecasts with a running mean of its
# decoders, whose first steps weigh 1 / FIRST_STEPS.
AVERAGED_BOLDNESS, FIRST_STEPS = 0.2, 4.0
LONGEST_WINDOW = 1000


@dataclass(frozen=True)
class JointGame:
    """How agents learn together.

    forgetting: the weight of a step relative to the next one in each agent's information matrix; one variant for each,
        and for each boldness.   boldness: μ of the variants.   averaged: a further variant whose boldness adapts, and
        which forecasts with the mean of its decoders.
    ridge: γ for each feature.
    partial: agents play the part of their features that the public history does not explain.
    largest_leverage: an agent's leverage counts as this at most, so that none can stop the others from learning;
        infinity for the game as derived.
    window: how many steps are played as one game, at its exact equilibrium; None to play each step. Agents then play
        all of their features, and send as many kernel values as the window has rows. For one horizon, without the
        averaged variant.
    """

    forgetting: tuple[float, ...] = (0.998, 0.99)
    boldness: tuple[float, ...] = (1.0, 16.0)
    averaged: bool = True
    ridge: float = 5.0
    partial: bool = True
    largest_leverage: float = 1.0
    window: int | None = None

    __repr__ = short_repr

    def __post_init__(self):
        for value in self.forgetting:
            number("forgetting", value, above=0.0, max=1.0)
        for value in self.boldness:
            number("boldness", value, above=0.0)
        number("ridge", self.ridge, above=0.0)
        if not self.largest_leverage > 0.0:
            raise InvalidInput("largest_leverage", f"{self.largest_leverage}", "Pass a number > 0, or infinity.")
        if self.window is not None:
            integer("window", self.window, min=1, max=LONGEST_WINDOW)
        integer("forgetting", len(self.forgetting), min=1)
        integer("boldness", len(self.boldness), min=1)

    @property
    def variants(self) -> list[Variant]:
        found = [Variant(i, mu) for i in range(len(self.forgetting)) for mu in self.boldness]
        return found + ([Variant(0, None)] if self.plays_averaged else [])

    @property
    def plays_averaged(self) -> bool:
        return self.averaged and self.window is None

    @property
    def plays_remainder(self) -> bool:
        """Whether agents play the part of their features that the public history does not explain."""
        return self.partial and self.window is None


class Variant(NamedTuple):
    """speed: the index of its forgetting.   boldness: μ, or None for the averaged variant."""

    speed: int
    boldness: float | None


class Equilibrium(NamedTuple):
    """residual: ρ, (…, y_dim).   moves: β - β̄ of each agent, (…, features)."""

    residual: np.ndarray
    moves: list[np.ndarray]


def joint_equilibrium(
    features: Sequence[np.ndarray], information: Sequence[np.ndarray], error: np.ndarray, boldness: float = 1.0
) -> Equilibrium:
    r"""One step of the game.

    features: $Z^i$, (y_dim, d_i).   information: $\Gamma_i$, (d_i, d_i).   error: e, (y_dim,).   boldness: μ.

    >>> import numpy as np
    >>> joint_equilibrium([np.eye(1), np.eye(1)], [np.eye(1), np.eye(1)], np.array([3.0])).moves
    [array([1.]), array([1.])]
    """
    gains = [np.linalg.solve(G, Z.T) for Z, G in zip(features, information, strict=True)]
    leverage = sum(Z @ gain for Z, gain in zip(features, gains, strict=True))
    rho = remaining(error, np.asarray(leverage), boldness)
    return Equilibrium(rho, [gain @ rho for gain in gains])


def remaining(error: np.ndarray, leverage: np.ndarray, boldness: float) -> np.ndarray:
    """ρ: the residual that remains after all agents moved, in units of their moves. leverage: Σ h, (y_dim, y_dim)."""
    return np.linalg.solve(np.eye(len(error)) + boldness * leverage, boldness * error)


def deviation_gains(
    features: Sequence[np.ndarray], information: Sequence[np.ndarray], error: np.ndarray, moves: Sequence[np.ndarray],
    boldness: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """What each agent would gain by its best deviation, as a share of its cost; computed without the equilibrium.

    The others' moves are fixed; the agent's cost is a quadratic in its own move, whose minimum is a ridge regression.
    """
    residual = error - sum(Z @ move for Z, move in zip(features, moves, strict=True))
    gains = []
    for Z, G, move in zip(features, information, moves, strict=True):
        G = G / boldness
        others = residual + Z @ move

        def cost(m, Z=Z, G=G, others=others):
            left = others - Z @ m
            return float(left @ left + m @ G @ m)

        best = np.linalg.solve(Z.T @ Z + G, Z.T @ others)
        played = cost(move)
        gains.append((played - cost(best)) / played if played > 0.0 else 0.0)
    return np.array(gains)
