"""The season: what the target was one season before the next step, as a change from now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nashcast import validation as check
from nashcast.encoders.base import BuiltEncoder, Noise
from nashcast.errors import InvalidInput

_DISCOUNT = 0.98
# Errors this close, as a part of the largest, differ by rounding only; a multiple of the period is no better then.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Seasonal:
    r"""$y_{t+1-m} - y_t$ for each target, with m the period; 0 until that much has been seen.

    period: m, if known. If not, the m whose seasonal-naive forecasts were best lately, once 2m values are seen.
    largest: the largest m that is tried; not used if the period is known.
    columns: which entries of x are the targets' present values; the first y_dim by default.
    """

    period: int | None = None
    largest: int = 64
    columns: Sequence[int] | None = None

    def __post_init__(self):
        if self.period is not None:
            check.integer("period", self.period, min=2)
        check.integer("largest", self.largest, min=2)
        if self.columns is not None:
            if isinstance(self.columns, str) or not isinstance(self.columns, Sequence) or not self.columns:
                raise InvalidInput("columns", check.describe(self.columns), "Pass one place in x for each target.")
            object.__setattr__(self, "columns", tuple(check.integer("columns", c, min=0) for c in self.columns))

    def build(self, x_dim: int, y_dim: int) -> BuiltEncoder:
        columns = tuple(range(y_dim)) if self.columns is None else self.columns
        if len(columns) != y_dim:
            raise InvalidInput(
                "columns", f"{len(columns)} places", f"Pass one for each of the y_dim = {y_dim} targets."
            )
        if max(columns) >= x_dim:
            remedy = f"Inputs have x_dim = {x_dim} entries, the first is 0: say where in x the targets are."
            raise InvalidInput("columns", f"place {max(columns)}", remedy)
        if self.period is not None:
            return _Known(self.period, np.array(columns))
        return _Found(self.largest, np.array(columns))


class _Known(BuiltEncoder):
    """State: the last m values (m, y_dim), newest last, and how many were ever seen."""

    features = 1

    def __init__(self, period: int, columns: np.ndarray):
        self._period, self._columns = period, columns

    def start(self) -> tuple[np.ndarray, int]:
        return np.zeros((self._period, len(self._columns))), 0

    def encode(self, x: np.ndarray, state: tuple, noise: Noise) -> tuple[np.ndarray, tuple]:
        past, seen = state
        past, seen = np.vstack([past[1:], x[self._columns]]), seen + 1
        return _change(past, self._period if seen >= self._period else None), (past, seen)


class _Found(BuiltEncoder):
    """State: the last values (largest + 1, y_dim), how many were ever seen, and the discounted error of each m."""

    features = 1

    def __init__(self, largest: int, columns: np.ndarray):
        self._columns = columns
        self._periods = np.arange(2, largest + 1)

    def start(self) -> tuple[np.ndarray, int, np.ndarray]:
        return np.zeros((self._periods[-1] + 1, len(self._columns))), 0, np.zeros(len(self._periods))

    def encode(self, x: np.ndarray, state: tuple, noise: Noise) -> tuple[np.ndarray, tuple]:
        past, seen, errors = state
        y = x[self._columns]
        past, seen = np.vstack([past[1:], y]), seen + 1
        newest = np.abs(y - past[-1 - self._periods]).sum(axis=1)
        errors = _DISCOUNT * errors + np.where(seen > self._periods, newest, 0.0)
        return _change(past, self._best(seen, errors)), (past, seen, errors)

    def _best(self, seen: int, errors: np.ndarray) -> int | None:
        tried = self._periods[2 * self._periods <= seen]
        if not len(tried):
            return None
        # Each m has had seen - m errors, so the weights of its mean sum to (1 - λ^(seen - m)) / (1 - λ).
        means = errors[: len(tried)] * (1.0 - _DISCOUNT) / (1.0 - _DISCOUNT ** (seen - tried))
        return int(tried[means <= means.min() + _ROUNDING * means.max()][0])


def _change(past: np.ndarray, period: int | None) -> np.ndarray:
    if period is None:
        return np.zeros((past.shape[1], 1))
    return (past[-period] - past[-1])[:, None]
