"""Simulated: a target made of four inputs, each of which one owner sees."""

from __future__ import annotations

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.streams.base import Stream

_COEFFICIENTS = np.array([1.0, -1.0, 1.0, -1.0])


def four_owners(steps: int = 500, noise: float = 0.5, correlation: float = 0.5, seed: int = 2024) -> Stream:
    r"""$y_{t+1} = x^1_t - x^2_t + x^3_t - x^4_t + \sigma\varepsilon_t$, standard normal, any two inputs correlated.

    steps: how many targets.   noise: σ ≥ 0.   correlation: of any two inputs, at least 0 and below 1.
    """
    R = check.integer("steps", steps, min=1)
    sigma, rho = check.number("noise", noise, min=0.0), check.number("correlation", correlation, min=0.0, max=0.99)
    rng = seeds.generator(check.integer("seed", seed, min=0), "four owners")
    shared, own = rng.standard_normal((R + 1, 1)), rng.standard_normal((R + 1, len(_COEFFICIENTS)))
    inputs = np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * own
    targets = (inputs @ _COEFFICIENTS + sigma * rng.standard_normal(R + 1))[:, None]
    return Stream("four owners (simulated)", inputs[1:], targets[1:], targets[0])
