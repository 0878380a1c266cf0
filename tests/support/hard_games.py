"""Games that are hard for float64: steep and unequal decay, long look-back, scales from 1e-9 to 1e9.

    python tests/support/hard_games.py 500

solves so many of them, compares each with a solution of four hundred digits and prints how far off they are.
"""

import sys
from typing import NamedTuple

import numpy as np

import nashcast as nc
from nashcast.errors import IllConditionedGame
from support.games import random_game, stacked
from support.reference import exact_any_game


class Found(NamedTuple):
    decoders: float  # largest error, as a share of the largest decoder, steps weighed by what they cost
    forecasts: float  # likewise
    last: float  # error of the forecasts at the window's end, as a share of the largest


def hard_game(seed, *, longest=30):
    """α 0 … 10, the same for all agents in half of them; T 1 … longest; features, targets and γ in other units."""
    rng = np.random.default_rng(10**6 + seed)
    T, N, p = int(rng.integers(1, longest + 1)), int(rng.integers(1, 6)), int(rng.integers(1, 3))
    alike, noisy = rng.random() < 0.5, bool(rng.random() < 0.3) and T <= 15
    game = random_game(seed, N=N, p=p, T=T, sizes=[int(d) for d in rng.integers(1, 4, N)], prior=False, noisy=noisy)
    alpha = rng.uniform(0.0, 10.0, N)
    x_unit, y_unit = 10.0 ** rng.uniform(-9.0, 9.0, 2)
    return game._replace(
        alpha=np.full(N, alpha[0]) if alike else alpha,
        Z=[z * x_unit for z in game.Z],
        mean=None if game.mean is None else [z * x_unit for z in game.mean],
        cov=None if game.cov is None else [None if c is None else c * x_unit**2 for c in game.cov],
        y=game.y * y_unit,
        start=game.start * y_unit,
        gamma=game.gamma * x_unit**2,
    )


def compare(game, compiled=False) -> Found | None:
    """None where the solver says that it has not the digits."""
    try:
        solved = nc.solve_game(*game.arguments(), **game.settings(), compiled=compiled)
    except IllConditionedGame:
        return None
    Z, mean, _, *rest = game.dense_arguments()
    decoders, forecasts = exact_any_game.solve(Z, mean, game.cov or [None] * len(Z), *rest)

    # Steps count as much as the root of their costs' discount for the most patient agent.
    worth = np.exp(-0.5 * game.alpha.min() * np.arange(len(decoders))[::-1])

    def off(one, other, worth):
        one, other = (array.reshape(len(worth), -1) * worth[:, None] for array in (one, other))
        return float(np.abs(one - other).max() / np.abs(other).max())

    last = off(solved.forecasts[-1:], forecasts[-1:], np.ones(1))
    path = off(solved.forecasts[1:], forecasts[1:], worth)
    return Found(off(stacked(solved.decoders), decoders, worth), path, last)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    found = [compare(hard_game(seed)) for seed in range(count)]
    solved = np.array([each for each in found if each is not None])
    print(f"{count} games, {count - len(solved)} refused as ill-conditioned, none as singular")
    for name, errors in zip(Found._fields, solved.T, strict=True):
        shares = ", ".join(f"{limit:.0e}: {np.mean(errors <= limit):.3f}" for limit in (1e-10, 1e-8, 1e-6, 1e-4, 1e-2))
        print(f"{name}: median {np.median(errors):.1e}, largest {errors.max():.1e}; share of games within {shares}")


if __name__ == "__main__":
    main()
