"""Simulated: a target made of four inputs, each seen by one owner."""

from __future__ import annotations

from nashcast.datasets.base import Stream
from nashcast.datasets.simulated.simulated_owners import simulated_owners


def four_owners(steps: int = 500, noise: float = 0.5, correlation: float = 0.5, seed: int = 2024) -> Stream:
    r"""$y_{t+1} = x^1_t - x^2_t + x^3_t - x^4_t + \sigma\varepsilon_t$, standard normal, any two inputs correlated.

    steps: how many targets.   noise: σ ≥ 0.   correlation: that of any two inputs, at least 0 and below 1.
    """
    return simulated_owners("plain", steps, noise, correlation, seed)
