"""All the default federation remembers, as arrays: what `save` writes, and nothing else."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast.adaptive.plan import HIDDEN, KEPT, LEARNERS, LONGEST_SEASON, MOST_INPUTS, Plan

# Scores' and scales' memories of the rules that weigh experts by log score, from long to short.
SPEEDS = ((1.0, 0.98), (0.99, 0.95), (0.95, 0.8), (0.8, 0.3))
BERNSTEIN, POLYNOMIAL = len(SPEEDS), len(SPEEDS) + 1
RULES = len(SPEEDS) + 2
# What the last rule weighs: persistence, the rules, and all of these as polynomial weights mix them.
TOP = RULES + 2

# Places in `counts`.
ROWS, OFFSET, STEP, SEASON, NEXT_REVISION, LEARNT = range(6)
FALLBACKS, GAMES_PLAYED, GAMES_HELD = range(6, 9)
MEAN, SPREAD, CHANGE = range(3)
CAPACITY = 2 * KEPT
# Rows older than KEPT that are still looked back at.
BEFORE = LONGEST_SEASON + 8


class Memory(NamedTuple):
    """K experts, p targets, q inputs. Row s of the history is what was known when the target of row s + 1 was asked."""

    counts: np.ndarray
    targets: np.ndarray  # (CAPACITY, p)
    inputs: np.ndarray  # (CAPACITY, q)
    taught: np.ndarray  # whether row s + 1 is a label, so that row s teaches
    target_scales: np.ndarray  # (3, p): mean, spread, size of a change
    input_scales: np.ndarray  # (3, q)
    largest: np.ndarray  # the largest change of each target so far
    means: np.ndarray  # (levels, p), fading means
    mean_counts: np.ndarray
    products: np.ndarray  # (p, longest + 2): fading products of a change with those before it
    gram: np.ndarray  # (learners, forgettings, p, size, size), lower triangles
    cross: np.ndarray
    echo: np.ndarray  # the echo state after the last learnt row
    previous: np.ndarray  # (learners, p, size): features of the last learnt row
    features: np.ndarray  # of the present one
    next_echo: np.ndarray
    forecasts: np.ndarray  # (p, K)
    reach: np.ndarray  # (p, K): 1 + leverage
    awake: np.ndarray  # (K,)
    score: np.ndarray  # (speeds, p, K)
    squares: np.ndarray
    score_count: np.ndarray  # (speeds, p)
    gains: np.ndarray  # (p, K)
    gain_squares: np.ndarray
    gain_bound: np.ndarray  # (p,)
    regrets: np.ndarray  # (p, K)
    regret_squares: np.ndarray
    regret_bound: np.ndarray  # (p,)
    rule_weights: np.ndarray  # (RULES, p, K)
    rule_forecasts: np.ndarray  # (p, TOP)
    top_regrets: np.ndarray  # (p, 1 + RULES)
    top_regret_squares: np.ndarray
    top_regret_bound: np.ndarray  # (p,)
    polynomial_weights: np.ndarray  # (p, 1 + RULES)
    top_score: np.ndarray  # (p, TOP)
    top_squares: np.ndarray
    top_count: np.ndarray
    top_weights: np.ndarray
    weights: np.ndarray  # (p, K): each expert's in the forecast
    last_weights: np.ndarray  # the same of the last step that was learnt
    forecast: np.ndarray  # (p,)
    error: np.ndarray  # (2, p): fading sum of the forecast's squared errors, and its count
    held: np.ndarray  # (agents,): whether a forecast of the agent's is held back in the present step
    cuts: np.ndarray  # (agents,): in how many steps that was so
    happened: np.ndarray  # fallbacks, games and corrections held back in the present step


def fresh_memory(plan: Plan, x_dim: int, y_dim: int, start: np.ndarray) -> Memory:
    p, q, K = y_dim, x_dim, len(plan.agent)
    size, agents = int(plan.sizes.max()), int(plan.agent.max()) + 1
    memories = (LEARNERS, len(plan.forgetting), p, size)
    memory = Memory(
        counts=np.zeros(9, dtype=np.int64),
        targets=np.zeros((CAPACITY, p)),
        inputs=np.zeros((CAPACITY, q)),
        taught=np.zeros(CAPACITY, dtype=bool),
        target_scales=np.zeros((3, p)),
        input_scales=np.zeros((3, q)),
        largest=np.zeros(p),
        means=np.repeat(start[None], len(plan.levels), axis=0),
        mean_counts=np.ones(len(plan.levels)),
        products=np.zeros((p, LONGEST_SEASON + 2)),
        gram=np.zeros((*memories, size)),
        cross=np.zeros(memories),
        echo=np.zeros(HIDDEN),
        previous=np.zeros((LEARNERS, p, size)),
        features=np.zeros((LEARNERS, p, size)),
        next_echo=np.zeros(HIDDEN),
        forecasts=np.zeros((p, K)),
        reach=np.ones((p, K)),
        awake=np.ones(K, dtype=bool),
        score=np.zeros((len(SPEEDS), p, K)),
        squares=np.zeros((len(SPEEDS), p, K)),
        score_count=np.zeros((len(SPEEDS), p)),
        gains=np.zeros((p, K)),
        gain_squares=np.zeros((p, K)),
        gain_bound=np.zeros(p),
        regrets=np.zeros((p, K)),
        regret_squares=np.zeros((p, K)),
        regret_bound=np.zeros(p),
        rule_weights=np.zeros((RULES, p, K)),
        rule_forecasts=np.zeros((p, TOP)),
        top_regrets=np.zeros((p, 1 + RULES)),
        top_regret_squares=np.zeros((p, 1 + RULES)),
        top_regret_bound=np.zeros(p),
        polynomial_weights=np.zeros((p, 1 + RULES)),
        top_score=np.zeros((p, TOP)),
        top_squares=np.zeros((p, TOP)),
        top_count=np.zeros(p),
        top_weights=np.zeros((p, TOP)),
        weights=np.repeat(np.exp(plan.log_prior)[None], p, axis=0),
        last_weights=np.repeat(np.exp(plan.log_prior)[None], p, axis=0),
        forecast=np.zeros(p),
        error=np.zeros((2, p)),
        held=np.zeros(agents, dtype=bool),
        cuts=np.zeros(agents, dtype=np.int64),
        happened=np.zeros(3, dtype=np.int64),
    )
    memory.targets[0] = start
    memory.counts[ROWS] = 1
    memory.counts[SEASON] = plan.season
    return memory


def inputs_seen(x_dim: int) -> int:
    """How many numbers of an input the agents see."""
    return min(x_dim, MOST_INPUTS)
