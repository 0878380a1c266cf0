"""Inputs and targets as a user passes them (an array, a number or a dict) and as the mathematics takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput

Input = np.ndarray | Sequence[float] | Mapping[str, float] | float
Target = np.ndarray | Sequence[float] | Mapping[str, float] | float


class Columns:
    """What the numbers of inputs and targets are called, once the first have been seen. x_dim None: as the first."""

    def __init__(self, x_dim: int | None, y_dim: int):
        self._x_dim = 0 if x_dim is None else check.integer("x_dim", x_dim, min=0)
        self._x_known = x_dim is not None
        self._y_dim = check.integer("y_dim", y_dim, min=1)
        self._x_names: list[str] | None = None
        self._y_names: list[str] | None = None
        self._x_seen = False

    @property
    def y_dim(self) -> int:
        """How many numbers a target has."""
        return self._y_dim

    def _input(self, x) -> np.ndarray:
        if isinstance(x, Mapping):
            if self._x_names is None and not self._x_seen:
                self._x_names = sorted(x)
            if self._x_names is None or not set(x) <= set(self._x_names):
                wanted = "an array as before" if self._x_names is None else f"the keys {', '.join(self._x_names)}"
                raise InvalidInput("x", f"keys {', '.join(sorted(map(str, x)))}", f"Pass {wanted}.")
            x = [np.nan if x.get(name) is None else x[name] for name in self._x_names]
        values = np.atleast_1d(check.numbers("x", x, "(x_dim,)"))
        if not self._x_known:
            self._x_dim = self._x_dim or values.size
        self._x_seen = True
        return check.shaped("x", values, (self._x_dim,), "(x_dim,)")

    def _target(self, name, y, missing=False) -> np.ndarray | None:
        if isinstance(y, Mapping):
            self._y_names = sorted(y) if self._y_names is None else self._y_names
            if sorted(y) != self._y_names:
                raise InvalidInput(name, f"keys {', '.join(sorted(y))}", f"Pass the keys {', '.join(self._y_names)}.")
            y = [y[key] for key in self._y_names]
        values = check.shaped(name, np.atleast_1d(check.numbers(name, y, "(y_dim,)")), (self._y_dim,), "(y_dim,)")
        if missing and np.isnan(values).any():
            return None
        check.finite(name, values)
        return values.copy()

    def _shown(self, forecast: np.ndarray) -> np.ndarray | float | dict[str, float]:
        if self._y_names is not None:
            return dict(zip(self._y_names, map(float, forecast), strict=True))
        return float(forecast[0]) if self._y_dim == 1 else forecast.copy()
