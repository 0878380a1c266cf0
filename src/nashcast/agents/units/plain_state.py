"""An encoder's state as named arrays and back: None, a number, an array, or a tuple of those. Nothing is pickled."""

from __future__ import annotations

import numpy as np

from nashcast import validation as check
from nashcast.encoders.base import State
from nashcast.errors import InvalidInput


def to_arrays(name: str, state: State) -> dict[str, np.ndarray]:
    if state is None:
        return {f"{name}.none": np.empty(0)}
    if isinstance(state, tuple):
        found = {f"{name}.tuple": np.array(len(state))}
        for i, part in enumerate(state):
            found |= to_arrays(f"{name}.{i}", part)
        return found
    if isinstance(state, bool | int | float | np.number):
        return {f"{name}.number": np.array(state)}
    if isinstance(state, np.ndarray) and state.dtype != object:
        return {f"{name}.array": state}
    raise InvalidInput(f"{name} state", check.describe(state), "Keep None, numbers, arrays or tuples of those.")


def from_arrays(name: str, saved: dict[str, np.ndarray]) -> State:
    if f"{name}.none" in saved:
        return None
    if f"{name}.tuple" in saved:
        return tuple(from_arrays(f"{name}.{i}", saved) for i in range(int(saved[f"{name}.tuple"])))
    if f"{name}.number" in saved:
        return saved[f"{name}.number"].item()
    if f"{name}.array" in saved:
        return saved[f"{name}.array"].copy()
    raise InvalidInput("saved state", f"no {name}", "The file does not belong to this federation.")


def restored_state(start: State, saved: dict[str, np.ndarray]) -> State:
    """A saved state of an encoder whose first state is `start`, checked for kind, finite numbers and size."""
    state = from_arrays("state", {f"state{name}": value for name, value in saved.items()})
    if not _alike(start, state):
        remedy = "Load it into a federation made with the same agents."
        raise InvalidInput("saved state", "a state of another encoder", remedy)
    return state


def _alike(start: State, state: State) -> bool:
    if isinstance(start, tuple):
        return isinstance(state, tuple) and len(start) == len(state) and all(map(_alike, start, state))
    if isinstance(start, np.ndarray):
        # The first axis may have another length: memories grow.
        same = isinstance(state, np.ndarray) and state.ndim == start.ndim and state.shape[1:] == start.shape[1:]
        return same and state.size <= 1 << 20 and (state.dtype.kind != "f" or bool(np.isfinite(state).all()))
    if start is None:
        return True  # an encoder that begins without a state may have any plain one
    return type(state) is type(start) or isinstance(state, int | float)
