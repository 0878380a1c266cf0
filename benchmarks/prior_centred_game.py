"""What the prior-centred game does, measured: the two tables of docs/explanation/prior-centred-game.md, in Markdown.

python benchmarks/prior_centred_game.py [--federation | --default]
"""

from __future__ import annotations

import sys

import numpy as np

import nashcast as nc
from nashcast.experiments.evaluation.declared import declared_streams
from nashcast.experiments.evaluation.significance import diebold_mariano
from nashcast.streams import open_stream

SEEDS = (2024, 2025, 2026)
STUDIED, STEPS = ("logistic", "concept-y2", "boc", "ett"), 600
GAME_RIDGES = (0.1, 1.0, 10.0, 100.0)


def four_agents(x_dim: int, forgetting: float) -> list[nc.Agent]:
    second = nc.encoders.QuadraticLags(2) if x_dim < 4 else nc.encoders.Linear(1)
    encoders = [nc.encoders.Linear(2), second]
    encoders += [nc.encoders.RandomFeatures(6, 1, 0.0), nc.encoders.RandomFeatures(12, 2, 0.0)]
    return [nc.Agent(encoder, ridge=0.01, forgetting=forgetting) for encoder in encoders]


def in_a_federation() -> None:
    """Four agents with all history, ridge 0.01; the game's ridge and look-back varied."""
    print("| stream | forgetting | no game |", " | ".join(f"T {T}, γ {g:g}" for T in (1, 3) for g in GAME_RIDGES), "|")
    for name in STUDIED:
        stream = open_stream(name)
        X, Y = stream.inputs[:STEPS], stream.targets[:STEPS]
        for forgetting in (0.95, 1.0):
            games = [None] + [nc.Game(T, memory=True, ridge=g) for T in (1, 3) for g in GAME_RIDGES]
            found = []
            for game in games:
                agents = four_agents(X.shape[1], forgetting)
                federation = nc.Federation(agents, game=game, anchored=game is None, start=stream.start)
                found.append(federation.replay(X, Y).mse)
            print(f"| {name} | {forgetting:g} |", " | ".join(f"{error:.2e}" for error in found), "|", flush=True)


def in_the_default_federation() -> None:
    """The default federation with and without its game variants, mean over seeds, and the Diebold–Mariano p-value."""
    print("| stream | persistence | without game | with game | difference | p |")
    for declared in declared_streams():
        stream = declared.open()
        losses = np.mean([[_losses(stream, game, seed) for game in (False, True)] for seed in SEEDS], axis=0)
        without, with_game = losses.mean(axis=1)
        change = 100 * (with_game / without - 1)
        row = f"| {declared.label} | {stream.persistence_mse:.3e} | {without:.3e} | {with_game:.3e} | {change:+.2f} % "
        print(f"{row}| {diebold_mariano(losses[1], losses[0])[1]:.2f} |", flush=True)


def _losses(stream, game: bool, seed: int) -> np.ndarray:
    x_dim, y_dim = stream.inputs.shape[1], stream.targets.shape[1]
    federation = nc.default_federation(x_dim, y_dim, game=game, start=stream.start, seed=seed)
    return ((federation.replay(stream.inputs, stream.targets).forecasts - stream.targets) ** 2).mean(axis=1)


if __name__ == "__main__":
    if "--default" not in sys.argv:
        in_a_federation()
    if "--federation" not in sys.argv:
        in_the_default_federation()
