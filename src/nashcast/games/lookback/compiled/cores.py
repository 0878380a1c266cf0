"""Compiling one function twice: for one core, without any start-up cost, and for many."""

from __future__ import annotations

from types import FunctionType

from numba import njit


def for_one_and_many_cores(function):
    """The function compiled with its `prange` loops as plain loops, and with them spread over threads."""
    # Compiled code is cached by name: the two compilations need different names.
    twin = FunctionType(function.__code__, function.__globals__, f"{function.__name__}_on_many_cores")
    twin.__qualname__ = twin.__name__
    return njit(cache=True, nogil=True)(function), njit(cache=True, nogil=True, parallel=True)(twin)
