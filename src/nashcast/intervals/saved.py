"""Checks of a saved state of intervals: names, types, shapes and ranges."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.intervals.residuals import FADES, State, score_count
from nashcast.intervals.tracking import MAX_RESIDUAL, MAX_SCORE

# Lowest and highest value of each field. Whole numbers up to 2^53 are exact in floating point. Fading sums of residuals
# and of losses stay below 1e4 times the largest residual.
RANGES = {
    "scales": (0.0, MAX_RESIDUAL),
    "weights": (0.0, 2.0**53),
    "scores": (0.0, MAX_SCORE),
    "debts": (-(2.0**53), 2.0**53),
    "losses": (0.0, 1e4 * MAX_RESIDUAL),
    "size": (0.0, 1e4 * MAX_RESIDUAL),
    "largest": (0.0, MAX_RESIDUAL),
    "seen": (0, 2**53),
}
REMEDY = "Restore what intervals of the same y_dim, coverages and memory saved."


def checked_state(saved: Mapping[str, np.ndarray], *, like: State) -> State:
    """A copy of the saved arrays as a state of the shapes of `like`."""
    if not isinstance(saved, Mapping):
        raise InvalidInput("saved", check.describe(saved), "Pass a mapping of names to arrays, as save() returns it.")
    wanted = like.arrays()
    unknown = [str(name) for name in saved if name not in wanted]
    if unknown:
        raise InvalidInput(f"saved {unknown[0]}", "an unknown field", REMEDY)
    state = State(**{name: _checked(name, saved, now) for name, now in wanted.items()})
    _check_weights(state)
    _check_empty_scores(state)
    return state


def _checked(name: str, saved: Mapping[str, np.ndarray], like: np.ndarray) -> np.ndarray:
    field = f"saved {name}"
    if name not in saved:
        raise InvalidInput(field, "nothing", REMEDY)
    values = saved[name]
    if not isinstance(values, np.ndarray) or values.dtype != like.dtype:
        raise InvalidInput(field, check.describe(values), f"Pass an array of type {like.dtype}.")
    if values.shape != like.shape:
        raise InvalidInput(field, f"shape {check.shape_text(values.shape)}", REMEDY)
    low, high = RANGES[name]
    bad = ~(np.isfinite(values) & (values >= low) & (values <= high))
    if bad.any():
        raise InvalidInput(field, f"{values[bad][0]}", f"Pass finite numbers from {low:g} to {high:g}. {REMEDY}")
    return np.array(values, dtype=like.dtype, order="C")


def _check_weights(state: State) -> None:
    """After n residuals a scale's weights sum to 1 + fade + … + fade^(n-1)."""
    n = state.seen[:, None].astype(np.float64)
    fading = FADES < 1.0
    sums = np.where(fading, (1.0 - FADES**n) / np.where(fading, 1.0 - FADES, 1.0), n)
    bad = ~np.isclose(state.weights, sums, rtol=1e-9, atol=0.0)
    if bad.any():
        got = f"{state.weights[bad][0]:g} where `seen` implies {sums[bad][0]:g}"
        raise InvalidInput("saved weights", got, REMEDY)


def _check_empty_scores(state: State) -> None:
    memory = state.scores.shape[2]
    empty = np.arange(memory) >= score_count(state.seen, memory)[:, None]
    bad = empty[:, None, :] & (state.scores != 0.0)
    if bad.any():
        got = f"{state.scores[bad][0]:g} in a place that is empty after `seen` residuals"
        raise InvalidInput("saved scores", got, REMEDY)
