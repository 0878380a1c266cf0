"""The paper's normalisation study: three Brownian motions with drift, each added to the same straight line."""

from __future__ import annotations

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.datasets.base import Stream

TRAJECTORIES = 3


def brownian(steps: int = 200, seed: int = 2024, normalised: bool = False) -> Stream:
    r"""$y_{i,t} = x_t + b_{i,t}$ with $x_t = 0.1\,t$ and $b_{i,t} = b_{i,t-1} + 1 + \mathcal N(0, 1)$, $b_{i,0} = 0$.

    The input is $x_{t+1}$ and the three $b_{i,t+1}$, the very point to forecast: the task is addition, not prediction.
    normalised: inputs and targets are each divided by their own largest entry, as in the paper, which looks ahead.
    """
    R = check.integer("steps", steps, min=1)
    check.integer("seed", seed, min=0)
    draws = seeds.generator(seed, "stream", "brownian").standard_normal((R, TRAJECTORIES))
    b = np.vstack([np.zeros(TRAJECTORIES), np.cumsum(1.0 + draws, axis=0)])
    line = 0.1 * np.arange(R + 1)[:, None]
    x, y = np.hstack([line, b]), line + b
    unit = 1.0
    if normalised:
        # A short, unlucky draw may never rise above 0, where it starts.
        unit = float(y.max()) or float(np.abs(y).max())
        x, y = x / x.max(), y / unit
    name = "Brownian motion, normalised" if normalised else "Brownian motion"
    return Stream(name, x[1:], y[1:], y[0], unit=unit)
