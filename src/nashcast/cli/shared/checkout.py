"""Modules of a source checkout that are not installed with nashcast: benchmarks and demonstrations."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from nashcast.errors import NashcastError

ROOT = Path(__file__).parents[4]


def from_checkout(folder: str, name: str) -> ModuleType:
    """Module `name` from a top-level folder of the checkout, such as `benchmarks`."""
    path = ROOT / folder
    if not path.joinpath(*name.split(".")).with_suffix(".py").is_file():
        raise NashcastError(f"this command needs a source checkout with the folder {folder}/; {path} has no {name}.")
    if str(path) not in sys.path:
        sys.path.insert(0, str(path))
    return import_module(name)
