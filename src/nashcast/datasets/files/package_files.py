"""Files that come with other packages: read in place, without importing the package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from nashcast.errors import InvalidInput


def packaged(package: str, file: str, extra: str) -> Path:
    """The path of the file in the package.   extra: the extra of nashcast that installs the package."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise InvalidInput("stream", f"no package {package}", f"Install it: pip install 'nashcast[{extra}]'.")
    path = Path(next(iter(found.submodule_search_locations))) / file
    if not path.is_file():
        raise InvalidInput("stream", f"{package} without {path.name}", "Install another version of it.")
    return path
