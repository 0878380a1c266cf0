"""The private-information benchmark in full: simple and rich agents, and the task of published vertical forecasting.

    python benchmarks/private.py [--agents simple,rich] [--streams ett,…] [--places 8] [--jobs 2] [--kept FOLDER]

Runs what `nashcast evaluate --private` runs, with results kept in FOLDER as they come, so that the same command goes
on where it was stopped. Writes benchmarks/results/private.json, docs/private-evaluation.md and docs/images/private/.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from private_information.agents import KINDS
from private_information.methods import contest
from private_information.ratios import PRIVATE_KEYS, private_rows, ratios, summary
from private_information.streams import private_named, private_streams
from private_information.study import study_of
from private_information.vertical import PLACES, vertical_rows

import nashcast
from nashcast.cli.shared.printed import finite
from nashcast.cli.shared.progress import Progress
from nashcast.errors import NashcastError
from nashcast.evaluation.declared import check_streams
from nashcast.evaluation.evaluate import SEEDS, evaluate
from nashcast.records.study import Column, Study, Table, plain
from nashcast.reports.figures import draw
from nashcast.reports.markdown import markdown_table

ROOT = Path(__file__).parents[1]
KEPT, PAGE = ROOT / "benchmarks" / "results" / "private.json", ROOT / "docs" / "private-evaluation.md"
IMAGES = ROOT / "docs" / "images" / "private"
INTRODUCTION = """# Owners with private inputs: what they gain by learning together

Written by `python benchmarks/private.py`; only this paragraph is typed by hand. Every stream's inputs belong to several
owners, each with one agent that sees its owner's inputs and the targets, nothing else. All methods work with the same
agents; the pooled ones, the limits, have every input in one place. How it is done, what the streams are and what each
method is: [the evaluation](reference/evaluation.md#private-information).
"""
VERTICAL = """
## Beside published vertical forecasting

The task of STV ([arXiv 2405.20761](https://arxiv.org/abs/2405.20761)), secret-shared SARIMAX over the features of
several owners, on Air Quality: CO(GT), rows with missing values left out, scaled to [0, 1], the first 80 % of a window
learnt from, the rest forecast one value after the other from the sensors' values of the same hour. STV reports the
accuracy of a centralised fit, so statsmodels' SARIMAX over all sensors in one place stands in for it (order by AIC);
its rounds and bytes are those of pooling the inputs, less than any protocol that hides them. Rounds and bytes are those
of a whole window, seconds those of one window, errors means over windows spread over the recording.
"""
VERTICAL_COLUMNS = [
    Column("window", "rows", "int"), Column("method", "method"), Column("mse", "error", "error"),
    Column("ratio", "÷ SARIMAX", "ratio"), Column("better_on", "windows better", "int"),
    Column("windows", "of", "int"), Column("seconds", "time", "seconds"), Column("rounds", "rounds", "int"),
    Column("bytes", "bytes", "int"),
]  # fmt: skip


def run(kind: str, names: Sequence[str], folder: Path, jobs: int) -> tuple[Study, dict[str, Any]]:
    """The study of one kind of agents, and what is kept of it."""
    named = [private_named(name) for name in names] or private_streams()
    streams, missing = check_streams(named)
    progress = Progress()
    outcomes = evaluate(streams, None, SEEDS[:1], folder / kind, contest=contest(kind), jobs=jobs, progress=progress)
    progress.clear()
    rows = private_rows(outcomes)
    study = study_of(rows, streams, kind, SEEDS[:1], missing)
    shown = [{key: row[key] for key in PRIVATE_KEYS} for row in rows]
    tables = [asdict(table) for table in study.tables[:2]]
    kept = {"seeds": list(study.seeds), "rows": shown, "streams": ratios(rows), "summary": summary(rows)}
    return study, {**kept, "notes": list(study.notes), "tables": tables, "not_run": missing}


def vertical_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    whole = [{**row, **{key: int(row[key]) for key in ("rounds", "bytes")}} for row in rows]
    return Table("One window of Air Quality", VERTICAL_COLUMNS, whole)


def page(record: Mapping[str, Any]) -> str:
    parts = [INTRODUCTION]
    for kind, found in record["agents"].items():
        parts += [f"## {kind.capitalize()} agents\n", *(f"- {note}" for note in found["notes"])]
        parts += [f"\n### {table['title']}\n\n{markdown_table(table)}\n" for table in found["tables"]]
        for figure in found["figures"]:
            parts.append(f"![{figure['title']}](images/private/{figure['file']})\n\n{figure['caption']}\n")
    if record["vertical"]:
        parts += [VERTICAL, markdown_table(vertical_table(record["vertical"])), ""]
    return "\n".join([*parts, f"nashcast {record['version']}, {record['created']}."]) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--agents", default=",".join(KINDS), metavar="LIST", help="kinds of agents (simple,rich)")
    parser.add_argument("--streams", default="", metavar="LIST", help="names of private streams (all)")
    parser.add_argument("--places", type=int, default=PLACES, metavar="N", help="windows of each length (8)")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (2)")
    parser.add_argument(
        "--kept", type=Path, default=ROOT / "build" / "private", metavar="FOLDER", help="results so far"
    )
    return parser.parse_args()


def main() -> None:
    # The matrices of a step are small: threads of the linear algebra would only get into each other's way.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    chosen = arguments()
    names = [name for name in chosen.streams.split(",") if name]
    record: dict[str, Any] = {"version": nashcast.__version__, "created": date.today().isoformat(), "agents": {}}
    for kind in chosen.agents.split(","):
        if kind not in KINDS:
            raise SystemExit(f"--agents: got {kind!r}; pass some of {', '.join(KINDS)}.")
        study, kept = run(kind, names, chosen.kept, chosen.jobs)
        for figure in study.figures:
            draw(figure, study.arrays, IMAGES, f"{kind}-{figure.name}", ("png",))
        figures = [
            {"title": figure.title, "caption": figure.caption, "file": f"{kind}-{figure.name}.png"}
            for figure in study.figures
        ]
        record["agents"][kind] = {**kept, "figures": figures}
    try:
        record["vertical"] = vertical_rows(places=chosen.places)
    except NashcastError as error:
        print(f"no comparison with SARIMAX: {error}")
        record["vertical"] = []
    record = finite(plain(record))
    KEPT.write_text(json.dumps(record, indent=1) + "\n")
    PAGE.write_text(page(record))
    print(f"wrote {KEPT.name} and {PAGE.name}")


if __name__ == "__main__":
    main()
