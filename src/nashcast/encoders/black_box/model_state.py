"""A model's state as named arrays and back: numbers, texts, arrays, and lists and dicts of those.

Nothing is pickled: a file contains values, never code. The structure is JSON in an array of bytes.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from nashcast.errors import InvalidInput, NashcastError

_DEEPEST = 24
_KINDS = "biuf"


class NotPlain(NashcastError):
    """A state contains something that cannot be saved without pickling it."""


def to_arrays(state: Any) -> dict[str, np.ndarray]:
    """Raises NotPlain for anything but plain values.

    >>> from_arrays(to_arrays({"weights": np.array([1.0, 2.0]), "seen": 3, "name": "sgd"}))
    {'weights': array([1., 2.]), 'seen': 3, 'name': 'sgd'}
    """
    arrays: dict[str, np.ndarray] = {}
    structure = json.dumps(_packed(state, arrays, 0), separators=(",", ":"))
    return {"structure": np.frombuffer(structure.encode(), dtype=np.uint8), **arrays}


def from_arrays(saved: dict[str, np.ndarray]) -> Any:
    try:
        structure = json.loads(np.asarray(saved["structure"], dtype=np.uint8).tobytes())
        return _unpacked(structure, saved, 0)
    except (KeyError, ValueError, TypeError, IndexError, RecursionError) as error:
        raise InvalidInput("saved model", f"damaged values ({type(error).__name__})", "Use an earlier copy.") from error


def _packed(value: Any, arrays: dict[str, np.ndarray], depth: int) -> Any:
    if depth > _DEEPEST:
        raise NotPlain("a model's state is nested too deeply to be saved")
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}
    if isinstance(value, np.generic) and value.dtype.kind in _KINDS:
        return {"scalar": _stored(np.asarray(value), arrays)}
    if type(value) is np.ndarray and value.dtype.kind in _KINDS:
        return {"array": _stored(np.array(value, order="C"), arrays)}
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        words: list[Any] = value.tolist()
        if all(isinstance(word, str) for word in words):
            return {"words": words}
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return {type(value).__name__: [_packed(entry, arrays, depth + 1) for entry in value]}
    if type(value) is dict and all(type(key) in (str, int) for key in value):
        return {"dict": [[key, _packed(entry, arrays, depth + 1)] for key, entry in value.items()]}
    raise NotPlain(f"a model's state holds {type(value).__name__}, which cannot be saved")


def _stored(array: np.ndarray, arrays: dict[str, np.ndarray]) -> int:
    arrays[f"array.{len(arrays)}"] = array
    return len(arrays) - 1


def _unpacked(value: Any, arrays: dict[str, np.ndarray], depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if not isinstance(value, dict):
        if isinstance(value, list | float):
            raise ValueError("not a packed value")
        return value
    ((kind, content),) = value.items()
    if kind == "float":
        return float.fromhex(content)
    if kind == "scalar":
        return np.asarray(arrays[f"array.{int(content)}"])[()]
    if kind == "array":
        return np.array(arrays[f"array.{int(content)}"])
    if kind == "words":
        return np.array([str(entry) for entry in content], dtype=object)
    if kind in ("list", "tuple"):
        entries = [_unpacked(entry, arrays, depth + 1) for entry in content]
        return entries if kind == "list" else tuple(entries)
    if kind == "dict":
        return {key: _unpacked(entry, arrays, depth + 1) for key, entry in content}
    raise ValueError(f"unknown kind {kind!r}")
