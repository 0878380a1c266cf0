"""Forecast the next row of a table from this one and the rows before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashcast import validation as check
from nashcast.datasets.base import Stream
from nashcast.errors import InvalidInput

WARMUP = 100


def lag_matrix(columns: np.ndarray, lags: Sequence[int]) -> np.ndarray:
    """All columns of a row, then those of the row before, and so on; zeros for rows before the first.

    columns: (rows, k).   lags: how many rows each column enters with; 1 is the row itself.
    """
    rows = len(columns)
    blocks = []
    for lag in range(max(lags)):
        chosen = columns[:, [j for j, count in enumerate(lags) if count > lag]]
        blocks.append(np.vstack([np.zeros((min(lag, rows), chosen.shape[1])), chosen[: max(rows - lag, 0)]]))
    return np.hstack(blocks)


def standard(first_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each column; a constant column is scaled by its size instead."""
    still = first_rows.min(axis=0) == first_rows.max(axis=0)
    size = np.abs(first_rows[0])
    spread = np.where(still, np.where(size > 0, size, 1.0), first_rows.std(axis=0))
    return np.where(still, first_rows[0], first_rows.mean(axis=0)), spread


def next_row(
    name: str,
    inputs: np.ndarray,
    targets: np.ndarray,
    lags: Sequence[int],
    *,
    warmup: int | None,
    steps: int | None = None,
    dates: Sequence[str] = (),
) -> Stream:
    """The targets of each row from the inputs of the rows before it, in the order of `lag_matrix`.

    warmup: rows whose mean and standard deviation scale all columns, and which are not targets; None: no scaling.
    """
    rows = len(targets)
    first = max(max(lags), warmup or 1) - 1  # the last row known before the first target
    possible = rows - 1 - first
    if possible < (steps or 1):
        taken = (
            f"{max(lags)} with lags" if warmup is None else f"{max(lags)} with lags, {warmup} to take the scale from"
        )
        remedy = "Pass fewer lags, a smaller warmup or scale 'none'" + ("." if steps is None else ", or fewer steps.")
        wanted = f"{steps or 1} to forecast, and before them {taken}"
        raise InvalidInput(name, f"{rows} row{'' if rows == 1 else 's'}", f"Wanted are {wanted}. {remedy}")
    last = rows - 1 if steps is None else first + steps
    offset, unit = 0.0, 1.0
    if warmup is not None:
        mean, spread = standard(inputs[:warmup])
        inputs = (inputs - mean) / spread
        offset, unit = standard(targets[:warmup])
        targets = (targets - offset) / unit
    x = lag_matrix(inputs, lags)
    return Stream(
        name,
        x[first:last],
        targets[first + 1 : last + 1],
        targets[first],
        offset,
        unit,
        tuple(dates[first + 1 : last + 1]),
    )


def cut(steps: int, first: int, rows: int) -> slice:
    """The rows of a slice: the first, which starts the targets, and `steps` to forecast."""
    check.integer("steps", steps, min=1)
    check.integer("first", first, min=0)
    if first + steps + 1 > rows:
        got = f"{steps} from row {first}"
        raise InvalidInput(
            "steps", got, f"The file has {rows:,} rows, and {first + steps + 1:,} are needed: pass less."
        )
    return slice(first, first + steps + 1)
