"""Output of commands: strict JSON for other programs, and errors as text or as JSON."""

from __future__ import annotations

import json
import sys
from math import isfinite
from typing import Any

from nashcast.cli.shared.colours import RED, paint


def print_json(value: Any) -> None:
    """Print one line of JSON, with null for non-finite numbers: strict parsers refuse NaN and Infinity."""
    print(json.dumps(finite(value), allow_nan=False))


def print_error(message: str, *, kind: str, code: int, as_json: bool, prog: str = "nashcast") -> None:
    """Print an error on standard error. As JSON: one line with its message, its type and the exit code.

    kind: name of the exception.   code: the exit code.   prog: the command's words.
    """
    if as_json:
        print(json.dumps({"error": message, "type": kind, "exit_code": code}), file=sys.stderr, flush=True)
    else:
        print(f"{paint(f'{prog}:', RED, sys.stderr)} {message}", file=sys.stderr, flush=True)


def finite(value: Any) -> Any:
    """The same value with None for non-finite numbers."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not isfinite(value) else value
