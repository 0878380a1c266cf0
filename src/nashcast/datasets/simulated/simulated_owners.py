"""Simulated: a target made of several owners' inputs, one number each."""

from __future__ import annotations

import numpy as np

from nashcast import seeds
from nashcast import validation as check
from nashcast.datasets.base import Stream
from nashcast.datasets.table import one_of

SIGNS = np.array([1.0, -1.0, 1.0, -1.0])
CASES = ("plain", "redundant", "useless", "lying", "changing")
# Period of the weights in the case "changing", and mean length of the lying owner's runs, in steps.
PERIOD, RUN_LENGTH = 1500.0, 50.0
# The factor of the lying owner's false input, and the share of steps at the start in which it is honest.
LIE_FACTOR, HONEST_SHARE = -3.0, 0.2


def simulated_owners(
    case: str = "plain", steps: int = 3000, noise: float = 0.5, correlation: float = 0.0, seed: int = 2024
) -> Stream:
    r"""$y_{t+1} = \sum_i a_i x^i_t + \sigma\varepsilon_t$ with a = (1, -1, 1, -1); each owner has a normal input.

    case: "plain"; "redundant": the last two owners see what the first two see; "useless": a fifth owner sees noise;
    "lying": a fifth sees what the first sees, and sends it for a fifth of the steps; later it alternates between that
    and -3 times that, in runs of 50 steps on average; "changing": the weights rotate, $a_i\cos(2\pi t/1500 + i\pi/4)$.
    steps: how many targets.   noise: σ ≥ 0.   correlation: that of any two inputs, at least 0 and below 1.
    """
    one_of("case", case, CASES)
    R = check.integer("steps", steps, min=1)
    sigma, rho = check.number("noise", noise, min=0.0), check.number("correlation", correlation, min=0.0, max=0.99)
    seed = check.integer("seed", seed, min=0)
    rng = seeds.generator(seed, "four owners")
    shared, own = rng.standard_normal((R + 1, 1)), rng.standard_normal((R + 1, len(SIGNS)))
    inputs = np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * own
    if case == "redundant":
        inputs[:, 2:] = inputs[:, :2]
    weights = np.repeat(SIGNS[None], R + 1, axis=0)
    if case == "changing":
        weights *= np.cos(2.0 * np.pi * np.arange(R + 1)[:, None] / PERIOD + np.arange(len(SIGNS)) * np.pi / 4.0)
    targets = (np.vecdot(weights, inputs) + sigma * rng.standard_normal(R + 1))[:, None]
    fifth = _fifth(case, inputs[:, 0], seeds.generator(seed, "four owners", case))
    inputs = inputs if fifth is None else np.column_stack([inputs, fifth])
    owners = {f"owner {i + 1}": (i,) for i in range(len(SIGNS))}
    if fifth is not None:
        owners["liar" if case == "lying" else "bystander"] = (len(SIGNS),)
    return Stream("four owners (simulated)", inputs[1:], targets[1:], targets[0], owners=owners)


def _fifth(case: str, first: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """The input that a fifth owner sends, (rows,), if there is one."""
    if case == "useless":
        return rng.standard_normal(len(first))
    if case != "lying":
        return None
    turns = np.cumsum(rng.random(len(first)) < 1.0 / RUN_LENGTH)
    lies = (turns % 2 == 0) & (np.arange(len(first)) >= HONEST_SHARE * len(first))
    return np.where(lies, LIE_FACTOR, 1.0) * first
