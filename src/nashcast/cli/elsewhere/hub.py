"""`nashcast hub federation.toml`: run the hub of a federation with remote agents."""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
from pathlib import Path

from nashcast.cli.run import add_file_options, changes_of, command_line, error_line, slug
from nashcast.cli.shared.colours import title
from nashcast.cli.shared.printed import print_json
from nashcast.cli.shared.progress import Progress


def add_to(commands) -> None:
    hub = commands.add_parser(
        "hub",
        help="run the hub of a federation with remote agents",
        description="Run the hub that a TOML file describes. It sends the steps of its stream to the connected agents, "
        "through its own broker or a running one. After a stop or a crash the same command continues the run.",
    )
    add_file_options(hub)
    hub.add_argument("--fresh", action="store_true", help="start from the beginning, even if a run was interrupted")
    hub.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    from nashcast.config.hub_config import load
    from nashcast.runs.hub_run import run_hub
    from nashcast.runs.single_run import save

    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("nashcast.remote").setLevel(logging.INFO)
    config = load(chosen.file, changes_of(chosen, "steps"))
    folder = chosen.output or Path("runs") / slug(config.name)
    progress = Progress()

    def say(line: str) -> None:
        progress.clear()
        print(line, file=sys.stderr, flush=True)

    try:
        outcome = run_hub(
            config, folder, fresh=chosen.fresh, command=command_line(chosen), say=say,
            progress=lambda done, total: progress("steps", done, total),
        )  # fmt: skip
    except KeyboardInterrupt:
        say(f"stopped; the same command continues the run ({folder})")
        raise
    finally:
        progress.clear()
    save(outcome, folder)
    if chosen.json:
        print_json({"record": str(folder), **outcome.about})
        return
    print(title(page(outcome.about)))
    print(f"record: {folder}")
    print(f"report: nashcast report {shlex.quote(str(folder))}")


def page(about: dict) -> str:
    summary = about["summary"]
    base, steps, traffic, times = (summary[key] for key in ("persistence_mse", "steps", "traffic", "step_ms"))
    lines = [
        f"{about['name']}: {about['stream']['name']}, {steps} steps",
        error_line("federation", summary["mse"], base),
        error_line("persistence", base, base),
        f"  {'agent':24}{'MSE':>12}{'last weight':>14}{'sat out':>10}",
    ]
    for name, error in summary["agents_mse"].items():
        lines.append(f"  {name:24}{error:12.3e}{summary['last_weights'][name]:14.3f}{summary['absences'][name]:10}")
    lines.append(f"  a forecast took {times['p50']:.1f} ms (median), {times['p99']:.1f} ms (99 %)")
    lines.append(f"  since it started: {traffic['turns']} turns, {traffic['down']:,} bytes down, {traffic['up']:,} up")
    games = summary["games"]
    if about["settings"]["game"]:
        lines.append(
            f"  since it started: {games['games']} games, {games['fallbacks']} steps without a game that was due"
        )
        lines += [f"    {count} × {reason}" for reason, count in games["why"].items()]
    return "\n".join(lines)
