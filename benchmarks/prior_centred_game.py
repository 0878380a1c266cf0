"""What the prior-centred game does, measured: a table of docs/explanation/prior-centred-game.md, in Markdown.

That page has the numbers of 0.1, whose second agent on narrow streams had products of lags.

python benchmarks/prior_centred_game.py
"""

from __future__ import annotations

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.datasets import open_stream

STUDIED, STEPS = ("logistic", "concept-y2", "boc", "ett"), 600
GAME_RIDGES = (0.1, 1.0, 10.0, 100.0)


def four_agents(forgetting: float) -> list[PaperAgent]:
    encoders = [nc.encoders.Linear(2), nc.encoders.Linear(1)]
    encoders += [nc.encoders.RandomFeatures(6, 1, 0.0), nc.encoders.RandomFeatures(12, 2, 0.0)]
    return [PaperAgent(encoder, ridge=0.01, forgetting=forgetting) for encoder in encoders]


def in_a_federation() -> None:
    """Four agents with all history, ridge 0.01; the game's ridge and look-back varied."""
    print("| stream | forgetting | no game |", " | ".join(f"T {T}, γ {g:g}" for T in (1, 3) for g in GAME_RIDGES), "|")
    for name in STUDIED:
        stream = open_stream(name)
        X, Y = stream.inputs[:STEPS], stream.targets[:STEPS]
        for forgetting in (0.95, 1.0):
            games = [None] + [nc.LookbackGame(T, memory=True, ridge=g) for T in (1, 3) for g in GAME_RIDGES]
            found = []
            for game in games:
                agents = four_agents(forgetting)
                federation = nc.paper_federation(agents, game=game, anchored=game is None, start=stream.start)
                found.append(federation.replay(X, Y).mse)
            print(f"| {name} | {forgetting:g} |", " | ".join(f"{error:.2e}" for error in found), "|", flush=True)


if __name__ == "__main__":
    in_a_federation()
