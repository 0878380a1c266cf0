r"""An agent's own decoders: ridge regressions of the target's change, at several forgettings and ridges.

For features z, in standardised units, and the change r that followed them, each decoder minimises

    $\sum_s \lambda^{t-s} (r_s - z_s^\top\beta)^2 + \rho d\,\|\beta - c\|^2$,      c = 0, or (1, 0, …) where centred,

and forecasts zᵀβ. The leverage $h = z^\top(\sum\lambda^{t-s}zz^\top + \rho d I)^{-1}z$ measures how far z is from the
rows that β was learnt from; beyond TRUSTED_LEVERAGE, β - c is reduced in proportion.

One bank contains the decoders of several encoders of about the same size, so that one call solves them all. Horizons
share the Gram matrices: a row enters them when it is forecast, and its cross products as its labels come. Until then
the bank's own forecast stands in for the label, so that an unlabelled row changes no decoder.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Forgetting and ridge (for each feature) of the decoders.
DECODERS = ((1.0, 1e-4), (1.0, 0.3), (0.998, 10.0), (0.99, 0.3), (0.97, 0.01), (0.9, 0.01))
# Further decoders of encoders whose first feature is itself a forecast: the ridge is centred on it.
CENTRED = ((1.0, 10.0), (0.9, 0.3), (0.9, 0.01))
# An agent's regression over all its encoders is large, so it has fewer decoders.
JOINED = ((1.0, 0.3), (0.998, 1.0), (0.99, 1.0))
FORGETTING = (1.0, 0.998, 0.99, 0.97, 0.9)
TRUSTED_LEVERAGE = 5.0
# Up to this many horizons, forecasts come from a factorisation.
FEW_HORIZONS = 4
# The diagonal of the rows that border a system: larger than any sum of squares.
_BORDER = 1e150
# Sums over more rows than this fade, so that rounding in them stays far below the ridge.
LONGEST_MEMORY = 100_000


class Member(NamedTuple):
    """One encoder's place in a bank.   features: how many.   leading: its first feature is itself a forecast.

    joined: it represents all encoders of an agent together.
    """

    features: int
    leading: bool = False
    joined: bool = False

    @property
    def decoders(self) -> tuple[tuple[float, float, float], ...]:
        """Forgetting, ridge and centre of each."""
        plain = [(*pair, 0.0) for pair in (JOINED if self.joined else DECODERS)]
        return tuple(plain + ([(*pair, 1.0) for pair in CENTRED] if self.leading else []))


class BankForecast(NamedTuple):
    changes: np.ndarray  # (decoders, y_dim, horizon), in usual changes
    leverage: np.ndarray  # (decoders, y_dim)


class Bank:
    """members: the encoders, all padded to the size of the largest. Features are (members, y_dim, size).

    The memory of a member and a forgetting is the Gram matrix G, and the cross products c with the labels of each
    horizon. With few horizons they are stored in one square matrix, as `_factorised` needs it: G, below it c, and a
    last row for the features z to forecast from.
    """

    def __init__(self, members: list[Member], y_dim: int, horizon: int):
        self.members, self.size = members, max(member.features for member in members)
        E, M, D, H = len(members), len(FORGETTING), self.size, horizon
        self._rows = 0
        self._forgetting = np.array(FORGETTING)
        self._factorises = horizon <= FEW_HORIZONS
        width = D + H + 1 if self._factorises else D
        systems = np.zeros((E, M, y_dim, width, width))
        self._gram = systems[..., :D, :D]
        # A view with few horizons.
        self._cross = systems[..., D : D + H, :D] if self._factorises else np.zeros((E, M, y_dim, H, D))
        self._memory = [systems] if self._factorises else [systems, self._cross]
        self._padded = np.zeros((E, y_dim, width))  # features, and 0 in the columns after them
        decoders = [(e, *decoder) for e, member in enumerate(members) for decoder in member.decoders]
        self.member = np.array([e for e, *_ in decoders])
        self._speed = np.array([FORGETTING.index(forgetting) for _, forgetting, *_ in decoders])
        self._place = self.member * M + self._speed  # index of each decoder's memory
        ridge = np.array([rho * members[e].features for e, _, rho, _ in decoders])
        self._centre = np.array([centre for *_, centre in decoders])
        self._pull, self._centred = (ridge * self._centre)[:, None, None], bool(self._centre.any())
        # Added to the diagonal of each decoder's memory.
        self._diagonal = np.full((len(decoders), 1, width), _BORDER)
        self._diagonal[:, :, :D] = ridge[:, None, None]
        # A copy of its memory for each decoder, and views of its parts.
        self._copies = [np.zeros((len(decoders), *memory.shape[2:])) for memory in self._memory]
        self._systems = self._copies[0]
        self._diagonals = np.einsum("...dd->...d", self._systems)
        self._crosses = self._systems[..., D : D + H, :D] if self._factorises else self._copies[1]
        # The decoder of each member and forgetting whose forecast stands in for labels to come; -1 if there is none.
        self._stand_in = np.full((E, M), -1)
        for place, (e, m) in enumerate(zip(self.member, self._speed, strict=True)):
            if self._stand_in[e, m] < 0:
                self._stand_in[e, m] = place

    def forecast(self, features: np.ndarray) -> BankForecast:
        """features: those of the present row, (members, y_dim, size)."""
        z = features.take(self.member, axis=0)
        for memory, copy in zip(self._memory, self._copies, strict=True):
            # Modes other than "raise" write to `out` without a copy; all places exist.
            memory.reshape(-1, *copy.shape[1:]).take(self._place, axis=0, out=copy, mode="clip")
        self._diagonals += self._diagonal
        if self._centred:
            self._crosses[..., 0] += self._pull
        changes, leverage = (self._factorised if self._factorises else self._solved)(z)
        if np.count_nonzero(leverage > TRUSTED_LEVERAGE):
            share = 1.0 / np.maximum(1.0, leverage / TRUSTED_LEVERAGE)
            changes *= share[:, :, None]
            changes += ((1.0 - share) * z[:, :, 0] * self._centre[:, None])[:, :, None]
        return BankForecast(changes, leverage)

    def _factorised(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Changes and leverages from one Cholesky factorisation of the systems, which costs half as much as `_solved`.

        With A = LLᵀ, the factor's rows below L are c L⁻ᵀ and z L⁻ᵀ for any diagonal that is large
        enough. Their products are the forecasts c A⁻¹ z and the leverage z A⁻¹ z.
        """
        self._systems[:, :, -1, : self.size] = z
        try:
            factors = np.linalg.cholesky(self._systems)
        except np.linalg.LinAlgError:  # rounding made one of the systems indefinite
            return self._solved(z)
        below = factors[:, :, self.size :, : self.size]
        products = np.vecdot(below, below[:, :, -1:])
        return products[:, :, :-1], products[:, :, -1]

    def _solved(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same by elimination."""
        solved = np.linalg.solve(self._systems[:, :, : self.size, : self.size], z[..., None])
        return np.matmul(self._crosses, solved)[..., 0], np.vecdot(z, solved[..., 0])

    def stand_ins(self, changes: np.ndarray) -> np.ndarray:
        """Forecasts of each member and forgetting, (members, forgettings, y_dim, horizon), for labels to come."""
        return np.where((self._stand_in >= 0)[..., None, None], changes[self._stand_in], 0.0)

    def add_row(self, features: np.ndarray, changes: np.ndarray | None) -> None:
        """Add a row that was forecast.

        changes: its labels, or the forecasts that stand in for them, (members, forgettings, y_dim, horizon) or less.
        """
        self._rows += 1
        if self._rows == LONGEST_MEMORY:
            self._limit_memory()
        forgetting = self._forgetting[:, None, None, None]
        for memory in self._memory:
            memory *= forgetting
        padded = self._padded
        padded[:, :, : self.size] = features
        # Writing to the whole matrix is faster than writing to its nonzero part.
        systems = self._memory[0]
        systems += (padded[:, :, :, None] * padded[:, :, None, :])[:, None]
        if changes is not None:
            self._cross += changes[..., None] * features[:, None, :, None, :]

    def add_labels(self, features: np.ndarray, corrections: np.ndarray, ages: np.ndarray) -> None:
        """Add labels, one for each horizon, of the rows `ages` steps before the last one, (horizon,).

        features: those rows', (horizon, members, y_dim, size).   corrections: label minus its stand-in,
        (horizon, members, forgettings, y_dim); 0 where there is no label.
        """
        if np.count_nonzero(ages):
            corrections = corrections * (self._forgetting ** ages[:, None])[:, None, :, None]
        # (horizon, members, forgettings, y_dim, size) → (members, forgettings, y_dim, horizon, size)
        self._cross += (corrections[..., None] * features[:, :, None]).transpose(1, 2, 3, 0, 4)

    def relearn(self, features: np.ndarray, changes: np.ndarray) -> None:
        """Fit all memories again: rows (rows, members, y_dim, size) and changes (rows, y_dim, horizon), oldest first.

        Rows that are not learnt from have features 0.
        """
        self._rows, self._forgetting = len(features), np.array(FORGETTING)
        ages = np.arange(len(features))[::-1]
        Z = np.ascontiguousarray(np.moveaxis(features, 0, 2))  # (E, y_dim, rows, D)
        R = np.ascontiguousarray(changes.transpose(1, 2, 0))
        for m, forgetting in enumerate(FORGETTING):
            faded = Z * (forgetting**ages)[:, None]
            self._gram[:, m] = np.matmul(faded.transpose(0, 1, 3, 2), Z)
            self._cross[:, m] = np.matmul(R, faded)

    def _limit_memory(self) -> None:
        self._forgetting = np.minimum(self._forgetting, 1.0 - 1.0 / LONGEST_MEMORY)

    def save(self) -> dict[str, np.ndarray]:
        return {"gram": self._gram, "cross": self._cross, "rows": np.array(self._rows)}

    def restore(self, fields) -> None:
        self._gram[:] = fields.take("gram", self._gram.shape)
        self._cross[:] = fields.take("cross", self._cross.shape)
        self._rows = int(fields.take("rows", (), dtype=np.int64, min=0))
        if self._rows >= LONGEST_MEMORY:
            self._limit_memory()
