"""One run seed, a generator for each named use: agent 3 draws the same numbers in a run of 4 and of 40."""

from __future__ import annotations

import zlib

import numpy as np

from nashcast.errors import InvalidInput


def generator(run_seed: int, *name: str | int) -> np.random.Generator:
    """The generator of one named use, for example `generator(2024, "encoder", 3)`.

    Words enter by their CRC-32 and numbers as they are, each with a tag, so `"3"` and `3` differ and so do
    `("a", "b")` and `("ab",)`. Nothing global is read or changed.
    """
    return np.random.Generator(np.random.PCG64(_sequence(run_seed, name)))


def key(run_seed: int, *name: str | int) -> int:
    """A 63-bit key of one named use, for counter-based noise, computed by step instead of drawn in order."""
    return int(_sequence(run_seed, name).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _sequence(run_seed, name) -> np.random.SeedSequence:
    if isinstance(run_seed, bool) or not isinstance(run_seed, int | np.integer) or run_seed < 0:
        raise InvalidInput("run_seed", repr(run_seed), "Pass a whole number ≥ 0.")
    entropy = [int(run_seed)]
    for part in name:
        if isinstance(part, str):
            entropy += [1, zlib.crc32(part.encode()), len(part)]
        elif isinstance(part, int | np.integer) and not isinstance(part, bool) and part >= 0:
            entropy += [2, int(part)]
        else:
            raise InvalidInput("name", repr(part), "Name a use by words and whole numbers ≥ 0.")
    return np.random.SeedSequence(entropy)
