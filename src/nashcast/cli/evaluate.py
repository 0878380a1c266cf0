"""`nashcast evaluate`: compare the federation with its parts and its peers, on the same streams by the same loop."""

from __future__ import annotations

import argparse
import shlex
import time
from dataclasses import replace
from pathlib import Path

from nashcast.cli.report import report_of
from nashcast.cli.shared import table_file
from nashcast.cli.shared.argument_types import positive, seeds
from nashcast.cli.shared.checkout import from_checkout
from nashcast.cli.shared.colours import title
from nashcast.cli.shared.printed import print_json
from nashcast.cli.shared.progress import Progress
from nashcast.errors import InvalidInput


def add_to(commands) -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="compare the federation with its parts and its peers",
        description="Run the federation, its ablations, each of its agents alone, simple baselines and models of other "
        "packages step by step on the same streams, and compare them. Settings are chosen on the first fifth of each "
        "stream or fixed beforehand; methods are scored on the rest. Results are saved as runs finish: the same "
        "command continues where it stopped.",
    )
    group = evaluate.add_mutually_exclusive_group()
    group.add_argument("--paper", action="store_true", help="only the paper's streams")
    group.add_argument(
        "--held-out", action="store_true",
        help="instead, the streams that were declared when the default federation was final (nashcast[recordings])",
    )  # fmt: skip
    group.add_argument(
        "--fresh", action="store_true",
        help="instead, the streams declared by a written rule before any method ran on them; get their files "
        "with nashcast data fetch fresh",
    )  # fmt: skip
    group.add_argument(
        "--private", action="store_true",
        help="instead, in a source checkout: streams with inputs of several owners, and the owners' gain from "
        "learning together",
    )  # fmt: skip
    evaluate.add_argument(
        "--owner-agents", choices=("simple", "rich"), default="simple",
        help="with --private, the owners' agents: linear ones, or all families of encoders (default: %(default)s)",
    )  # fmt: skip
    evaluate.add_argument(
        "--stream", action="append", default=[], metavar="NAME|FILE",
        help="stream, or CSV or Parquet file, instead of the declared streams; may be repeated",
    )  # fmt: skip
    evaluate.add_argument(
        "--target",
        metavar="COLUMN",
        help="file: column to forecast; required with the table options below (default: its last column)",
    )
    evaluate.add_argument(
        "--lags", type=positive, metavar="N", help="file: number of past rows in the inputs (default: 3)"
    )
    evaluate.add_argument(
        "--methods", type=_words, metavar="LIST",
        help="some of ours,agents,baselines,experts,river,reservoirpy,statsforecast,sktime (with --private: ours,"
        "agents,experts,pooled), or names of methods; the federation and persistence are always included "
        "(default: all)",
    )  # fmt: skip
    evaluate.add_argument(
        "--federation-only",
        action="store_true",
        help="only the federation, the federation without its game, and persistence",
    )
    evaluate.add_argument(
        "--seeds",
        type=seeds,
        metavar="LIST",
        help="seeds of stochastic methods, e.g. 2024,2030-2049 (default: 2024-2026; with --private: 2024)",
    )
    evaluate.add_argument(
        "--jobs", type=positive, metavar="N", help="runs at the same time (default: one for each core)"
    )
    evaluate.add_argument(
        "--output", type=Path, metavar="FOLDER",
        help="folder of results, record and report (default: evaluation; with --private: private-evaluation)",
    )  # fmt: skip
    evaluate.add_argument("--no-report", action="store_true", help="write the record, but no page and no figures")
    evaluate.add_argument("--json", action="store_true", help="print one JSON object with the rows")
    table_file.add_options(evaluate, target=False)
    evaluate.set_defaults(run=run)


def _words(text: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not words:
        raise argparse.ArgumentTypeError(f"got {text!r}; pass names, separated by commas")
    return words


def run(chosen: argparse.Namespace) -> None:
    from nashcast.evaluation.evaluate import SEEDS
    from nashcast.evaluation.federation_methods import WITHOUT_GAME
    from nashcast.records import study as records

    begun = time.monotonic()
    of_file = bool(chosen.horizon or chosen.date or chosen.inputs or chosen.agents)
    if chosen.private and (of_file or chosen.target or chosen.lags):
        raise InvalidInput("--private", "options of a file with it", "Omit them: a file has no owners.")
    if of_file:
        if len(chosen.stream) != 1:
            raise InvalidInput(
                "--stream", f"{len(chosen.stream)} streams", "Pass one file: --stream FILE --target COLUMN."
            )
        table_file.evaluate(chosen.stream[0], chosen)
        return
    if chosen.federation_only and chosen.methods:
        raise InvalidInput("--federation-only", "--methods with it", "Pass one of them.")
    methods = (WITHOUT_GAME,) if chosen.federation_only else chosen.methods
    chosen.output = chosen.output or Path("private-evaluation" if chosen.private else "evaluation")
    used = chosen.seeds or (SEEDS[:1] if chosen.private else SEEDS)
    progress = Progress(shown=not chosen.json)
    run_all = from_checkout("benchmarks", "private_information.command").evaluated if chosen.private else _peers
    study, found = run_all(chosen, methods, used, progress)
    study = replace(study, command=_command(chosen), seconds=time.monotonic() - begun)
    folder = records.write(chosen.output, study)
    written = [] if chosen.no_report else report_of(folder)
    if chosen.json:
        print_json({**found, "record": str(folder)})
        return
    _show(study)
    print(f"record: {folder}" + (f"   report: {written[0]}" if written else ""))


def _peers(chosen: argparse.Namespace, methods, seeds, progress: Progress):
    """The evaluation against peers: its study, and the object printed as JSON."""
    from nashcast.evaluation.declared import (
        check_streams,
        declared_streams,
        fresh_streams,
        stream_named,
    )
    from nashcast.evaluation.evaluate import evaluate
    from nashcast.evaluation.rows import KEYS, head_to_head, summary
    from nashcast.evaluation.statistics.comparison import comparison
    from nashcast.evaluation.study import rows_of, steps_of, study_of

    named = [stream_named(text, chosen.target, chosen.lags) for text in chosen.stream]
    if chosen.fresh:
        named = fresh_streams() + named
    elif chosen.paper or chosen.held_out or not named:
        named = declared_streams(paper_only=chosen.paper, held_out=chosen.held_out) + named
    streams, missing = check_streams(list(dict.fromkeys(named)))
    outcomes = evaluate(streams, methods, seeds, chosen.output, jobs=chosen.jobs, progress=progress)
    progress.clear()
    rows = rows_of(outcomes)
    found = {"rows": plain_rows(rows, KEYS), "summary": summary(rows), "peers": head_to_head(rows), "not_run": missing}
    found["comparison"] = comparison(rows, steps_of(outcomes))
    return study_of(outcomes, seeds, missing), found


def plain_rows(rows, keys) -> list[dict]:
    return [{key: row[key] for key in keys} | ({"why": row["why"]} if row["why"] else {}) for row in rows]


def _command(chosen: argparse.Namespace) -> str:
    words = ["nashcast", "evaluate"]
    words += ["--paper"] if chosen.paper else []
    words += ["--held-out"] if chosen.held_out else []
    words += ["--fresh"] if chosen.fresh else []
    words += ["--private", "--owner-agents", chosen.owner_agents] if chosen.private else []
    for text in chosen.stream:
        words += ["--stream", text]
    words += ["--target", chosen.target] if chosen.target else []
    words += ["--lags", str(chosen.lags)] if chosen.lags else []
    words += ["--methods", ",".join(chosen.methods)] if chosen.methods else []
    words += ["--federation-only"] if chosen.federation_only else []
    words += ["--seeds", _ranges(chosen.seeds)] if chosen.seeds else []
    return shlex.join(words)


def _ranges(seeds: tuple[int, ...]) -> str:
    """Seeds in the form that `argument_types.seeds` reads: 2024-2026,2030."""
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _show(study) -> None:
    from nashcast.reports.formats import duration
    from nashcast.reports.terminal import text_table

    # The summary tables come last, so that they stay on the screen.
    general = [table for table in study.tables if table.title not in study.settings["streams"]]
    for table in [table for table in study.tables if table not in general] + general:
        print("\n" + title(text_table(table)))
    print(f"\n{study.title}   ({duration(study.seconds)})")
    for note in study.notes:
        print(f"- {note}")
