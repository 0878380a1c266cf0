"""`nashcast sweep grid.toml`: run many settings of a federation, rank them on the first part, score on the rest."""

from __future__ import annotations

import argparse
import shlex
import time
from pathlib import Path

from nashcast.cli.run import add_file_options, changes_of, command_line, slug, toml
from nashcast.cli.shared.argument_types import positive
from nashcast.cli.shared.colours import title
from nashcast.cli.shared.printed import print_json
from nashcast.cli.shared.progress import Progress


def add_to(commands) -> None:
    sweep = commands.add_parser(
        "sweep",
        help="run many settings of a federation and rank them",
        description="Run every setting of a grid, or a random sample, on several seeds. Settings are ranked on the "
        "first part of the stream (sweep.tune_until) and scored on the rest. Results are saved as runs finish: the "
        "same command continues where it stopped.",
    )
    add_file_options(sweep)
    sweep.add_argument("--jobs", type=positive, metavar="N", help="runs at the same time (default: one for each core)")
    sweep.add_argument("--top", type=positive, default=10, metavar="N", help="settings to show (default: %(default)s)")
    sweep.add_argument("--post-hoc", action="store_true", help="rank on the reported steps; the table says so")
    sweep.add_argument(
        "--cluster", metavar="ADDRESS", help="address of a Dask scheduler to run on (default: this machine)"
    )
    sweep.set_defaults(run=main)


def main(chosen: argparse.Namespace) -> None:
    from nashcast.records.folder import write_record
    from nashcast.records.results import Results
    from nashcast.reports.terminal import text_table
    from nashcast.runs.sweep import load_plan, run_here
    from nashcast.runs.sweep_cluster import run_on_cluster
    from nashcast.runs.sweep_table import gameless_runs, rank, record, row_of, table

    began = time.monotonic()
    plan = load_plan(chosen.file, changes_of(chosen, "steps"), post_hoc=chosen.post_hoc)
    folder = chosen.output or Path("runs") / f"{slug(plan.base.name)}-sweep"
    results = Results(folder)
    results.belong_to(plan.identity())
    runs = [run for config in plan.configs for run in plan.runs(config)]
    progress = Progress()

    def show(done: int, total: int) -> None:
        progress("runs", done, total)

    try:
        if chosen.cluster is not None:
            run_on_cluster(plan, runs, results, chosen.cluster, progress=show)
        else:
            run_here(plan, runs, results, jobs=chosen.jobs, progress=show)
    finally:
        progress.clear()
    ranking = rank(plan, results.done())
    best = ranking.rows[0]
    run_here(plan, gameless_runs(plan, best), results, jobs=chosen.jobs)
    gameless = row_of(plan, best.choice, gameless_runs(plan, best)[0].config, results.done())
    seconds = time.monotonic() - began

    command = command_line(chosen, *(["--post-hoc"] if chosen.post_hoc else []))
    write_record(folder, "sweep", *record(plan, ranking, gameless, command, seconds))
    again = run_again(chosen, best.choice, plan.sweep.seeds[0])
    shown = table(plan, ranking, gameless, chosen.top)
    if chosen.json:
        summary = {"runs": ranking.runs, "diverged": ranking.diverged, "settings": len(ranking.rows)}
        summary |= {"after_the_fact": chosen.post_hoc, "record": str(folder), "best_again": again}
        print_json({"name": plan.base.name, **summary, **shown})
        return
    columns = [c for c in shown["columns"] if c["key"] != "diverged" or any(row["diverged"] for row in shown["rows"])]
    print(title(text_table({**shown, "title": f"{plan.base.name}: {shown['title']}", "columns": columns})))
    if len(ranking.rows) > chosen.top:
        print(f"… and {len(ranking.rows) - chosen.top} more settings: --top {len(ranking.rows)}")
    print(f"{ranking.runs} runs, {ranking.diverged} diverged. Skill: 1 - MSE / persistence's.")
    print(f"run the best: {again}")
    print(f"results: {folder}")


def run_again(chosen: argparse.Namespace, choice: dict, seed: int) -> str:
    """The command that runs one setting alone."""
    changes = dict(chosen.changes) | ({} if chosen.steps is None else {"steps": chosen.steps}) | choice
    words = ["nashcast", "run", chosen.file, "--seed", str(seed)]
    for key, value in changes.items():
        if key.split(".")[0] not in ("sweep", "grid"):
            words += ["--set", f"{key}={toml(value)}"]
    return shlex.join(words)
