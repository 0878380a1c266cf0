"""Are a federation's intervals better for the quantiles that its agents give?

python benchmarks/quantile_intervals.py [--steps N] [--ett FOLDER] prints a table: interval scores and CRPS of intervals
that are told how far the agents expect the targets, over those of intervals from past residuals alone, round the same
forecasts. Needs statsforecast, pvlib and arch.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import nashcast as nc
from nashcast.datasets.catalog import open_stream
from nashcast.datasets.simulated.hourly_load import load_table
from nashcast.federation.loop import Scored
from nashcast.federation.views.bounds import Bounds
from nashcast.frames.scores import CRPS_LEVELS, crps, mean, quantiles

COVERAGES, SHOWN, BURN_IN = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95), (0.8, 0.9, 0.95), 800


class Case(NamedTuple):
    name: str
    y: np.ndarray
    horizon: int
    season: int | None
    boxes: dict[str, nc.encoders.Encoder]  # agents that give quantiles, beside our own


def same_hour(past: np.ndarray, horizon: int) -> np.ndarray:
    """The last 28 days at the same hours, as samples."""
    days = len(past) // 24
    return np.tile(past[len(past) - 24 * days :].reshape(days, 24), (1, -(-horizon // 24)))[:, :horizon]


def changes_of_the_hour(past: np.ndarray, horizon: int) -> np.ndarray:
    """The last value and what followed the same hour on each of the last 14 days, as samples."""
    starts = len(past) - 1 - 24 * np.arange(1, 15)
    return past[-1] + past[starts[:, None] + 1 + np.arange(horizon)] - past[starts][:, None]


def volatility(past: np.ndarray, horizon: int) -> np.ndarray:
    """Normal quantiles round the last value, by a fading variance of the last 60 changes."""
    changes = np.diff(past)[-60:]
    weights = 0.9 ** np.arange(len(changes))[::-1]
    spread = np.sqrt(np.average(changes**2, weights=weights) * np.arange(1, horizon + 1))
    return past[-1] + spread[:, None] * np.array([-1.2816, 0.0, 1.2816])


def cases(steps: int, ett: Path | None) -> Iterator[Case]:
    import arch.data.sp500
    import pvlib

    box, levels = nc.encoders.Forecaster, (0.1, 0.5, 0.9)
    hourly = {
        "same hour": box(same_hour, context=28 * 24, samples=True),
        "changes of the hour": box(changes_of_the_hour, context=15 * 24, samples=True),
        "AutoETS": nc.encoders.StatsForecast("AutoETS", season=24, refit_every=336, context=672),
    }
    daily = {
        "volatility": box(volatility, context=100, quantiles=levels),
        "AutoETS": nc.encoders.StatsForecast("AutoETS", refit_every=100, context=500),
    }
    weather, _ = pvlib.iotools.read_tmy3(Path(pvlib.__file__).parent / "data" / "723170TYA.CSV", map_variables=False)
    load, warm = np.array(load_table(steps)["load"]), weather["Dry-bulb (C)"].to_numpy(float)[:steps]
    shares = 100.0 * np.log(arch.data.sp500.load()["Adj Close"].to_numpy(float)[-steps:])
    for horizon in (1, 24):
        yield Case("simulated load", load, horizon, 24, hourly)
        yield Case("TMY3 air temperature", warm, horizon, 24, hourly)
        if ett is not None:
            oil = open_stream("ett", steps=steps - 1, path=ett, scale="none")
            yield Case("ETT oil temperature", np.append(oil.start, oil.targets[:, 0]), horizon, 24, hourly)
    for horizon in (1, 5):
        yield Case("S&P 500, logarithm", shares, horizon, None, daily)


def measured(case: Case) -> dict[str, dict[str, float]]:
    """Interval scores, coverages and CRPS after BURN_IN, with and without the agents' quantiles."""
    y, H, n = case.y, case.horizon, len(case.y)
    agents = [nc.Agent(one, name=name) for name, one in case.boxes.items()] + nc.default_agents()
    federation = nc.Federation(agents, horizon=H, season=case.season, coverages=())
    told = {"with": Bounds(COVERAGES, 1, H, 0, told=True), "without": Bounds(COVERAGES, 1, H, 0)}
    said, halves = np.full((n, H), np.nan), {name: np.full((len(COVERAGES), n, H), np.nan) for name in told}
    back = np.arange(H)
    for t in range(n):
        federation.learn_one(None, float(y[t]))
        federation.predict_one(None)
        known = t - 1 - back >= 1
        then = said[np.maximum(t - 1 - back, 0), back]
        now = federation.present
        assert now is None or now.forecast.shape == (H, 1)
        for name, bounds in told.items():
            if t > 1:
                bounds.learn(Scored(y[t : t + 1], then[:, None], np.zeros((0, 1)), known, t - 1))
            if now is None:
                continue
            bounds.expect(now.distance)
            bounds.issue(t)
            halves[name][:, t] = bounds.around_all(now.forecast)[:, 1, :, 0] - now.forecast[:, 0]
        if now is not None:
            said[t] = now.forecast[:, 0]
    return {name: scores(y, said, half) for name, half in halves.items()}


def scores(y: np.ndarray, said: np.ndarray, halves: np.ndarray) -> dict[str, float]:
    n, H = said.shape
    ahead = np.full((n, H), np.nan)
    for h in range(1, H + 1):
        ahead[:-h, h - 1] = y[h:]
    size, found = np.abs(ahead - said), {}
    for coverage in SHOWN:
        half = halves[COVERAGES.index(coverage)]
        outside = np.maximum(size - half, 0.0)
        found[f"score {100 * coverage:g}"] = mean((2.0 * half + 2.0 / (1.0 - coverage) * outside)[BURN_IN:-H])
        found[f"covered {100 * coverage:g}"] = 100.0 * float(np.mean(outside[BURN_IN:-H] == 0.0))
    losses = crps(ahead, quantiles(said, halves, COVERAGES, CRPS_LEVELS), CRPS_LEVELS)
    return found | {"CRPS": mean(losses[BURN_IN:-H])}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    options.add_argument("--steps", type=int, default=1800, help="steps of each stream (default: 1800)")
    options.add_argument("--ett", type=Path, help="folder with ETTh1.csv; without it that stream is left out")
    chosen = options.parse_args()
    warnings.filterwarnings("ignore")
    print("| | steps ahead | score 80 % | 90 % | 95 % | CRPS | coverage 80 %, with and without |")
    print("|---|---:|---:|---:|---:|---:|---|", flush=True)
    ratios = []
    for case in cases(chosen.steps, chosen.ett):
        found = measured(case)
        one, other = found["with"], found["without"]
        keys = [f"score {100 * coverage:g}" for coverage in SHOWN] + ["CRPS"]
        ratios.append([one[key] / other[key] for key in keys])
        cells = " | ".join(f"{ratio:.3f}" for ratio in ratios[-1])
        covered = f"{one['covered 80']:.1f}, {other['covered 80']:.1f}"
        print(f"| {case.name} | {case.horizon} | {cells} | {covered} |", flush=True)
    cells = " | ".join(f"{ratio:.3f}" for ratio in np.exp(np.log(ratios).mean(axis=0)))
    print(f"| geometric mean | | {cells} | |")


if __name__ == "__main__":
    main()
