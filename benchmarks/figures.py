"""`make figures`: the picture of docs/reference/measured.md: one game on a series that breaks, and game speed."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
from drifting_game import BREAK, drifting_game

from nashcast.games.lookback.game import solve_game

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"


def draw_game(axes) -> None:
    lookback = 8
    game = drifting_game(lookback=lookback)
    solved = solve_game(*game.arguments(), **game.settings())
    mixture = np.einsum("tn,tnp->tp", game.weights, solved.forecasts[1:])[:, 0]
    last = len(game.series) - 1
    window = np.arange(last - lookback + 1, last + 1)
    axes.axvspan(window[0] - 1, last, color=GREY, alpha=0.12, lw=0)
    axes.plot(np.arange(30, last + 1), game.series[30:], color="black", lw=1.5, label="series")
    for i in range(len(game.names)):
        label = "five agents" if i == 0 else None
        axes.plot([window[0] - 1, *window], solved.forecasts[:, i, 0], color=BLUE, lw=0.8, alpha=0.7, label=label)
    axes.plot(window, game.greedy, "o:", color=ORANGE, ms=4, lw=1, label="mixture, forecast at the time")
    axes.plot(window, mixture, "s-", color=GREEN, ms=4, lw=1.5, label="mixture at the equilibrium, in hindsight")
    axes.axvline(BREAK, color=GREY, lw=0.8, ls="--")
    axes.set(xlabel="step", title="A look-back game after the series has broken", xlim=(30, last + 0.5))
    axes.legend(frameon=False, fontsize=8, loc="lower left")


def draw_speed(axes) -> None:
    rows = json.loads((ROOT / "benchmarks" / "results" / "game.json").read_text())["rows"]
    chosen = [row for row in rows if row["lookback"] == 3 and row["features"] == 3]
    for noisy, colour, name in ((False, BLUE, "deterministic"), (True, GREEN, "random features")):
        ours = sorted((row["agents"], row["seconds_per_game"]) for row in chosen if row["noisy"] == noisy)
        axes.loglog(*zip(*ours, strict=True), "o-", color=colour, ms=4, label=f"nashcast, {name}")
    dense = sorted((row["agents"], row["dense_seconds"]) for row in chosen if row["dense_seconds"] and row["noisy"])
    axes.loglog(*zip(*dense, strict=True), "s--", color=ORANGE, ms=4, label="the paper's dense matrices")
    axes.set(xlabel="agents", ylabel="seconds a game", title="Exact equilibrium, look-back 3, 3 features")
    axes.grid(alpha=0.25, which="major")
    axes.legend(frameon=False, fontsize=8)


def main() -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    draw_game(left)
    draw_speed(right)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    path = ROOT / "docs" / "images" / "game.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    print(f"wrote {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
