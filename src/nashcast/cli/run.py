"""`nashcast run federation.toml`: run a federation described in a file on its stream, and record the run."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

from nashcast.cli.shared import table_file
from nashcast.cli.shared.colours import title
from nashcast.cli.shared.printed import print_json
from nashcast.cli.shared.progress import Progress

WIDTH = 40
SHOWN_AGENTS = 10


def add_to(commands) -> None:
    run = commands.add_parser(
        "run",
        help="run a federation described in a file, or on a table of your own",
        description="Run the federation a TOML file describes on its stream. Prints its error, that without the game "
        "and that of persistence, and its last weights; writes a record of every step. Or run a federation over a CSV "
        "or Parquet file: nashcast run load.csv --target load --date time --horizon 24.",
    )
    add_file_options(run)
    run.add_argument("--no-record", action="store_true", help="write no record")
    run.add_argument("--overwrite", action="store_true", help="replace a record of other settings")
    run.add_argument("--seed", type=int, metavar="N", help="seed (default: the file's)")
    table_file.add_options(run)
    run.set_defaults(run=main)


def add_file_options(command) -> None:
    """Add the arguments that `run` and `sweep` have in common."""
    command.add_argument("file", metavar="FILE", help="TOML file that describes the federation")
    command.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="folder to write to (default: below runs/, by the name in the file)",
    )
    command.add_argument(
        "--steps", type=int, metavar="N", help="number of steps (default: all of the stream, or as the file says)"
    )
    command.add_argument(
        "--set", dest="changes", action="append", default=[], type=change, metavar="KEY=VALUE",
        help="value that replaces the file's, for example agents.features=8 or game=false; may be repeated",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="print one JSON object")


def change(text: str) -> tuple[str, Any]:
    """Parse KEY=VALUE. The value is read as TOML, else as text."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"got {text!r}; write KEY=VALUE, for example agents.features=8")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value


def changes_of(chosen: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Settings of the command line that replace the file's."""
    given = {name: getattr(chosen, name) for name in names}
    return dict(chosen.changes) | {name: value for name, value in given.items() if value is not None}


def slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-") or "run"


def command_line(chosen: argparse.Namespace, *flags: str) -> str:
    """The command line that repeats this run."""
    words = ["nashcast", chosen.command, chosen.file]
    for name in ("seed", "steps"):
        if getattr(chosen, name, None) is not None:
            words += [f"--{name}", str(getattr(chosen, name))]
    for key, value in chosen.changes:
        words += ["--set", f"{key}={toml(value)}"]
    return shlex.join([*words, *flags])


def toml(value: Any) -> str:
    """A value in TOML. Except for tables, the values of settings are written in TOML as in JSON."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {toml(part)}" for name, part in value.items()) + "}"
    return json.dumps(value)


def main(chosen: argparse.Namespace) -> None:
    from nashcast.config.config import load
    from nashcast.runs.single_run import check_folder, run, save

    if chosen.target or not chosen.file.endswith(".toml"):
        table_file.run(chosen)
        return

    config = load(chosen.file, changes_of(chosen, "seed", "steps"))
    folder = chosen.output or Path("runs") / f"{slug(config.name)}-{config.seed}"
    if not chosen.no_record:
        check_folder(folder, config, overwrite=chosen.overwrite)
    progress = Progress()
    try:
        outcome = run(config, command=command_line(chosen), progress=lambda done, total: progress("steps", done, total))
    finally:
        progress.clear()
    if not chosen.no_record:
        save(outcome, folder)
    if chosen.json:
        about = {"record": None if chosen.no_record else str(folder), **outcome.about}
        print_json(about)
        return
    print(title(page(outcome.about)))
    if not chosen.no_record:
        print(f"record: {folder}")
        print(f"report: nashcast report {shlex.quote(str(folder))}")


def page(about: dict) -> str:
    summary = about["summary"]
    base = summary["persistence_mse"]
    lines = [
        f"{about['name']}: {about['stream']['name']}, {summary['steps']} steps, seed {about['seed']}",
        f"  {'':{WIDTH}}{'MSE':>12}{'skill':>10}   skill: 1 - MSE / persistence's",
        error_line(f"federation, {kind_of(about['settings'])}", summary["mse"], base),
    ]
    lines += [error_line(f"federation, {name}", error, base) for name, error in summary["baselines"].items()]
    lines.append(error_line("persistence", base, base))
    agents = summary["agents_mse"]
    lines.append("  each member's own forecasts:")
    lines += [error_line(f"  {name}", error, base) for name, error in list(agents.items())[:SHOWN_AGENTS]]
    weights = [f"{name}: {weight:.3f}" for name, weight in summary["last_weights"].items()][:SHOWN_AGENTS]
    if len(agents) > SHOWN_AGENTS:
        lines.append(f"    … and {len(agents) - SHOWN_AGENTS} more, in the record")
        weights.append("…")
    lines.append(f"  last weights: {', '.join(weights)}")
    if "horizon_mse" in summary:
        pairs = list(zip(summary["horizon_mse"], summary["horizon_persistence_mse"], strict=True))
        lines.append(f"  by steps ahead, beside persistence over as many steps (1 to {len(pairs)}):")
        some = [h for h in (1, 2, 3, 6, 12, 24, 48, 96, 168) if h < len(pairs)] + [len(pairs)]
        lines += [error_line(f"  {h} ahead", *pairs[h - 1]) for h in some]
    if "online_because" in summary:
        lines.append(f"  run online, step by step ({summary['online_because']})")
    lines += [f"    {name} sat out {steps} steps" for name, steps in summary.get("absences", {}).items()]
    return "\n".join(lines)


def kind_of(settings: dict) -> str:
    """A short description of the settings that distinguish this federation."""
    paper = settings.get("paper")
    if paper is None:
        return "game" if settings["game"] else "no game"
    if paper["lookback"]:
        return f"game, look-back {paper['lookback']}, every {paper['every']}"
    return "anchored, no game" if paper["anchored"] else "no game"


def error_line(label: str, error: float, base: float) -> str:
    from nashcast.runs.single_run import diverged, skill

    if diverged(error, base):
        return f"  {label[:WIDTH]:{WIDTH}}{'diverges':>12}{'–':>10}"
    part = skill(error, base)
    return f"  {label[:WIDTH]:{WIDTH}}{error:12.3e}{'–' if part is None else f'{part:.3f}':>10}"
