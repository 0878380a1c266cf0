"""24 hours ahead on hourly streams: seasonal naive, AutoETS, AutoTheta and our agents, alone and in one federation.

python benchmarks/next_24_hours.py [--hours N] [--ett FOLDER] writes docs/reference/next-24-hours.md and its JSON. Needs
statsforecast and pvlib. Every member forecasts from every hour. AutoETS and AutoTheta are fitted to the last 28 days,
and again every week; in between the fitted model is carried forward over the new hours. Bounds of every method come
from its own past errors by `nashcast.Intervals`, so that CRPS compares forecasts alone.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import nashcast as nc
from nashcast.datasets.simulated.hourly_load import load_table
from nashcast.encoders.base import BuiltForecaster
from nashcast.frames.scores import CRPS_LEVELS, crps, mean, naive_scale, quantiles
from nashcast.intervals.issued_log import IssuedLog

H, SEASON, FITTED, REFIT = 24, 24, 28 * 24, 7 * 24
BURN_IN = FITTED + 21 * 24  # hours that are not scored
ROOT = Path(__file__).parent.parent
TOGETHER, OURS = "federation of all", "our agents"


def streams(hours: int, ett: Path | None) -> dict[str, np.ndarray]:
    """Targets by name, in their own units."""
    import pvlib

    file = Path(pvlib.__file__).parent / "data" / "723170TYA.CSV"
    weather, _ = pvlib.iotools.read_tmy3(file, map_variables=False)
    oil = nc_stream("ett", steps=hours - 1, path=ett, scale="none") if ett else None
    found = {"TMY3 air temperature": weather["Dry-bulb (C)"].to_numpy(float)[:hours]}
    if oil is not None:
        found["ETT oil temperature"] = np.concatenate([oil.start, oil.targets[:, 0]])
    return found | {"simulated load": np.array(load_table(hours)["load"])}


def nc_stream(name: str, **options):
    from nashcast.datasets.catalog import open_stream

    return open_stream(name, **options)


def peers(y: np.ndarray) -> dict[str, np.ndarray]:
    """Forecasts (hours, 24) of each peer, row t from the hours up to t; NaN while there is too little to fit."""
    from statsforecast.models import AutoETS, AutoTheta

    n = len(y)
    naive = np.full((n, H), np.nan)
    for t in range(SEASON - 1, n):
        naive[t] = y[t + 1 - SEASON : t + 1]
    found = {"seasonal naive": naive}
    for name, make in (("AutoETS", AutoETS), ("AutoTheta", AutoTheta)):
        said, model = np.full((n, H), np.nan), None
        for t in range(FITTED - 1, n):
            window = y[t + 1 - FITTED : t + 1]
            if model is None or (t + 1 - FITTED) % REFIT == 0:
                model = make(season_length=SEASON).fit(window)
            said[t] = model.forward(window, H)["mean"]
        found[name] = said
    return found


class Recorded:
    """A forecaster whose forecasts were made before: row t of a table. The first row of a stream is step 1."""

    def __init__(self, said: np.ndarray):
        self.said = said

    def build(self, x_dim: int, y_dim: int) -> BuiltForecaster:
        said = self.said

        class Built(BuiltForecaster):
            accepts_missing = True

            def forecast(self, context, horizon):
                return said[context.noise.step - 1][None, :horizon, None]

        return Built()


def scores(said: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """MASE and CRPS after BURN_IN, over all steps ahead. The bounds learn a forecast when its label is there."""
    coverages = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
    n, intervals = len(y), nc.Intervals(H, coverages=coverages, horizons=np.arange(1, H + 1))
    issued = IssuedLog(intervals.issued(), H + 1)
    ahead = np.full((n, H), np.nan)
    for h in range(1, H + 1):
        ahead[:-h, h - 1] = y[h:]
    said_then, steps = np.full((n, H), np.nan), np.arange(H)
    losses = np.full((n, H), np.nan)
    for t in range(n):
        due = t - 1 - steps  # the rows whose forecasts of this hour are due, one for each step ahead
        known = due >= 0
        said_then[t] = np.where(known, said[np.maximum(due, 0), steps], np.nan)
        intervals.learn(said_then[t], np.full(H, y[t]), issued.at(due, intervals.issued()))
        high = intervals.bounds(np.nan_to_num(said[t]))[:, 1] - np.nan_to_num(said[t])
        issued.add(t, intervals.issued())
        losses[t] = crps(ahead[t], quantiles(said[t], high, intervals.coverages, CRPS_LEVELS), CRPS_LEVELS)
    scale = float(naive_scale(y[:, None], SEASON)[0])
    errors = np.abs(said - ahead)[BURN_IN:] / scale
    return {
        "MASE": float(mean(errors)),
        "CRPS": float(mean(losses[BURN_IN:])),
        "MASE at 24": float(mean(errors[:, -1])),
    }


def federated(y: np.ndarray, agents: list[nc.Agent]) -> np.ndarray:
    federation = nc.Federation(agents, horizon=H, season=SEASON, coverages=())
    return federation.backtest({"y": y}, target="y", progress=False).forecasts[:, :, 0]


def table(y: np.ndarray, told: Callable[[str], None]) -> dict[str, dict[str, float]]:
    said = peers(y)
    told("peers")
    others = [nc.Agent(Recorded(forecasts), name=name) for name, forecasts in said.items()]
    said[OURS] = federated(y, nc.default_agents())
    said[TOGETHER] = federated(y, others + nc.default_agents())
    told("federations")
    return {name: scores(forecasts, y) for name, forecasts in said.items()}


def page(found: dict, hours: int) -> str:
    lines = [
        "# The next 24 hours",
        "",
        f"Generated by `benchmarks/next_24_hours.py`: {hours} hours of each stream, scored after the first {BURN_IN}.",
        "Every method forecasts 24 hours from every hour. MASE: mean absolute error over that of the forecast that a",
        "day repeats the day before; CRPS in the units of the stream, with bounds from each method's own past errors.",
        "",
        "The mixture's rule for several steps ahead was chosen among about ten on the first 1,500 hours of these same",
        "streams: the table describes it and is no evidence on streams it was not chosen on.",
    ]
    for stream, rows in found.items():
        single = [rows[name] for name in rows if name != TOGETHER]
        lines += ["", f"## {stream}", "| method | MASE | MASE, hour 24 | CRPS |", "|---|---:|---:|---:|"]
        lines += [
            f"| {name} | {one['MASE']:.4f} | {one['MASE at 24']:.4f} | {one['CRPS']:.4f} |"
            for name, one in rows.items()
        ]
        both = []
        for key in ("MASE", "CRPS"):
            mine, values = rows[TOGETHER][key], [one[key] for one in single]
            both.append(
                f"{key}: {mine / min(values):.4f} of the best single one, {mine / np.mean(values):.3f} of their mean"
            )
        lines += ["", f"The federation's {'; '.join(both)}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    options.add_argument("--hours", type=int, default=4200, help="hours of each stream (default: 4200)")
    options.add_argument("--ett", type=Path, help="folder with ETTh1.csv; without it that stream is left out")
    options.add_argument("--output", type=Path, default=ROOT / "docs" / "reference" / "next-24-hours.md")
    chosen = options.parse_args()
    warnings.filterwarnings("ignore", module="statsforecast")
    found, begun = {}, time.monotonic()
    for name, y in streams(chosen.hours, chosen.ett).items():
        found[name] = table(y, lambda what, name=name: print(f"{name}: {what} after {time.monotonic() - begun:.0f} s"))
        print(json.dumps(found[name], indent=1), flush=True)
    chosen.output.write_text(page(found, chosen.hours))
    record = {"hours": chosen.hours, "burn_in": BURN_IN, "scores": found}
    (ROOT / "benchmarks" / "results" / "next-24-hours.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
