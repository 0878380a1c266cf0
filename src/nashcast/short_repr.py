"""A short repr of settings: only the fields that differ from their defaults."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any


def short_repr(self: Any) -> str:
    """The repr of a dataclass with the fields that differ from their defaults; functions by name.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Walk:
    ...     steps: int
    ...     pace: float = 1.0
    ...     __repr__ = short_repr
    >>> Walk(3), Walk(3, pace=2.0)
    (Walk(3), Walk(3, pace=2.0))
    """
    shown = []
    for field in fields(self):
        value = getattr(self, field.name)
        required = field.default is MISSING and field.default_factory is MISSING
        if field.repr and (required or (value is not field.default and value != field.default)):
            text = getattr(value, "__name__", None) or repr(value)
            shown.append(text if required else f"{field.name}={text}")
    return f"{type(self).__name__}({', '.join(shown)})"
