"""The extra `fast`: numba, which compiles games of many agents and sweeps of the paper's runs."""

from __future__ import annotations

from importlib.util import find_spec

from nashcast.errors import InvalidInput


def has_numba() -> bool:
    """Whether numba is installed; it is not imported here."""
    return find_spec("numba") is not None


def need_numba(argument: str) -> None:
    """Raise InvalidInput if numba is missing."""
    if not has_numba():
        raise InvalidInput(argument, "no package numba", "Install it: pip install 'nashcast[fast]'.")
