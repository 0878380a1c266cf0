"""The federation with and without its game on all declared streams, beside 0.1, persistence and ML-Poly.

    python benchmarks/federation.py [--streams periodic,sunspots] [--seeds 2024-2026] [--jobs 2]

Prints a table. A run over all streams also writes benchmarks/results/federation.json and
docs/federation-evaluation.md. ML-Poly mixes the experts of the federation that plays. Errors are those after the
warm-up, means over seeds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Sequence
from datetime import date
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np

import nashcast
from nashcast.evaluation.declared import Declared, check_streams, declared_streams, warmup_share
from nashcast.evaluation.federation_methods import federation
from nashcast.evaluation.method import problem_of
from nashcast.evaluation.peers.experts import expert_forecasts
from nashcast.evaluation.prequential import forecast_all, warmup_steps
from nashcast.evaluation.statistics.significance import diebold_mariano
from nashcast.mixing.aggregation import aggregation_rule
from nashcast.records.study import Column, Table
from nashcast.reports.markdown import markdown_table
from nashcast.reports.terminal import text_table

ROOT = Path(__file__).parents[1]
KEPT, PAGE = ROOT / "benchmarks" / "results" / "federation.json", ROOT / "docs" / "federation-evaluation.md"
BEFORE = (ROOT / "benchmarks" / "results" / "evaluation.json", ROOT / "benchmarks" / "results" / "held-out.json")
TOGETHER, ALONE, ML_POLY, PERSISTENCE = "federation", "no_game", "ml_poly", "persistence"
SURE = 0.05
COLUMNS = [
    Column("stream", "stream"), Column("steps", "steps", "int"), Column("mse", "error", "error"),
    Column("to_before", "÷ 0.1", "ratio"), Column("to_persistence", "÷ persistence", "ratio"),
    Column("to_ml_poly", "÷ ML-Poly", "ratio"), Column("to_no_game", "÷ no game", "ratio"), Column("p", "p", "ratio"),
]  # fmt: skip
INTRODUCTION = """# The federation of 0.2 on all declared streams

Written by `python benchmarks/federation.py`; only this paragraph is typed by hand. The default federation on the 16
streams of [0.1's evaluation](evaluation.md) and the 19 that [0.1 held out](held-out.md), which have been seen since:
this is no untouched test. Errors are mean squared errors after the warm-up, means over seeds. ÷ 0.1: as a multiple of
the error that 0.1's default federation made. ÷ ML-Poly: of ML-Poly over the same experts. ÷ no game: of the same agents
without the joint game, with the Diebold–Mariano p of the difference, two-sided.
"""


def work(task: tuple[Declared, int]) -> dict[str, Any]:
    """Losses of every step, (steps,), of the federation, of itself without the game, and of ML-Poly."""
    declared, seed = task
    stream = declared.open()
    problem = problem_of(stream)
    together, losses = federation(problem, seed), {TOGETHER: [], ML_POLY: []}
    rule = None
    for x, y in zip(stream.inputs, stream.targets, strict=True):
        forecast = np.atleast_1d(together.predict_one(x))
        said = expert_forecasts(together, x)[:, 0].T
        rule = rule or aggregation_rule("ml-poly", len(said), problem.y_dim)
        losses[TOGETHER].append(np.mean((forecast - y) ** 2))
        losses[ML_POLY].append(np.mean((rule.weights(None, said) @ said - y) ** 2))
        rule.learn(said, y)
        together.learn_one(x, y)
    alone, _ = forecast_all(federation(problem, seed, game=False), stream)
    last = np.concatenate([stream.start[None], stream.targets[:-1]])
    found = {name: np.array(values) for name, values in losses.items()}
    found |= {ALONE: _losses(alone, stream.targets), PERSISTENCE: _losses(last, stream.targets)}
    return {"stream": declared, "seed": seed, "losses": found}


def _losses(forecasts: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return ((forecasts - targets) ** 2).mean(axis=1)


def row_of(declared: Declared, parts: Sequence[dict[str, Any]], before: dict[str, float]) -> dict[str, Any]:
    """One stream. parts: one for each seed."""
    warmup = warmup_steps(declared.open(), warmup_share())
    losses = {name: np.mean([part["losses"][name][warmup:] for part in parts], axis=0) for name in parts[0]["losses"]}
    errors = {name: float(values.mean()) for name, values in losses.items()}
    mse = errors[TOGETHER]

    others = {
        "before": before.get(declared.label), "persistence": errors[PERSISTENCE], "ml_poly": errors[ML_POLY],
        "no_game": errors[ALONE],
    }  # fmt: skip
    # In means, an error below a thousandth of persistence's counts as that: one exact stream must not decide.
    least = errors[PERSISTENCE] / 1000.0
    means = {f"mean_{key}": None if e is None else max(mse, least) / max(e, least) for key, e in others.items()}
    ratios = {f"to_{key}": mse / e if e else None for key, e in others.items()}
    return {
        "stream": declared.label, "steps": len(declared.open().targets), "mse": mse,
        **ratios, **means,
        "p": diebold_mariano(losses[TOGETHER], losses[ALONE])[1],
    }  # fmt: skip


def errors_before() -> dict[str, float]:
    """After the warm-up, by stream, of 0.1's default federation."""
    rows = [row for path in BEFORE for row in json.loads(path.read_text())["tables"][0]["rows"]]
    return {row["stream"]: row["federation"] for row in rows}


def table(rows: Sequence[dict[str, Any]], seeds: Sequence[int]) -> Table:
    words = f"seeds {', '.join(map(str, seeds))}"
    return Table(f"The federation's error after the warm-up, {words}", COLUMNS, list(rows))


def notes(rows: Sequence[dict[str, Any]]) -> list[str]:
    found = []
    for key, words in {
        "before": "0.1's federation", "persistence": "persistence", "ml_poly": "ML-Poly over the same experts",
        "no_game": "itself without the game",
    }.items():  # fmt: skip
        ratios = [row[f"mean_{key}"] for row in rows if row[f"mean_{key}"] is not None]
        if ratios:
            mean = exp(sum(map(log, ratios)) / len(ratios))
            better = sum(row[f"to_{key}"] is not None and row[f"to_{key}"] < 1.0 for row in rows)
            found.append(f"Beside {words}: geometric mean {mean:.3f}, better on {better} of {len(ratios)} streams.")
    sure = [row for row in rows if row["p"] is not None and row["p"] < SURE and row["to_no_game"] is not None]
    better = sum(row["to_no_game"] < 1.0 for row in sure)
    found.append(
        f"The game lowers the error with p < {SURE} on {better} streams and raises it on {len(sure) - better}."
    )
    return found


def page(record: dict[str, Any]) -> str:
    shown = markdown_table(table(record["rows"], record["seeds"]))
    lines = [INTRODUCTION, *(f"- {note}" for note in record["notes"]), "", shown, ""]
    lines += [f"Not run: {name} ({why})." for name, why in record["not_run"].items()]
    return "\n".join([*lines, f"nashcast {record['version']}, {record['created']}."]) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--streams", metavar="LIST", help="names of declared streams (default: all)")
    parser.add_argument("--seeds", default="2024-2026", metavar="A-B", help="seeds (default: 2024-2026)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: 2)")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    declared = [*declared_streams(), *declared_streams(held_out=True)]
    if chosen.streams:
        wanted = chosen.streams.split(",")
        unknown = set(wanted) - {each.label for each in declared}
        if unknown:
            raise SystemExit(f"--streams: got {', '.join(sorted(unknown))}; pass names of declared streams.")
        declared = [each for each in declared if each.label in wanted]
    streams, missing = check_streams(declared)
    first, _, last = chosen.seeds.partition("-")
    seeds = list(range(int(first), int(last or first) + 1))
    # The longest first, so that no long one is left at the end.
    tasks = sorted(((each, seed) for each in streams for seed in seeds), key=lambda task: -task[0].open().targets.size)
    # The matrices of a step are small: threads of the linear algebra would only get into each other's way.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parts: dict[str, list[dict[str, Any]]] = {each.label: [] for each in streams}
    with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
        for done, part in enumerate(pool.imap_unordered(work, tasks), start=1):
            parts[part["stream"].label].append(part)
            print(f"{done} of {len(tasks)}: {part['stream'].label}, seed {part['seed']}", flush=True)
    before = errors_before()
    rows = [row_of(each, parts[each.label], before) for each in streams]
    print("\n" + text_table(table(rows, seeds)))
    print("\n".join(f"- {note}" for note in notes(rows)))
    if chosen.streams:
        return
    record = {
        "version": nashcast.__version__, "created": date.today().isoformat(), "seeds": seeds, "rows": rows,
        "notes": notes(rows), "not_run": missing,
    }  # fmt: skip
    KEPT.write_text(json.dumps(record, indent=1) + "\n")
    PAGE.write_text(page(record))
    print(f"wrote {KEPT.name} and {PAGE.name}")


if __name__ == "__main__":
    main()
