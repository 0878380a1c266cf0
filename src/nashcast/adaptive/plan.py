"""What the default federation consists of: agents, variants, and the sizes that follow. The same for all streams."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nashcast import seeds

# The agents. The first needs no decoder: the last target, and its fading means.
AGENTS = ("persistence", "trend", "linear", "seasonal", "quadratic lags", "random features", "echo state")
PERSISTENCE, TREND, LINEAR, SEASONAL, QUADRATIC, RANDOM, ECHO = range(7)
LEARNERS = len(AGENTS) - 1
LEVELS = (0.5, 0.9, 1.0)  # forgetting of the first agent's means

# The learners' variants: forgetting and ridge, in units of standardised features and for each of them.
FORGETTING = (1.0, 0.998, 0.99, 0.97, 0.9)
VARIANTS = ((1.0, 1e-4), (1.0, 0.3), (0.998, 10.0), (0.99, 0.3), (0.97, 0.01), (0.9, 0.01))
# Those whose ridge is centred on a simple rule: the last change goes on; what followed one season ago follows again.
CENTRED = {TREND: ((1.0, 10.0), (0.9, 0.3), (0.9, 0.01)), SEASONAL: ((1.0, 10.0), (0.99, 0.3))}
# Variants that also exist corrected by a prior-centred game, and the game's ridge.
GAMES = ((0.99, 0.3, 0.1), (0.97, 0.01, 10.0))
# What such a variant weighs of another one before anything is learnt: it pays only where the stream drifts.
GAME_PRIOR = 0.2

CHANGES = 4  # last changes of a target that the trend sees
LAGS = 4  # last values that the linear agent sees; the seasonal one sees SEASONAL_LAGS
SEASONAL_LAGS = 3
HARMONICS = 4
FACTORS = 5  # numbers whose products of two the quadratic agent sees
HIDDEN = 24  # random features, and echo state
SPECTRAL_RADIUS = 0.9
MOST_INPUTS = 24  # more are seen through a random projection to this many
LONGEST_SEASON = 168
KEPT = 2048  # rows from which memories are learnt again when scales or the season change


class Plan(NamedTuple):
    """The federation's fixed numbers, as its compiled functions read them."""

    sizes: np.ndarray  # features of each learner, (learners,)
    forgetting: np.ndarray
    variants: np.ndarray  # (variants, 2): learner, index of its forgetting
    ridge: np.ndarray  # (variants,)
    centre: np.ndarray  # of the first feature's decoder
    games: np.ndarray  # (games, learners): the variants that play
    game_ridge: np.ndarray  # (games,)
    agent: np.ndarray  # of each expert: persistence and means, variants, variants after games, outside agents
    log_prior: np.ndarray  # (experts,)
    levels: np.ndarray
    projection: np.ndarray  # (MOST_INPUTS, x_dim), or empty
    random_weights: np.ndarray
    random_bias: np.ndarray
    echo_weights: np.ndarray
    echo_recurrent: np.ndarray
    echo_bias: np.ndarray
    season: int  # as given, 0 if it is to be found


def make_plan(x_dim: int, y_dim: int, outside: int, games: bool, season: int, seed: int) -> Plan:
    p, q = y_dim, min(x_dim, MOST_INPUTS)
    factors = min(FACTORS, p + 1 + q)
    sizes = np.array([
        CHANGES + p - 1 + q,
        1 + LAGS + 2 * (p - 1) + q,
        2 + SEASONAL_LAGS + 2 * HARMONICS + q,
        1 + factors + factors * (factors + 1) // 2,
        2 + HIDDEN,
        2 + HIDDEN,
    ])  # fmt: skip
    rows = [
        (learner, FORGETTING.index(forgetting), ridge, centre)
        for learner in range(LEARNERS)
        for settings, centre in ((VARIANTS, 0.0), (CENTRED.get(learner + 1, ()), 1.0))
        for forgetting, ridge in settings
    ]
    played = GAMES if games else ()
    players = [
        [rows.index((learner, FORGETTING.index(forgetting), ridge, 0.0)) for learner in range(LEARNERS)]
        for forgetting, ridge, _ in played
    ]
    agent = np.array(
        [PERSISTENCE] * (1 + len(LEVELS))
        + [learner + 1 for learner, *_ in rows]
        + [learner + 1 for _ in played for learner in range(LEARNERS)]
        + [len(AGENTS) + i for i in range(outside)]
    )
    # Each agent alike, then each of its variants alike, those after a game less.
    share = np.ones(len(agent))
    share[1 + len(LEVELS) + len(rows) : len(agent) - outside] = GAME_PRIOR
    prior = share / ((len(AGENTS) + outside) * np.bincount(agent, share)[agent])
    rng = seeds.generator(seed, "default federation")
    random = rng.standard_normal((2 * p + q, HIDDEN)) / np.sqrt(2 * p + q)
    echo = rng.standard_normal((p + q, HIDDEN)) / np.sqrt(p + q)
    recurrent = rng.standard_normal((HIDDEN, HIDDEN))
    recurrent *= SPECTRAL_RADIUS / np.abs(np.linalg.eigvals(recurrent)).max()
    biases = rng.standard_normal((2, HIDDEN))
    projection = np.empty((0, x_dim))
    if x_dim > MOST_INPUTS:
        projection = rng.standard_normal((MOST_INPUTS, x_dim)) / np.sqrt(x_dim)
    return Plan(
        sizes, np.array(FORGETTING), np.array([row[:2] for row in rows]), np.array([row[2] for row in rows]),
        np.array([row[3] for row in rows]), np.array(players, dtype=np.int64).reshape(-1, LEARNERS),
        np.array([row[2] for row in played]), agent, np.log(prior), np.array(LEVELS), projection, random, biases[0],
        echo, recurrent, 0.5 * biases[1], season,
    )  # fmt: skip


def variant_names(games: bool) -> list[str]:
    """What each expert of this plan is called, outside agents left out."""
    found = [AGENTS[PERSISTENCE]] + [f"mean, forgetting {level:g}" for level in LEVELS]
    for learner in range(LEARNERS):
        name = AGENTS[learner + 1]
        found += [f"{name}, forgetting {f:g}, ridge {r:g}" for f, r in VARIANTS]
        found += [f"{name}, forgetting {f:g}, ridge {r:g}, centred" for f, r in CENTRED.get(learner + 1, ())]
    for f, r, g in GAMES if games else ():
        found += [f"{name}, forgetting {f:g}, ridge {r:g}, game {g:g}" for name in AGENTS[1:]]
    return found
