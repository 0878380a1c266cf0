"""`root_form`, compiled as it stands."""

from __future__ import annotations

from types import FunctionType

from numba import njit

from nashcast.games.lookback import root_form


def _compiled() -> dict:
    """Its functions, each compiled with the others' compiled forms in its globals."""
    space = dict(vars(root_form))
    for name, function in vars(root_form).items():
        if isinstance(function, FunctionType) and function.__module__ == root_form.__name__:
            space[name] = njit(cache=True, nogil=True, error_model="numpy")(
                FunctionType(function.__code__, space, name)
            )
    return space


_space = _compiled()
solve_twice = _space["solve_twice"]
