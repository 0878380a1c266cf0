"""Random federations for the tests."""

import numpy as np

import nashcast as nc
from nashcast.agents.lookback.paper_agent import PaperAgent


def vendor(x):
    """A black box of somebody else's."""
    return np.array([np.sin(x.sum()), np.cos(x[0]), x.mean(), 1.0, x[-1] ** 2, 0.5])


def random_agents(rng, y_dim, count=None):
    count = int(rng.integers(1, 6)) if count is None else count
    agents = []
    for i in range(count):
        kinds = [
            lambda i=i: nc.encoders.RandomFeatures(features=int(rng.integers(1, 6)), seed=i, noise=0.3),
            lambda i=i: nc.encoders.EchoState(
                features=int(rng.integers(1, 5)), seed=i, noise=0.3, samples=20, leak=[1.0, 0.5][i % 2]
            ),
            lambda: nc.encoders.Linear(lags=int(rng.integers(1, 3))),
            nc.encoders.Persistence,
            lambda i=i: nc.encoders.Callable(vendor, features=2, seed=i),
        ]
        encoder = kinds[int(rng.integers(len(kinds)))]()
        settings = {"ridge": rng.uniform(0.3, 5), "decay": rng.uniform(0, 1), "window": int(rng.integers(1, 7))}
        if rng.random() < 0.2:
            settings["forgetting"] = rng.uniform(0.9, 1.0)
        agents.append(PaperAgent(encoder, **settings))
    return agents


def random_settings(rng, y_dim):
    kind = rng.integers(4)
    game = nc.LookbackGame(lookback=int(rng.integers(1, 5)), every=int(rng.integers(1, 5)))
    settings = {
        "ridge": rng.uniform(0.3, 3),
        "budget": rng.uniform(0.5, 1.2),
        "y_dim": y_dim,
        "seed": int(rng.integers(99)),
    }
    if kind == 0:
        return {**settings, "game": None, "anchored": bool(rng.integers(2))}
    return {**settings, "game": game}


def random_stream(rng, y_dim, steps=25, x_dim=None):
    x_dim = int(rng.integers(1, 4)) if x_dim is None else x_dim
    X = 0.5 * rng.standard_normal((steps, x_dim))
    Y = np.cumsum(0.3 * rng.standard_normal((steps, y_dim)), axis=0)
    return X, Y
