"""How long replays and online steps take, at the sizes of the paper's experiments."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np

from nashcast import seeds
from nashcast.agents.lookback.paper_agent import PaperAgent
from nashcast.encoders import EchoState, RandomFeatures
from nashcast.federation.compiled.replay import replay, replay_many
from nashcast.federation.federation import Federation
from nashcast.federation.paper import LookbackGame, paper_federation
from speed.games import best_time


def exchange_rate_agents(ridge: float = 1.0, seed: int = 0) -> Federation:
    """Five random-feature agents as in the paper's exchange-rate rows: 6 features, Client T 5, Game T 2, every step."""
    agents = [PaperAgent(RandomFeatures(features=6, seed=seed + i, noise=0.1), ridge=ridge, window=5) for i in range(5)]
    return paper_federation(agents, game=LookbackGame(lookback=2), start=0.0, seed=seed)


def periodic_agents() -> Federation:
    """Five echo states with 100 sampled paths, on a series of the periodic one's shape."""
    agents = [PaperAgent(EchoState(features=6, seed=i, noise=0.1, samples=100), window=3) for i in range(5)]
    return paper_federation(agents, game=LookbackGame(lookback=3), start=0.0)


def stream(steps: int, x_dim: int) -> tuple[np.ndarray, np.ndarray]:
    rng = seeds.generator(2024, "speed", steps, x_dim)
    return rng.standard_normal((steps, x_dim)), np.cumsum(0.1 * rng.standard_normal((steps, 1)), axis=0)


def measure(*, sweep: int = 1000, seconds: float = 1.0) -> Iterator[dict]:
    """One row for each case, as it is measured. sweep: settings in the sweep, each with three seeds."""
    X, Y = stream(2000, 10)
    time = best_time(lambda: replay(exchange_rate_agents(), X, Y), seconds)
    yield _row("replay: 5 random-feature agents, 10 inputs, game every step", 2000, 1, time)

    X, Y = stream(200, 1)
    time = best_time(lambda: replay(periodic_agents(), X, Y), seconds)
    yield _row("replay: 5 echo states, 100 samples, game every step", 200, 1, time)

    X, Y = stream(2000, 10)
    time = best_time(lambda: _online(X, Y), seconds)
    yield _row("online: the same 5 random-feature agents, predict_one and learn_one", 2000, 1, time)

    if sweep:
        X, Y = stream(200, 10)
        ridges = np.geomspace(0.1, 10, sweep)
        runs = [((lambda r=r, s=s: exchange_rate_agents(float(r), s)), X, Y) for r in ridges for s in range(3)]
        started = perf_counter()
        replay_many(runs)
        yield _row(f"sweep: {sweep} settings × 3 seeds, all cores", 200, len(runs), perf_counter() - started)


def _online(X, Y) -> None:
    federation = exchange_rate_agents()
    for x, y in zip(X, Y[:, 0], strict=True):
        federation.predict_one(x)
        federation.learn_one(x, y)


def _row(case: str, steps: int, runs: int, seconds: float) -> dict:
    return {"case": case, "steps": steps, "runs": runs, "seconds": seconds, "us_per_step": seconds / steps / runs * 1e6}
