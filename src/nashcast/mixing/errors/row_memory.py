"""Rows of a regression on experts, with outliers bounded, in units that follow the usual error size.

The rows of a regression are the experts' deviations and the error of their mean. A row with an outlier (see
`error_scale`) counts as a row of the usual size. Sums are in units of B², the largest squared error of any row,
which never exceeds `CLIP`² s². Where the usual size s falls, B falls with it: that shrinks all rows before by the same
factor and leaves the solution as it is, so that later rows count again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.mixing.errors.error_scale import CLIP, Errors
from nashcast.mixing.errors.linearised import LEAST
from nashcast.mixing.mixture_weights import deviations


class Row(NamedTuple):
    """One row in units of B, and the factor that puts the sums before it in these units."""

    apart: np.ndarray  # deviations from the experts' mean, (experts, y_dim)
    missed: np.ndarray  # target minus budget · mean, (y_dim,)
    before: float


def take_row(unit: np.ndarray, errors: Errors, awake: np.ndarray, target: np.ndarray, budget: float) -> Row | None:
    """The row of a step, None if there is none; updates `unit`, B², (1,), in place."""
    e = errors.values
    usual = errors.usual.sum()
    if errors.outlying.any():
        if budget != 1.0 and errors.shrunk.any():
            return None  # an outlying target, and the row depends on it
        e = e * min(1.0, float(np.sqrt(usual / max((e * e).max(axis=1).sum(), 1e-300))))
    missed = -budget * e[:, awake].mean(axis=1)
    if budget != 1.0:
        missed = missed + (1.0 - budget) * target
    largest = max(float(unit[0]), float((e * e).max(axis=1).sum()))
    if largest < LEAST:
        return None
    before, root = float(unit[0]) / largest, np.sqrt(largest)
    unit[0] = min(largest, (1.0 if errors.revised.any() else CLIP**2) * usual)
    return Row(deviations(e, awake) / root, missed / root, before)
