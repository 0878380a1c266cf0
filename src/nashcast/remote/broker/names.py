"""Names that become parts of subjects, accounts and file names: special characters are refused."""

from __future__ import annotations

import re

from nashcast.errors import InvalidInput

HUB = "hub"


def federation_name(name: str) -> str:
    """The name, if it is 1 to 64 letters, digits and '-'."""
    return _checked("federation", name, "[A-Za-z0-9][A-Za-z0-9-]{0,63}", "1 to 64 letters, digits and '-'")


def agent_name(name: str) -> str:
    """The name, if it is 1 to 64 letters, digits, '-' and '_', and not the hub's.

    >>> agent_name("desk-3")
    'desk-3'
    """
    checked = _checked("agent", name, "[A-Za-z0-9_][A-Za-z0-9_-]{0,63}", "1 to 64 letters, digits, '-' and '_'")
    if checked.casefold() == HUB:
        raise InvalidInput("agent", repr(name), "That is the hub's name: choose another.")
    return checked


def _checked(argument: str, name: str, pattern: str, allowed: str) -> str:
    if not isinstance(name, str) or not re.fullmatch(pattern, name):
        raise InvalidInput(argument, f"{name!r:.80}", f"Pass a name of {allowed}, not beginning with '-'.")
    return name
