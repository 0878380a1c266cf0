"""One step of the joint game for up to a million agents with three features each, in one process.

    python benchmarks/joint_game.py

Agents stand in blocks whose arrays fit into the processor's cache. One step is a forecast, a row and a label: of the
game with one forgetting and one boldness, and of the set of variants that a federation plays by default.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from nashcast.agents.joint.joint_blocks import JointBlocks
from nashcast.games.joint import JointGame

FEATURES = 3
# Agents in one block.
TOGETHER_IN_CACHE = 16_384


GAMES = {
    "one variant": JointGame(forgetting=(0.998,), boldness=(1.0,), averaged=False, partial=False),
    "default set": JointGame(partial=False),
}


def blocks_of(game: JointGame, agents: int, together: int) -> list[JointBlocks]:
    sizes = [min(together, agents - first) for first in range(0, agents, together)]
    return [JointBlocks(game, [FEATURES] * size, 0, 1, 1, remembered=1) for size in sizes]


def seconds(game: JointGame, agents: int, together: int, steps: int) -> float:
    """The shortest of some steps, in processor time: a shared machine counts less."""
    rng, blocks = np.random.default_rng(0), blocks_of(game, agents, together)
    public, now, rate = np.empty((1, 0)), np.zeros(1, dtype=np.int64), 0.01
    best = np.inf
    for step in range(steps):
        features = [rng.standard_normal((one.agents, 1, FEATURES)) for one in blocks]
        start = time.process_time()
        said = [one.forecast(part, public).played.sum(axis=1) for one, part in zip(blocks, features, strict=True)]
        residual = (1.0 - sum(said)) / agents  # of each variant, (variants, y_dim, horizon)
        for one in blocks:
            one.add_row(step, None, taught=True)
            one.learn(now, residual[:, None], rate)
        best = min(best, time.process_time() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--agents", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--together", type=int, default=TOGETHER_IN_CACHE, help="agents in one block (16384)")
    parser.add_argument("--steps", type=int, default=5, help="steps of which the shortest counts (5)")
    given = parser.parse_args()
    for agents in given.agents:
        for name, game in GAMES.items():
            spent = 1e3 * seconds(game, agents, given.together, given.steps)
            print(f"{agents:>9,} agents, {name}: {spent:8.2f} ms a step")


if __name__ == "__main__":
    main()
