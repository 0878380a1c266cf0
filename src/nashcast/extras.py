"""Packages that are not installed with nashcast itself."""

from __future__ import annotations

import importlib
from typing import Any

from nashcast.errors import InvalidInput


def needed(module: str, package: str, extra: str, argument: str = "stream") -> Any:
    """The module; raises InvalidInput with the install command if its package is missing. argument: what needs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        remedy = f"Install it: pip install 'nashcast[{extra}]'."
        raise InvalidInput(argument, f"no package {package}", remedy) from None
