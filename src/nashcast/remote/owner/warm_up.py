"""Compiles code before it is needed: an agent that compiles in its first step would be late."""

from __future__ import annotations

import numpy as np

from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.encoders import EchoState, RandomFeatures
from nashcast.federation.paper import LookbackGame, paper_federation


def warm_up() -> None:
    """Play a small game of each kind. The first time on a machine this takes up to a minute, later about a second."""
    x, y = np.ones((5, 1)), np.arange(5.0)[:, None]
    for placement in ("central", "spread"):
        for noise in (0.0, 0.1):
            for forgetting in (None, 0.9):
                encoders = [
                    RandomFeatures(features=2, seed=1, noise=noise),
                    EchoState(2, seed=1, noise=noise, samples=2),
                ]
                agents = [PaperAgent(encoder, name=f"{i}", forgetting=forgetting) for i, encoder in enumerate(encoders)]
                paper_federation(agents, game=LookbackGame(lookback=2, placement=placement), start=0.0).replay(x, y)
