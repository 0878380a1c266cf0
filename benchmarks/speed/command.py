"""`nashcast bench`: time per game, beside the dense theorem and one pass over the data; and time per step of a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from nashcast.cli.shared.parsing import Parser
from nashcast.cli.shared.printed import print_json
from nashcast.reports.formats import duration
from speed import remote_command, serve_command

HEADINGS = (
    "agents",
    "lookback",
    "features",
    "noisy",
    "compiled",
    "from Python",
    "dense",
    "dense ÷ ours",
    "floor ×",
    "MB",
)


def main(arguments: Sequence[str]) -> None:
    chosen = parser().parse_args(arguments)
    chosen.run(chosen)


def parser() -> Parser:
    top = Parser(prog="nashcast bench", description="Measure speed on this machine.")
    kinds = top.add_subparsers(dest="kind", metavar="WHAT", required=True)
    game = kinds.add_parser(
        "game",
        help="time per game at the paper's sizes, and growth with the number of agents",
        description="Time per game at the paper's sizes (2 and 5 agents, look-back 1 to 5, 1 to 12 features) and its "
        "growth from 10³ agents on, beside the dense theorem and one pass over the data in the same run.",
    )
    game.add_argument("--json", action="store_true", help="print one JSON object with the rows")
    game.add_argument("--only", choices=["paper", "growth"], help="only the paper's sizes, or only growth")
    game.add_argument(
        "--largest",
        type=_agents,
        default=1_000_000,
        metavar="N",
        help="greatest number of agents (default: %(default)s)",
    )
    game.add_argument(
        "--seconds", type=_seconds, default=0.2, metavar="S", help="seconds spent on each figure (default: %(default)s)"
    )
    game.set_defaults(run=run)
    replay = kinds.add_parser(
        "replay",
        help="time per step of whole runs, replayed and online, and of a sweep",
        description="Time per step of whole runs at the paper's sizes: replayed in compiled code, online, and a sweep "
        "of many settings on all cores.",
    )
    replay.add_argument("--json", action="store_true", help="print one JSON object with the rows")
    replay.add_argument(
        "--sweep", type=int, default=1000, metavar="N", help="settings in the sweep, 0 for none (default: %(default)s)"
    )
    replay.set_defaults(run=run_replay)
    remote_command.add_to(kinds)
    serve_command.add_to(kinds)
    return top


def _agents(text: str) -> int:
    value = int(text)
    if value < 10_000:
        raise argparse.ArgumentTypeError(f"got {value}; pass at least 10000, since growth starts at 1000")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= 60:
        raise argparse.ArgumentTypeError(f"got {value:g}; pass a number of seconds between 0 and 60")
    return value


def run_replay(chosen: argparse.Namespace) -> None:
    from speed import replays

    rows = []
    for row in replays.measure(sweep=max(chosen.sweep, 0)):
        rows.append(row)
        if not chosen.json:
            per_step = duration(row["us_per_step"] * 1e-6)
            print(f"{row['case']:72}{duration(row['seconds']):>10}{per_step:>12} a step", flush=True)
    if chosen.json:
        print_json({"rows": rows})


def run(chosen: argparse.Namespace) -> None:
    from speed import games

    cases = []
    if chosen.only != "growth":
        cases += games.paper_cases()
    if chosen.only != "paper":
        cases += games.growth_cases(chosen.largest)
    rows = []
    for row in games.measure(cases, seconds=chosen.seconds):
        rows.append(row)
        if not chosen.json:
            if len(rows) == 1:
                print("\n".join(table_head()))
            print(line(row), flush=True)
        elif sys.stderr.isatty():
            print(f"\r{len(rows)} of {len(cases)}", end="", file=sys.stderr, flush=True)
    if chosen.json:
        print_json({"rows": rows})
    elif chosen.only != "paper":
        for noisy in (False, True):
            kind = "noisy" if noisy else "deterministic"
            print(f"growth exponent, {kind}: {games.growth_exponent(rows, noisy):.2f}")


def table_head() -> list[str]:
    return ["| " + " | ".join(HEADINGS) + " |", "|" + "---:|" * len(HEADINGS)]


def line(row: dict) -> str:
    dense = row["dense_seconds"]
    cells = (
        f"{row['agents']:,}",
        row["lookback"],
        row["features"],
        "yes" if row["noisy"] else "no",
        duration(row["seconds_per_game"]),
        duration(row["seconds_from_python"]),
        "–" if dense is None else duration(dense),
        "–" if dense is None else f"{dense / row['seconds_per_game']:,.0f}",
        f"{row['floor_ratio']:.1f}",
        "–" if row["peak_mb"] is None else f"{row['peak_mb']:,.0f}",
    )
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
