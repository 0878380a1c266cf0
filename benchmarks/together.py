"""`make figures`: the README's picture and table: owners with private inputs, alone and together.

Runs the streams of `nashcast demo` in full; writes benchmarks/results/together.json, the picture and README.md.
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np

from nashcast.agents.agent import Agent
from nashcast.datasets import Stream, ecb_desks, four_owners
from nashcast.encoders import Lags
from nashcast.evaluation.showcase import owners
from nashcast.federation.federation import Federation
from nashcast.mixing.aggregation import aggregation_rule

mpl.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
KEPT, README, PICTURE = (
    ROOT / "benchmarks" / "results" / "together.json",
    ROOT / "README.md",
    ROOT / "docs/images/together.png",
)
BEGIN, END = "<!-- together: begin (written by `make figures`) -->", "<!-- together: end -->"
STREAMS = {
    "four-owners": "four owners, simulated",
    "ecb-desks": "dollar from five currency desks",
}
LINES = {
    "persistence": "persistence: the last target again",
    "owner": "the best owner alone, chosen in hindsight",
    "ml-poly": "ML-Poly over the owners' forecasts",
    "mixture": "nashcast without the game",
    "together": "**nashcast, together**",
    "pooled": "one model over all inputs, pooled",
}
# Windows of the desks' stream that were tried before one was chosen, and the latest, by their first day.
TRIED, DAYS = ("2003-01-01", "2008-01-01", "2013-01-01", "2018-01-01", "2020-01-01"), 500
LATEST, LATEST_DAYS = "2025-04-07", 400
WINDOW = 50
# Labels of lines that end close together are moved apart.
_APART = {"owner": 1.15, "mixture": 0.85, "together": 1.12, "pooled": 0.82}


def losses(stream: Stream) -> dict[str, np.ndarray]:
    """Squared errors of each line at every step, (steps,)."""
    names = stream.input_names or [f"owner {k}" for k in range(1, stream.inputs.shape[1] + 1)]
    agents, y, start = owners(stream, names), stream.targets, stream.start

    def forecasts(members: list[Agent], **settings) -> np.ndarray:
        federation = Federation(members, start=start, coverages=(), **settings)
        return federation.replay(stream.inputs, y).forecasts

    alone = np.array([forecasts([agent]) for agent in agents])
    last = np.concatenate([start[None], y[:-1]])
    found = {
        "persistence": last,
        "owner": min(alone, key=lambda said: float(np.mean((said - y) ** 2))),
        "ml-poly": mixed(np.concatenate([last[None], alone]), y),
        "mixture": forecasts(agents, game=None),
        "together": forecasts(agents),
        "pooled": forecasts([Agent(Lags(), name="pooled")]),
    }
    return {name: ((said - y) ** 2).mean(axis=1) for name, said in found.items()}


def beside_best_desk(stream: Stream) -> float:
    """The error of all desks together as a multiple of the best one's."""
    agents, y = owners(stream, list(stream.input_names or ())), stream.targets
    errors = [
        float(np.mean((Federation(each, start=stream.start, coverages=()).replay(stream.inputs, y).forecasts - y) ** 2))
        for each in ([agent] for agent in agents)
    ]
    together = Federation(agents, start=stream.start, coverages=()).replay(stream.inputs, y).forecasts
    return float(np.mean((together - y) ** 2)) / min(errors)


def mixed(experts: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """ML-Poly over experts (experts, steps, y_dim)."""
    rule = aggregation_rule("ml-poly", len(experts), targets.shape[1])
    said = np.empty(targets.shape)
    for t, target in enumerate(targets):
        now = experts[:, t]
        said[t] = rule.weights(None, now) @ now
        rule.learn(now, target)
    return said


def block(record: dict) -> str:
    lines = [
        "| mean squared error ÷ persistence's | " + " | ".join(STREAMS.values()) + " |",
        "|---|" + "---:|" * len(STREAMS),
    ]
    for name, words in LINES.items():
        cells = [
            f"{record[stream]['errors'][name] / record[stream]['errors']['persistence']:.3f}" for stream in STREAMS
        ]
        cells = [f"**{cell}**" for cell in cells] if name == "together" else cells
        lines.append(f"| {words} | {' | '.join(cells)} |")
    *tried, latest = (f"{first[:4]} {ratio:.3f}" for first, ratio in record["windows"].items())
    lines += [
        "",
        f"Together ÷ the best desk, on windows of {DAYS} days from: {', '.join(tried)} (shown);",
        f"on the last {LATEST_DAYS} days, from {latest}: one desk explains nearly all there.",
    ]
    return "\n".join(lines)


def readme_with(record: dict, readme: str) -> str:
    head, rest = readme.split(BEGIN)
    return f"{head}{BEGIN}\n{block(record)}\n{END}{rest.split(END)[1]}"


def draw(running: dict[str, list[float]], base: float) -> None:
    # Okabe and Ito's colours, which colour-blind readers can tell apart.
    looks = {
        "persistence": ("#777777", "persistence"), "owner": ("#E69F00", "best owner alone"),
        "mixture": ("#D55E00", "mixture without the game"), "together": ("#0072B2", "together"),
        "pooled": ("#009E73", "all inputs pooled"),
    }  # fmt: skip
    figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
    for name, (colour, label) in looks.items():
        values = np.array(running[name]) / base
        width = 2.4 if name == "together" else 1.3
        axes.semilogy(np.arange(len(values)) + WINDOW, values, color=colour, lw=width, label=label)
        place = (len(values) + WINDOW + 4, values[-1] * _APART.get(name, 1.0))
        axes.annotate(label, place, color=colour, fontsize=9, va="center")
    axes.set(xlabel="step", ylabel=f"mean squared error ÷ persistence's,\nlast {WINDOW} steps")
    axes.set_xlim(WINDOW, WINDOW + len(values) * 1.3)
    axes.set_title("Four owners, each with one of four inputs (simulated)", fontsize=10, loc="left")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE, dpi=130, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    streams, record = {"four-owners": four_owners(), "ecb-desks": ecb_desks()}, {}
    for name, stream in streams.items():
        found = losses(stream)
        record[name] = {"steps": len(stream.targets), "errors": {key: float(v.mean()) for key, v in found.items()}}
        if name == "four-owners":
            running = {key: np.convolve(v, np.ones(WINDOW) / WINDOW, "valid").tolist() for key, v in found.items()}
            draw(running, record[name]["errors"]["persistence"])
    windows = {first: ecb_desks(steps=DAYS, first=first) for first in TRIED}
    windows[LATEST] = ecb_desks(steps=LATEST_DAYS, first=LATEST)
    record["windows"] = {first: round(beside_best_desk(stream), 4) for first, stream in windows.items()}
    KEPT.write_text(json.dumps(record, indent=1) + "\n")
    README.write_text(readme_with(record, README.read_text()))
    print(block(record))


if __name__ == "__main__":
    main()
