"""Theorem 2 spread over its agents: each plays its own part and sends only its terms of the sums.

The agent's part is the reference solver's own code for one agent, the server's part its code for the sums.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from nashcast.games.lookback import reference
from nashcast.games.lookback.coupling import Condition
from nashcast.games.lookback.problem import NOTHING, Problem, layout_alike

# Numbers that overflow end in a condition that is not finite; NumPy's warnings are redundant.
_QUIET = partial(np.errstate, over="ignore", invalid="ignore", divide="ignore")


class Invitation(NamedTuple):
    """A spread game begins: the window's targets, the agent's own weights, and whether any agent's features vary."""

    targets: np.ndarray  # (lookback, y_dim)
    weights: np.ndarray  # (lookback,)
    start: np.ndarray  # (y_dim,)
    noisy: bool


class AgentPart:
    """One agent's part in one game: private memory, terms out, sums in.

    features, means: (lookback, y_dim, features).   covariance: (lookback, y_dim, y_dim, features, features) or None.

    decoders: β, (lookback, features).   forecasts: Ŷ, (lookback + 1, 1, y_dim).
    """

    def __init__(self, features, means, covariance, ridge: float, decay: float, invitation: Invitation):
        targets, weights, start, noisy = invitation
        T, p, d = features.shape
        flat = features.reshape(T, p * d)
        self._game = Problem(
            layout_alike(1, d, p, covariance is not None),
            flat,
            flat if means is None else means.reshape(T, p * d),
            NOTHING if covariance is None else covariance.reshape(T, -1),
            NOTHING,
            weights.reshape(T, 1),
            targets,
            start.reshape(1, p),
            np.array([ridge], dtype=float),
            np.array([decay], dtype=float),
        )
        self._noisy = noisy
        self._value, self._carry = reference.initial_value(1), np.zeros((0, 0))
        # One entry per step, the window's last step first.
        self._terms: list[reference.Terms] = []
        self._shifts: list[np.ndarray] = []
        self._surprises: list[np.ndarray] = []
        self.decoders = np.empty((T, d))
        self.forecasts = np.empty((T + 1, 1, p))
        self.forecasts[0] = start

    @_QUIET()
    def backward(self, back: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """This agent's terms of F - I, f, the noise tensor and the surprise at one step back."""
        game = self._game
        T, p = game.targets.shape
        t = T - 1 - back
        c = np.exp(-game.decay * back)
        self._value = reference.append_functionals(self._value, c, game.targets[t])
        b = reference.form_basis(self._carry, game.weights[t:], p)
        noisy = self._noisy and t > 0
        terms = reference.agents_terms(game, t, self._value, b, noisy)
        self._terms.append(terms)
        tensor = _packed(reference.noise_tensor(terms)) if noisy else np.empty(0)
        return *reference.sums(terms), tensor, self._surprise(t, terms) if self._noisy and back > 0 else np.empty(0)

    def _surprise(self, t: int, terms: reference.Terms) -> np.ndarray:
        """The effect of features minus means on the functionals: linear in ζ, and constant, (k, k + 1) in one row."""
        game = self._game
        apart = (game.features[t] - game.means[t]).reshape(game.layout.y_dim, -1) @ terms.answers[0].gain[0]
        moved = terms.basis[0] @ apart
        return np.column_stack([moved @ terms.slope[0].T, moved @ terms.offset[0]]).ravel()

    @_QUIET()
    def receive(self, back: int, carry: np.ndarray, shift: np.ndarray, tensor: np.ndarray, surprise) -> None:
        """The server's reply to the sums of one step back; the sums of noise and surprise are unchanged."""
        self._carry = carry
        self._shifts.append(shift)
        self._surprises.append(surprise)
        if back < len(self._game.targets) - 1:
            noise = None
            if tensor.size:
                noise = reference.noise_from_tensor(self._value, _unpacked(tensor, len(shift)))
            self._value = reference.carry_value(self._value, self._terms[back], shift, noise)

    @_QUIET()
    def play(self, totals: np.ndarray) -> None:
        """Play forward, along the path of ζ given by the sums. totals: sums of all agents' weights, (lookback,)."""
        game = self._game
        (group,) = game.layout.groups
        functionals = self._carry @ np.outer(totals[::-1], game.start[0]).ravel()
        steps = zip(self._terms, self._shifts, self._surprises, strict=True)
        for t, (terms, shift, surprise) in enumerate(reversed(list(steps))):
            zeta = functionals[: len(shift)] + shift
            beta = reference.play(group, terms.answers[0], zeta @ terms.slope + terms.offset)[0]
            self.decoders[t] = beta
            Z = game.features[t].reshape(game.layout.y_dim, -1)
            self.forecasts[t + 1, 0] = self.forecasts[t, 0] + Z @ beta
            functionals = zeta
            if surprise.size:
                moved = surprise.reshape(len(zeta), -1)
                functionals = zeta - moved[:, :-1] @ zeta - moved[:, -1]


def tensor_numbers(k: int) -> int:
    """Numbers in a packed noise tensor."""
    half = k * (k + 1) // 2
    return half * (half + k)


@lru_cache(maxsize=64)
def _triangle(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places of the lower triangle of a k×k matrix in its entries row by row, their mirror images, and which differ."""
    r, c = np.tril_indices(k)
    return r * k + c, c * k + r, np.flatnonzero(r != c)


def _packed(tensor: np.ndarray) -> np.ndarray:
    """A noise tensor as it is sent: a map from a triangle to a triangle and k numbers, since κ is symmetric."""
    k = round(np.sqrt(tensor.shape[1]))
    lower, upper, apart = _triangle(k)
    folded = tensor[:, lower]
    folded[:, apart] += tensor[:, upper[apart]]
    return np.concatenate([folded[lower], folded[k * k :]]).ravel()


def _unpacked(packed: np.ndarray, k: int) -> np.ndarray:
    lower, upper, _ = _triangle(k)
    rows = packed.reshape(-1, len(lower))
    tensor = np.zeros((k * k + k, k * k))
    tensor[np.ix_(lower, lower)] = tensor[np.ix_(upper, lower)] = rows[: len(lower)]
    tensor[k * k :, lower] = rows[len(lower) :]
    return tensor


class ServerPart:
    """The server's part in one spread game: from sums of terms it computes what all agents need."""

    def __init__(self):
        self._carries = [np.zeros((0, 0))]

    @_QUIET()
    def solve(self, back: int, coupling: np.ndarray, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, Condition]:
        """Carry, shift and condition of one step back, from the summed terms."""
        del self._carries[back + 1 :]
        carry, shift, condition = reference.solve_sums(coupling, offset, self._carries[back])
        self._carries.append(carry)
        return carry, shift, condition
