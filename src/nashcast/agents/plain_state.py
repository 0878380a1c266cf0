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
