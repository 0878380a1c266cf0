"""Encoders at work: each turns the present step into standardised features, and past rows again when scales change."""

from __future__ import annotations

from typing import Any

import numpy as np

from nashcast.agents.history import KEPT, History
from nashcast.agents.plain_state import restored_state, to_arrays
from nashcast.encoders.base import BuiltEncoder, BuiltForecaster, Noise, RowEncoder
from nashcast.encoders.rows import LARGEST_SCORE, Rows, Scales, inverse
from nashcast.errors import NashcastError

# Public features that accompany those of an encoder that does not look at the targets itself.
COMPANIONS = 3


class Unit:
    """One built encoder of one agent.   columns: the inputs it may see, None for all.   key: names its noise."""

    def __init__(self, built: BuiltEncoder, columns: np.ndarray | None, key: int):
        self.built, self.columns, self._key = built, columns, key
        self.size = self.private = int(built.features)
        self.leading = bool(getattr(built, "leading_feature", False))
        self.forecasts = 0
        self.decoded = True  # whether a bank of decoders learns from it
        self.follows_season = bool(getattr(built, "seasonal", False))
        self._state = self._next = built.start()

    def encode(self, history: History, rows: Rows, x: np.ndarray) -> np.ndarray:
        """Features of the present row, (y_dim, size). Raises what the encoder raises."""
        context = self._context(history, rows, x)
        self._next = self.built.advance(context)
        return self.built.encode(context._replace(state=self._next))

    def commit(self) -> None:
        """The present row is over: its state is the next one's past."""
        self._state = self._next

    def encode_rows(self, rows: Rows) -> tuple[np.ndarray, Any]:
        """Features of past rows, (rows, y_dim, size), and the state after them."""
        assert isinstance(self.built, RowEncoder)
        return self.built.encode_rows(rows.take(self.columns), self.built.start())

    def revise(self, rows: Rows) -> None:
        """Scales have changed."""

    def take_state(self, state: Any) -> None:
        """Continue from the state after rows that were encoded again."""
        self._state = state

    def _context(self, history: History, rows: Rows, x: np.ndarray):
        built, own = self.built, x if self.columns is None else x[self.columns]
        if not (built.accepts_missing or built.fills_missing or np.isfinite(own).all()):
            raise NashcastError("its encoder does not accept missing inputs")
        if built.fills_missing:
            x = history.inputs[history.now]
        wants = (built.past_inputs, built.past_targets)
        noise = Noise(self._key, history.step)
        context = history.context(rows.take(self.columns), x, self.columns, wants, noise)
        return context._replace(state=self._state)

    def save(self) -> dict[str, np.ndarray]:
        return to_arrays("state", self._state)

    def restore(self, fields) -> None:
        self._state = self._next = restored_state(self.built.start(), fields.part("state").rest())


class RawUnit(Unit):
    """An encoder whose features come in units of its own: they are remembered as they came, and standardised."""

    def __init__(self, built: BuiltEncoder, columns: np.ndarray | None, key: int, y_dim: int):
        super().__init__(built, columns, key)
        self.size = self.private + COMPANIONS
        self._raw = np.zeros((KEPT, y_dim, self.private))
        self._present = np.zeros(KEPT, dtype=bool)
        self._scales = Scales.unknown(y_dim * self.private)

    def encode(self, history: History, rows: Rows, x: np.ndarray) -> np.ndarray:
        raw = np.asarray(super().encode(history, rows, x), dtype=np.float64)
        wanted = self._raw.shape[1:]
        if raw.shape != wanted:
            raise NashcastError(f"its encoder gave features of shape {raw.shape}, but declared {wanted}")
        return self._kept(history, raw, rows)

    def forget_present(self, history: History) -> None:
        """The agent sits the present row out."""
        self._present[history.step % KEPT] = False

    def encode_rows(self, rows: Rows) -> tuple[np.ndarray, Any]:
        raw, present = self._remembered(rows)
        features = np.concatenate([self._standardised(raw), companions(rows)], axis=2)
        return features * present[:, None, None], self._state

    def revise(self, rows: Rows) -> None:
        raw, present = self._remembered(rows)
        if present.any():
            self._scales = Scales.of(raw[present].reshape(present.sum(), -1))

    def _remembered(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        places = (rows.span.first_step + np.arange(rows.count)) % KEPT
        return self._raw[places], self._present[places]

    def _kept(self, history: History, raw: np.ndarray, rows: Rows) -> np.ndarray:
        if not np.isfinite(raw).all():
            raise NashcastError("its encoder gave a number that is not finite")
        place = history.step % KEPT
        # Beyond this a number says nothing more, and its square would overflow.
        self._raw[place], self._present[place] = np.clip(raw, -1e100, 1e100), True
        return np.concatenate([self._standardised(self._raw[place][None])[0], companions(rows)[0]], axis=1)

    def _standardised(self, raw: np.ndarray) -> np.ndarray:
        shape = raw.shape[1:]
        scores = (raw - self._scales.mean.reshape(shape)) * inverse(self._scales.spread).reshape(shape)
        return np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)

    def save(self) -> dict[str, np.ndarray]:
        return {**super().save(), "raw": self._raw, "present": self._present, "scales": np.stack(self._scales)}

    def restore(self, fields) -> None:
        super().restore(fields)
        self._raw = fields.take("raw", self._raw.shape)
        self._present = fields.take("present", self._present.shape, dtype=bool)
        self._scales = Scales(*fields.take("scales", (3, self._raw[0].size)))


class ForecasterUnit(RawUnit):
    """A black box that forecasts. Its forecasts are experts, and their distances from the last target features."""

    def __init__(self, built: BuiltForecaster, columns: np.ndarray | None, key: int, y_dim: int, horizon: int):
        self._ends = (0,) if horizon == 1 else (0, horizon - 1)
        self._horizon, self._forecaster = horizon, built
        super().__init__(built, columns, key, y_dim)
        self.forecasts, self.decoded = built.forecasts, not built.calibrated
        self.private = built.forecasts * len(self._ends)
        self.size = self.private + COMPANIONS
        self._raw = np.zeros((KEPT, y_dim, self.private))
        self._scales = Scales.unknown(y_dim * self.private)
        self.said = np.zeros((self.forecasts, horizon, y_dim))

    def encode(self, history: History, rows: Rows, x: np.ndarray) -> np.ndarray:
        context = self._context(history, rows, x)
        self._next = self.built.advance(context)
        now = history.targets[history.now]
        said = np.asarray(self._forecaster.forecast(context._replace(state=self._next), self._horizon), dtype=float)
        if said.shape != self.said.shape:
            raise NashcastError(f"it gave forecasts of shape {said.shape}, but declared {self.said.shape}")
        if not np.isfinite(said[:, 0]).all():
            raise NashcastError("its forecast is not finite")
        # Where it does not reach that far, its last forecast stands.
        self.said = _filled(np.clip(said, -1e150, 1e150))
        raw = (self.said[:, self._ends] - now).transpose(2, 0, 1).reshape(len(now), -1)
        return self._kept(history, raw, rows)

    def revise(self, rows: Rows) -> None:
        """Forecast changes are measured in usual changes of the target, which the rows know."""

    def _standardised(self, raw: np.ndarray) -> np.ndarray:
        return np.clip(raw * self._size[:, None], -LARGEST_SCORE, LARGEST_SCORE)

    def _kept(self, history: History, raw: np.ndarray, rows: Rows) -> np.ndarray:
        self._size = inverse(history.scales.change)
        return super()._kept(history, raw, rows)

    def encode_rows(self, rows: Rows) -> tuple[np.ndarray, Any]:
        self._size = rows.size
        return super().encode_rows(rows)


def companions(rows: Rows) -> np.ndarray:
    """One, the last value and the last change of each target, (rows, y_dim, COMPANIONS)."""
    return np.stack([np.ones((rows.count, rows.y_dim)), rows.value(0), rows.change(0)], axis=2)


def make_unit(built: BuiltEncoder, columns: np.ndarray | None, key: int, y_dim: int, horizon: int) -> Unit:
    if isinstance(built, BuiltForecaster):
        return ForecasterUnit(built, columns, key, y_dim, horizon)
    if isinstance(built, RowEncoder):
        return Unit(built, columns, key)
    return RawUnit(built, columns, key, y_dim)


def _filled(said: np.ndarray) -> np.ndarray:
    for h in range(1, said.shape[1]):
        said[:, h] = np.where(np.isfinite(said[:, h]), said[:, h], said[:, h - 1])
    return said
