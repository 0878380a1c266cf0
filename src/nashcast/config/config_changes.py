"""Settings files as text: read, and changed by dotted name."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nashcast.config.run_schema import Place
from nashcast.errors import InvalidInput


def read_toml(path: str | Path) -> dict[str, Any]:
    """The document in a TOML file."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(
            "file", f"{path} ({error.strerror})", "Pass a TOML file that describes a federation."
        ) from None
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(
            str(path), f"bytes that are no UTF-8, from byte {error.start}", "Save it as UTF-8."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(str(path), "text that is not TOML", f"{error}.") from None


def changed(document: Mapping[str, Any], changes: Mapping[str, Any], source: str = "settings") -> dict[str, Any]:
    """A copy with values replaced by dotted name."""
    result = copy.deepcopy(dict(document))
    for path, value in changes.items():
        assign(result, path, value, source)
    return result


def assign(document: dict[str, Any], path: str, value: Any, source: str = "settings") -> None:
    """Set `agents.features` (in every table of agents), `agents[0].features` (in one), `paper.lookback`, `seed`, …"""
    place = Place(source, path)
    parts = re.findall(r"([^.\[\]]+)(?:\[(\d+)\])?(?:\.|$)", path)
    if ".".join(name + (f"[{index}]" if index else "") for name, index in parts) != path or not path:
        remedy = "Write it as agents.features, agents[0].features or paper.lookback."
        raise place.refused("a name that cannot be read", remedy)
    targets: list[Any] = [document]
    for depth, (name, index) in enumerate(parts):
        last = depth == len(parts) - 1
        below = []
        for target in targets:
            if not isinstance(target, dict):
                raise place.refused(
                    f"a key below {parts[depth - 1][0]}, which is not a table", "Name a key of a table."
                )
            if last and not index:
                target[name] = copy.deepcopy(value)
                continue
            if name == "game" and target.get(name) is False:
                target[name] = {}
            found = target.setdefault(name, {})
            if index:
                if not isinstance(found, list) or int(index) >= len(found) or last:
                    count = len(found) if isinstance(found, list) else 0
                    raise place.refused(f"{name}[{index}]", f"Name a key of one of the {count} tables [[{name}]].")
                found = found[int(index)]
            below += found if isinstance(found, list) else [found]
        targets = below
