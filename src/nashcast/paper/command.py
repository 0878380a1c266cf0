"""`nashcast reproduce`: the paper's tables, ablations and figures, compared with nashcast and simple baselines."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from nashcast.cli.report import report_of
from nashcast.cli.shared.argument_types import positive, seeds
from nashcast.cli.shared.printed import print_json
from nashcast.cli.shared.progress import Progress

SUMMARIES = {
    "datasets": "pictures of the five series",
    "table1": "30 lines, with and without the game",
    "validation": "8 lines on later slices, and the one the paper's game loses",
    "lookback": "error over the look-back of the game",
    "frequency": "error over the steps between games, and settings tuned for every tenth",
    "weights": "mixture weights with and without the game",
    "runtime": "seconds of whole runs",
    "relu-growth": "growth of echo-state features with ReLU",
    "normalisation": "echo states on unscaled data",
    "errata": "what each erratum does to the tables",
    "hyperparameters": "every combination of the paper's grids (up to an hour)",
    "pretrain": "train the transformers of Table 1 (hours; each is saved when finished)",
    "all": "everything but pretrain",
}


def add_to(commands) -> None:
    listed = "\n".join(f"  {name:16} {text}" for name, text in SUMMARIES.items())
    reproduce = commands.add_parser(
        "reproduce",
        help="reproduce the paper's tables and figures, with simple baselines for comparison",
        description="Repeat the paper's experiments. Compares printed numbers, nashcast's with the exact game, "
        "persistence, agents anchored without a game, and the best simple baseline.",
        epilog=f"what to reproduce:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reproduce.add_argument("what", choices=list(SUMMARIES), metavar="WHAT", help="see below")
    reproduce.add_argument(
        "--as-published", action="store_true",
        help="also the published code's computation, on its own random draws, which gives the printed digits",
    )  # fmt: skip
    reproduce.add_argument("--models", type=_models, metavar="LIST", help="some of transformer,rfn,esn (default: all)")
    reproduce.add_argument(
        "--seeds", type=seeds, metavar="LIST", help="seeds of the random encoders (default: 2024-2026)"
    )
    reproduce.add_argument(
        "--jobs", type=positive, metavar="N", help="runs at the same time (default: one for each core)"
    )
    reproduce.add_argument(
        "--output", type=Path, default=Path("reproduction"), metavar="FOLDER",
        help="folder of results, records and reports; an interrupted run continues from there (default: %(default)s)",
    )  # fmt: skip
    reproduce.add_argument("--no-report", action="store_true", help="write the record, but no page and no figures")
    reproduce.add_argument("--json", action="store_true", help="print one JSON object with the rows")
    reproduce.set_defaults(run=run)


def _models(text: str) -> tuple[str, ...]:
    known = ("transformer", "rfn", "esn")
    chosen = tuple(part.strip() for part in text.split(",") if part.strip())
    if not chosen or any(part not in known for part in chosen):
        raise argparse.ArgumentTypeError(f"got {text!r}; pass some of {','.join(known)}")
    return tuple(model for model in known if model in chosen)


def run(chosen: argparse.Namespace) -> None:
    from nashcast.paper.parallel_runs import Options
    from nashcast.paper.settings import MODELS, SEEDS
    from nashcast.paper.studies.catalogue import STUDIES, carry_out
    from nashcast.records import study as records

    progress = Progress(shown=not chosen.json)
    if chosen.what == "pretrain":
        _pretrain(progress, chosen.json)
        return
    options = Options(
        chosen.output, chosen.seeds or SEEDS, chosen.models or MODELS, chosen.jobs, chosen.as_published, progress
    )
    names = list(STUDIES) if chosen.what == "all" else [chosen.what]
    collected = {}
    for name in names:
        found = carry_out(name, options, _command(name, chosen))
        progress.clear()
        folder = records.write(chosen.output / name, found.study)
        collected[name] = found.rows
        if not chosen.json:
            _show(found.study)
        written = [] if chosen.no_report else report_of(folder)
        if not chosen.json:
            print(f"  record: {folder}" + (f"   report: {written[0]}" if written else ""), flush=True)
    if chosen.json:
        print_json({"rows": collected[names[0]]} if len(names) == 1 else {"studies": collected})


def _command(name: str, chosen: argparse.Namespace) -> str:
    words = ["nashcast", "reproduce", name]
    words += ["--as-published"] if chosen.as_published else []
    words += ["--models", ",".join(chosen.models)] if chosen.models else []
    words += ["--seeds", ",".join(map(str, chosen.seeds))] if chosen.seeds else []
    return shlex.join(words)


def _show(study) -> None:
    from nashcast.reports.formats import duration
    from nashcast.reports.terminal import text_table

    print(f"\n{study.title}   ({duration(study.seconds)})")
    for table in study.tables:
        print("\n" + text_table(table))
    for note in study.notes:
        print(f"- {note}")


def _pretrain(progress: Progress, as_json: bool) -> None:
    from nashcast.paper.pretrained import EPOCHS, encoder_folder, encoders_for, provenance
    from nashcast.paper.settings import DATASETS

    rows = []
    for causal in (False, True):
        for dataset in DATASETS:
            way = "causal" if causal else "as published"

            def show(agent: int, epoch: int, loss: float, label: str = f"{dataset}, {way}") -> None:
                progress(f"{label}, agent {agent + 1} of 5", epoch, EPOCHS)

            encoders_for(dataset, 5, causal=causal, progress=show)
            rows += [provenance(dataset, agent, causal=causal) for agent in range(5)]
            progress.clear()
            if not as_json:
                losses = ", ".join(f"{row['final_loss']:.3g}" for row in rows[-5:])
                print(f"{dataset}, {way}: 5 encoders, last losses {losses}", flush=True)
    if as_json:
        print_json({"rows": rows})
    else:
        print(f"saved in {encoder_folder()}")
