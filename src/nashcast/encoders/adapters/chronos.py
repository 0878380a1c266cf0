"""Chronos, Chronos-Bolt and Chronos-2 as encoders: pre-trained forecasters that give quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.encoders.adapters.pretrained import quiet_transformers
from nashcast.encoders.base import BuiltForecaster, Context, ForecastSet
from nashcast.encoders.black_box.answers import checked_levels, quantile_forecasts
from nashcast.encoders.black_box.black_box_call import BlackBoxCall
from nashcast.encoders.black_box.forecaster import MOST_CONTEXT
from nashcast.errors import InvalidInput
from nashcast.extras import needed


@dataclass(frozen=True)
class Chronos:
    """A pre-trained model of the chronos-forecasting package, run on the processor.

    model: a folder, or a name on the Hugging Face Hub, for example "amazon/chronos-bolt-small".
    context: how many of the last targets it sees.   quantiles: levels asked for; the median is the forecast.
    seed: for models that sample; the same past gives the same forecast.   timeout: seconds for a forecast.
    Several targets are forecast one by one; inputs are not used.
    """

    model: str | PathLike[str]
    context: int = 512
    quantiles: Sequence[float] = (0.1, 0.5, 0.9)
    seed: int = 0
    timeout: float | None = None

    def __post_init__(self):
        needed("chronos", "chronos-forecasting", "chronos", "encoder")
        if not isinstance(self.model, str | PathLike) or not fspath(self.model):
            raise InvalidInput("model", check.describe(self.model), "Pass a folder or a name on the Hub.")
        check.integer("context", self.context, min=1, max=MOST_CONTEXT)
        levels = checked_levels("quantiles", self.quantiles)
        if not levels:
            raise InvalidInput("quantiles", "()", "Pass at least the median, (0.5,).")
        object.__setattr__(self, "quantiles", levels)
        seeds.key(self.seed)
        if self.timeout is not None:
            check.number("timeout", self.timeout, above=0.0)

    def build(self, x_dim: int, y_dim: int) -> BuiltForecaster:
        return _Built(self, _pipeline(fspath(self.model)), y_dim)


class _Built(BuiltForecaster):
    def __init__(self, description: Chronos, pipeline: Any, y_dim: int):
        self._pipeline, self.levels, self._y_dim = pipeline, tuple(description.quantiles), y_dim
        self._seed = seeds.key(description.seed, "chronos") % (1 << 63)
        self._call = BlackBoxCall(description.timeout)
        self.past_targets = description.context
        self.forecasts = 3 if len(self.levels) > 1 else 1

    def forecast(self, context: Context, horizon: int) -> np.ndarray:
        return self.forecast_set(context, horizon).forecasts

    def forecast_set(self, context: Context, horizon: int) -> ForecastSet:
        values = self._call(self._quantiles, context.targets.T.copy(), horizon)
        return quantile_forecasts(self.levels, values)

    def _quantiles(self, past: np.ndarray, horizon: int) -> np.ndarray:
        """(horizon, y_dim, levels)"""
        torch = needed("torch", "torch", "chronos", "encoder")
        # Standardised here: models use single precision, in which a small change far from 0 is lost to rounding.
        mean, spread = past.mean(axis=1, keepdims=True), past.std(axis=1, keepdims=True)
        spread = np.where(spread > 0.0, spread, 1.0)
        series = torch.tensor((past - mean) / spread, dtype=torch.float32)
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            found, _ = self._pipeline.predict_quantiles(
                list(series), prediction_length=horizon, quantile_levels=list(self.levels)
            )
        rows = [np.asarray(one, dtype=float).reshape(-1, horizon, len(self.levels))[0] for one in found]
        return np.stack([row * spread[k, 0] + mean[k, 0] for k, row in enumerate(rows)], axis=1)


@lru_cache(maxsize=4)
def _pipeline(model: str) -> Any:
    chronos = needed("chronos", "chronos-forecasting", "chronos", "encoder")
    torch = needed("torch", "torch", "chronos", "encoder")
    try:
        with quiet_transformers():
            return chronos.BaseChronosPipeline.from_pretrained(model, device_map="cpu", dtype=torch.float32)
    except Exception as error:  # the packages raise many types for an invalid folder
        where = "folder" if Path(model).exists() else "name"
        reason = (str(error).strip().splitlines() or [""])[0][:200]
        remedy = f"Pass the {where} of a Chronos model: {type(error).__name__}: {reason}"
        raise InvalidInput("model", repr(model), remedy) from error
