"""Units that run encoders: the present step becomes standardised features, and past rows again when scales change."""

from __future__ import annotations

from typing import Any

import numpy as np

from nashcast.agents.history import KEPT, History
from nashcast.agents.units.plain_state import restored_state, to_arrays
from nashcast.encoders.base import (
    BuiltEncoder,
    BuiltForecaster,
    Context,
    ForecastSet,
    Noise,
    Quantiles,
)
from nashcast.encoders.families.rows import Rows, Scales, clipped
from nashcast.errors import NashcastError

# Public features added to those of an encoder that does not use the targets itself.
COMPANIONS = 3


class Unit:
    """One built encoder of standardised rows of one agent.   columns: the inputs it may see, None for all."""

    built: Any

    def __init__(self, built: BuiltEncoder, columns: np.ndarray | None):
        self.built, self.columns = built, columns
        self.size = self.private = int(built.features)
        self.leading = bool(getattr(built, "leading_feature", False))
        self.forecasts = 0
        self.decoded = True  # whether a bank of decoders learns from it
        self.follows_season = bool(getattr(built, "seasonal", False))
        self._state = self._next = built.start()

    def encode(self, history: History, rows: Rows, x: np.ndarray) -> np.ndarray:
        """Features of the present row, (y_dim, size). Raises what the encoder raises."""
        features, self._next = self.built.encode_rows(rows.take(self.columns), self._state)
        return features[0]

    def commit(self) -> None:
        """The present row is over: keep the state after it."""
        self._state = self._next

    def encode_rows(self, rows: Rows) -> tuple[np.ndarray, Any]:
        """Features of past rows, (rows, y_dim, size), and the state after them."""
        return self.built.encode_rows(rows.take(self.columns), self.built.start())

    def revise(self, rows: Rows) -> None:
        """Update to changed scales."""

    def take_state(self, state: Any) -> None:
        """Continue from the state after rows that were encoded again."""
        self._state = state

    def save(self) -> dict[str, np.ndarray]:
        return to_arrays("state", self._state)

    def restore(self, fields) -> None:
        self._state = self._next = restored_state(self.built.start(), fields.part("state").rest())


class RawUnit(Unit):
    """An encoder whose features have units of their own: the raw features are stored, and standardised.

    key: seeds its noise.
    """

    def __init__(self, built: BuiltEncoder, columns: np.ndarray | None, key: int, y_dim: int):
        super().__init__(built, columns)
        self._key = key
        self.size = self.private + COMPANIONS
        self._raw = np.zeros((KEPT, y_dim, self.private))
        self._present = np.zeros(KEPT, dtype=bool)
        self._scales = Scales.unknown(y_dim * self.private)

    def encode(self, history: History, rows: Rows, x: np.ndarray) -> np.ndarray:
        raw = np.asarray(self.built.encode(self._advanced(history, rows, x)), dtype=np.float64)
        wanted = self._raw.shape[1:]
        if raw.shape != wanted:
            raise NashcastError(f"its encoder gave features of shape {raw.shape}, but declared {wanted}")
        if np.count_nonzero(np.isfinite(raw)) < raw.size:
            raise NashcastError("its encoder gave a number that is not finite")
        return self._kept(history, raw, rows)

    def _advanced(self, history: History, rows: Rows, x: np.ndarray) -> Context:
        """What the encoder sees of the present step, with its state after it."""
        built, own = self.built, x if self.columns is None else x[self.columns]
        if not built.accepts_missing and not np.isfinite(own).all():
            raise NashcastError("its encoder does not accept missing inputs")
        wants, noise = (built.past_inputs, built.past_targets), Noise(self._key, history.step)
        context = history.context(rows.take(self.columns), x, self.columns, wants, noise)
        if built.objects:
            context = context._replace(objects={name: history.objects.get(name) for name in built.objects})
        if self._state is not None:
            context = context._replace(state=self._state)
        self._next = self.built.advance(context)
        return context if self._next is None else context._replace(state=self._next)

    def forget_present(self, history: History) -> None:
        """The agent sits the present row out."""
        self._present[history.step % KEPT] = False

    def encode_rows(self, rows: Rows) -> tuple[np.ndarray, Any]:
        raw, present = self._remembered(rows)
        return self._features(raw, rows) * present[:, None, None], self._state

    def revise(self, rows: Rows) -> None:
        raw, present = self._remembered(rows)
        if present.any():
            self._scales = Scales.of(raw[present].reshape(present.sum(), -1))

    def _remembered(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        places = (rows.span.first_step + np.arange(rows.count)) % KEPT
        return self._raw[places], self._present[places]

    def _kept(self, history: History, raw: np.ndarray, rows: Rows) -> np.ndarray:
        place = history.step % KEPT
        # Larger numbers carry no information, and their squares would overflow.
        self._raw[place], self._present[place] = np.minimum(np.maximum(raw, -1e100), 1e100), True
        return self._features(self._raw[place : place + 1], rows)[0]

    def _features(self, raw: np.ndarray, rows: Rows) -> np.ndarray:
        """Standardised, with one, the last value and the last change of each target, (rows, y_dim, size)."""
        features = np.empty((rows.count, rows.y_dim, self.size))
        features[:, :, : self.private] = self._standardised(raw)
        companions = features[:, :, self.private :]
        companions[:, :, 0], companions[:, :, 1], companions[:, :, 2] = 1.0, rows.value(0), rows.change(0)
        return features

    def _standardised(self, raw: np.ndarray) -> np.ndarray:
        shape = raw.shape[1:]
        scores = (raw - self._scales.mean.reshape(shape)) * self._scales.inverse_spread.reshape(shape)
        return clipped(scores)

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
        # The quantiles that the black box gave at the present step, if any.
        self.quantiles: Quantiles | None = None
        self.gives_quantiles = len(built.levels) > 1

    def forecast_set(self, history: History, context: Context) -> ForecastSet:
        """The forecasts of the black box at this step. Raises what it raises."""
        return self._forecaster.forecast_set(context, self._horizon)

    def encode(self, history: History, rows: Rows, x: np.ndarray) -> np.ndarray:
        now = history.targets[history.now]
        self.quantiles = None
        found = self.forecast_set(history, self._advanced(history, rows, x))
        forecasts = np.asarray(found.forecasts, dtype=float)
        if forecasts.shape != self.said.shape:
            raise NashcastError(f"it gave forecasts of shape {forecasts.shape}, but declared {self.said.shape}")
        if np.count_nonzero(np.isfinite(forecasts)) < forecasts.size:
            if not np.isfinite(forecasts[:, 0]).all():
                raise NashcastError("its forecast is not finite")
            forecasts = _filled(forecasts)
        self.said = np.minimum(np.maximum(forecasts, -1e150), 1e150)
        self.quantiles = (
            None if found.quantiles is None else _checked(found.quantiles, self._forecaster.levels, forecasts.shape[1:])
        )
        raw = (self.said.take(self._ends, axis=1) - now).transpose(2, 0, 1).reshape(len(now), -1)
        self._size = history.scales.inverse_change
        return self._kept(history, raw, rows)

    def revise(self, rows: Rows) -> None:
        """Does nothing: forecast changes are measured in usual changes of the target, which the rows contain."""

    def _standardised(self, raw: np.ndarray) -> np.ndarray:
        return clipped(raw * self._size[:, None])

    def encode_rows(self, rows: Rows) -> tuple[np.ndarray, Any]:
        self._size = rows.size
        return super().encode_rows(rows)


def _checked(quantiles: Quantiles, levels: tuple[float, ...], shape: tuple[int, int]) -> Quantiles:
    """Quantiles of all horizons, in order; missing ones are copied from the horizon before."""
    values, wanted = np.array(quantiles.values, dtype=float), (*shape, len(levels))
    if tuple(quantiles.levels) != tuple(levels):
        raise NashcastError(f"it gave quantiles at the levels {quantiles.levels}, but declared {levels}")
    if values.shape != wanted:
        raise NashcastError(f"it gave quantiles of shape {values.shape}, but declared {wanted}")
    if not np.isfinite(values[0]).all():
        raise NashcastError("its quantiles are not finite")
    values = _filled(values[None])[0]
    return Quantiles(levels, np.sort(np.clip(values, -1e150, 1e150), axis=-1))


def _filled(forecasts: np.ndarray) -> np.ndarray:
    """Forecasts of all horizons; missing ones are copied from the horizon before."""
    forecasts = forecasts.copy()
    for h in range(1, forecasts.shape[1]):
        forecasts[:, h] = np.where(np.isfinite(forecasts[:, h]), forecasts[:, h], forecasts[:, h - 1])
    return forecasts
