"""Models that are fitted again on a schedule, as pure functions of the past.

Such a model is determined by the targets it was fitted to, so these are its state: plain numbers, saved with the
federation. The fitted model itself is a cache, and is fitted again if it is missing. Two runs, or a run and its
continuation from a file, fit the same models to the same targets.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from nashcast.encoders.base import Context
from nashcast.errors import NashcastError

_CACHED = 4

# The targets of the last fit, (rows, y_dim), and how many steps ago that was.
Fitted = tuple[np.ndarray, int]


class Refits:
    """every: steps from one fit to the next. Early on, a model is also fitted when its targets have doubled.

    fit: makes a model of targets (rows, y_dim) for a horizon. If it raises, so does every use until the next fit.
    """

    def __init__(self, every: int, y_dim: int, fit: Callable[[np.ndarray, int], Any]):
        self._every, self._y_dim, self._fit = every, y_dim, fit
        self._models: OrderedDict[bytes, Any] = OrderedDict()

    def start(self) -> Fitted:
        return np.zeros((0, self._y_dim)), 0

    def advance(self, context: Context) -> Fitted:
        targets, age = context.state
        past = context.targets
        if age + 1 >= self._every or len(past) >= 2 * len(targets):
            return past.copy(), 0
        return targets, age + 1

    def model(self, targets: np.ndarray, horizon: int = 0) -> Any:
        """horizon: for models that depend on it."""
        key = targets.tobytes() + bytes(f"{horizon}", "ascii")
        if key in self._models:
            self._models.move_to_end(key)
        else:
            try:
                self._models[key] = self._fit(targets.copy(), horizon)
            except Exception as error:
                self._models[key] = NashcastError(f"it could not be fitted: {type(error).__name__}: {error}"[:400])
            while len(self._models) > _CACHED:
                self._models.popitem(last=False)
        found = self._models[key]
        if isinstance(found, NashcastError):
            raise found
        return found
