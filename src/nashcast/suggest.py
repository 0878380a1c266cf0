"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def near(name: str, names: Iterable[str]) -> str:
    """A sentence to begin a remedy with, or nothing if no name is near.

    >>> near("HUFl", ["HUFL", "OT"])
    "Did you mean 'HUFL'? "
    """
    by_lower = {each.lower(): each for each in names}
    found = [by_lower[match] for match in get_close_matches(str(name).lower(), by_lower, n=3)]
    return f"Did you mean {' or '.join(repr(each) for each in found)}? " if found else ""
