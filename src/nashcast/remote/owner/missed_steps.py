"""The inputs of missed steps, for encoders with memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from nashcast import validation as check

# Called as inputs(first, last); None for each input that is not available.
Inputs = Callable[[int, int], Sequence[np.ndarray | None]]


def inputs_of_missed(inputs: Inputs | None, first: int, last: int, x_dim: int) -> dict[int, np.ndarray]:
    """The available inputs, by step."""
    found = {}
    if inputs is not None:
        with suppress(Exception):  # not available: the encoder's memory is then older
            for s, x in zip(range(first, last + 1), inputs(first, last), strict=False):
                if x is not None:
                    found[s] = check.shaped("x", x, (x_dim,), "(x_dim,)")
    return found
