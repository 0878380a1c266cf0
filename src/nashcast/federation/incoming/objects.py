"""Texts and pictures in inputs: taken out of a row before its numbers are read, for the agents that ask for them.

An encoder of a text or a picture names its column, or "" for inputs that are one text or picture and nothing else. All
other columns are numbers; a text in a column that no agent asked for is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.agents.agent import Agent
from nashcast.errors import InvalidInput
from nashcast.frames.table import read_table

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def object_columns(agents: Sequence[Agent]) -> tuple[str, ...]:
    """The columns of texts and pictures that the agents' encoders ask for."""
    found = {name for agent in agents for one in agent.encoders for name in getattr(one, "objects", ())}
    if "" in found and len(found) > 1:
        names = ", ".join(repr(name) for name in sorted(found) if name)
        remedy = "Name a column for every encoder of texts or pictures, or for none."
        raise InvalidInput("agents", f"encoders of the whole input beside encoders of {names}", remedy)
    return tuple(sorted(found))


def split_objects(x: Any, columns: tuple[str, ...]) -> tuple[Any, Mapping[str, Any]]:
    """The numbers of an input, and its texts and pictures by column; None where one is missing.

    >>> split_objects({"headline": "rates up", "rate": 2.5}, ("headline",))
    ({'rate': 2.5}, {'headline': 'rates up'})
    """
    if not columns:
        return x, _NOTHING
    if columns == ("",):
        return None, {"": x}
    if hasattr(x, "to_dict") and not hasattr(x, "columns"):
        x = x.to_dict()  # a row of a table
    if not isinstance(x, Mapping):
        raise InvalidInput("x", check.describe(x), f"Pass a dict with the keys {', '.join(columns)} and the numbers.")
    numbers = {name: value for name, value in x.items() if name not in columns}
    return numbers or None, {name: _present(x.get(name)) for name in columns}


def replay_inputs(inputs: Any, columns: tuple[str, ...]) -> Sequence[Any] | np.ndarray:
    """The inputs of a replay, one for each step: numbers (steps, x_dim), or rows with texts or pictures.

    Rows are a list, or a table: a frame, or a dict of columns.
    """
    if not columns:
        return check.of_rank("inputs", inputs, ("steps", "x_dim"))
    if columns != ("",) and (isinstance(inputs, Mapping) or hasattr(inputs, "columns")):
        table = read_table(inputs)
        return [dict(zip(table.columns, row, strict=True)) for row in zip(*table.columns.values(), strict=True)]
    if isinstance(inputs, str | bytes | Mapping) or not isinstance(inputs, Sequence | np.ndarray):
        one = "text or picture" if columns == ("",) else f"dict with the keys {', '.join(columns)} and the numbers"
        remedy = f"Pass a list with a {one} for each step{'' if columns == ('',) else ', or a table'}."
        raise InvalidInput("inputs", check.describe(inputs), remedy)
    return inputs


def objects_key(objects: Mapping[str, Any]) -> bytes:
    """A key of an input's objects: the same bytes for the same texts and pictures."""
    if not objects:
        return b""
    digest = hashlib.blake2b(digest_size=16)
    for name, value in objects.items():
        digest.update(
            repr((name, type(value).__name__, np.shape(value) if isinstance(value, np.ndarray) else "")).encode()
        )
        digest.update(_content(value))
    return digest.digest()


def _content(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if hasattr(value, "tobytes"):  # arrays and pictures
        return repr(getattr(value, "size", "")).encode() + value.tobytes()
    return repr(value).encode()


def _present(value: Any) -> Any:
    """The value, or None if it is a missing value of a table."""
    missing = isinstance(value, float) and np.isnan(value)
    return None if missing or type(value).__name__ == "NAType" else value
