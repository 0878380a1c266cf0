"""What commands print for other programs: strict JSON."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any


def print_json(value: Any) -> None:
    """One line of JSON, with null where a number is not finite: other programs' parsers refuse NaN and Infinity."""
    print(json.dumps(finite(value), allow_nan=False))


def finite(value: Any) -> Any:
    """The same with None where a number is not finite."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value
