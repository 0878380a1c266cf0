"""Messages with random contents, for tests that pack and read them."""

import types
from typing import get_args, get_origin, get_type_hints

import numpy as np


def draw(rng, hint):
    """Any value of a type, floats of any bits."""
    if isinstance(hint, types.UnionType):
        options = get_args(hint)
        return draw(rng, options[rng.integers(len(options))])
    if get_origin(hint) is tuple:
        return tuple(draw(rng, get_args(hint)[0]) for _ in range(rng.integers(5)))
    if hasattr(hint, "_fields"):
        return hint(*[draw(rng, part) for part in get_type_hints(hint).values()])
    if hint is np.ndarray:
        shape = tuple(int(n) for n in rng.integers(0, 4, size=rng.integers(0, 6)))
        return np.frombuffer(rng.bytes(8 * int(np.prod(shape))), dtype=np.float64).reshape(shape).copy()
    if hint is int:
        return int(rng.choice([0, 1, 127, 128, 255, 256, 65_536, 2**32, 2**63 - 1, -1, -33, -(2**31), -(2**63)]))
    plain = {
        type(None): None,
        bool: bool(rng.integers(2)),
        float: float(rng.standard_normal()),
        str: "".join(rng.choice(list("aZ9 -_äβ∞🙂"), size=rng.integers(0, 40))),
        bytes: rng.bytes(int(rng.integers(0, 300))),
    }
    return plain[hint]
