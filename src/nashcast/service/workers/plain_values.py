"""Convert arrays, numbers and contexts to frame values and back, for messages between a worker and foreign code."""

from __future__ import annotations

from typing import Any

import numpy as np

from nashcast.encoders.base import Context, Noise
from nashcast.encoders.families.rows import Scales
from nashcast.errors import NashcastError
from nashcast.service.workers import frames


def pack(value: Any) -> Any:
    """Convert a value for a frame: arrays to bytes with type and shape, tuples and contexts by name."""
    if isinstance(value, Context):
        plain = value._replace(rows=None, objects={})
        return {"context": [pack(tuple(part) if isinstance(part, Scales | Noise) else part) for part in plain]}
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        if array.dtype.kind not in "fiub":
            raise NashcastError(f"it answered with an array of {array.dtype}")
        return {"array": [array.dtype.str, list(array.shape), array.tobytes()]}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return {"tuple": [pack(part) for part in value]}
    if isinstance(value, dict):
        return {"dict": [[str(name), pack(part)] for name, part in value.items()]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise NashcastError(f"it answered with {type(value).__name__}, which is neither an array nor a number")


def unpack(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "array":
        dtype, shape, data = inner
        if np.dtype(dtype).kind not in "fiub":
            raise frames.BadFrame("a message has an array of another type than numbers.")
        return np.frombuffer(data, dtype=dtype).reshape(shape).copy()
    if kind == "tuple":
        return tuple(unpack(part) for part in inner)
    if kind == "dict":
        return {name: unpack(part) for name, part in inner}
    parts = [unpack(part) for part in inner]
    x, inputs, targets, times, scales, input_scales, season, rows, noise, state, _ = parts
    return Context(
        x, inputs, targets, times, Scales(*scales), Scales(*input_scales), season, rows, Noise(*noise), state
    )
