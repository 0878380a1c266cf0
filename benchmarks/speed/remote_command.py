"""`nashcast bench remote`: steps with agents in processes of their own, beside the bare round trip in the same run."""

from __future__ import annotations

import argparse

from nashcast.cli.shared.printed import print_json

SPEED = (
    "agents",
    "game",
    "masked",
    "state files",
    "rounds",
    "step p50",
    "p99",
    "bare p50",
    "p99",
    "p50 ratio",
    "p99 ratio",
    "aim",
    "bytes up",
    "down",
)
TRAFFIC = ("game", "features", "messages out", "in", "bytes out", "in")
EQUALITY = ("game", "agents", "steps", "games", "absences", "greatest difference", "step p50", "p99")
PARTS = ("equality", "speed", "traffic")


def add_to(kinds) -> None:
    remote = kinds.add_parser(
        "remote",
        help="time per step with agents in other processes, over a real broker",
        description="Agents in processes of their own, an embedded broker, TLS on both sides: time per step beside the "
        "bare round trip over the same connections in the same run, messages and bytes per step, and the difference "
        "from the same run in one process.",
    )
    remote.add_argument("--json", action="store_true", help="print one JSON object with the rows of all tables")
    remote.add_argument(
        "--agents",
        type=_count,
        nargs="+",
        default=[2, 5, 20, 50],
        metavar="N",
        help="numbers of agents (default: 2 5 20 50)",
    )
    remote.add_argument(
        "--steps", type=_count, default=300, metavar="N", help="steps to time in each case (default: %(default)s)"
    )
    remote.add_argument(
        "--equal-steps",
        type=_count,
        default=2000,
        metavar="N",
        help="steps to compare with one process (default: %(default)s)",
    )
    remote.add_argument("--game", choices=("joint", "central", "spread"), help="only one of the games")
    remote.add_argument("--only", choices=PARTS, help="only one of the tables")
    remote.set_defaults(run=run)


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 100_000:
        raise argparse.ArgumentTypeError(f"got {value}; pass a number from 1 to 100000")
    return value


def run(chosen: argparse.Namespace) -> None:
    from speed.remote_steps import rows

    found: dict[str, list] = {}
    parts = PARTS if chosen.only is None else (chosen.only,)
    for part, row in rows(parts, chosen.agents, chosen.steps, chosen.equal_steps, chosen.game):
        if not chosen.json:
            if part not in found:
                print("\n".join([*([""] if found else []), *table_head(part)]), flush=True)
            print(line(part, row), flush=True)
        found.setdefault(part, []).append(row)
    if chosen.json:
        print_json(found)


def table_head(part: str) -> list[str]:
    names = {"speed": SPEED, "traffic": TRAFFIC, "equality": EQUALITY}[part]
    return ["| " + " | ".join(names) + " |", "|" + "---:|" * len(names)]


def line(part: str, row: dict) -> str:
    cells = {"speed": _speed, "traffic": _traffic, "equality": _equality}[part](row)
    return "| " + " | ".join(map(str, cells)) + " |"


def _speed(row: dict) -> tuple:
    times = [f"{value:.2f} ms" for value in (*row["step_ms"], *row["bare_ms"])]
    ratios = [f"{value:.1f}" for value in row["ratio"]]
    masked, states = ("yes" if row[name] else "no" for name in ("masked", "states"))
    sizes = [f"{row[name]:.0f}" for name in ("bytes_up", "bytes_down")]
    return (
        row["agents"],
        row["game"],
        masked,
        states,
        f"{row['rounds']:.2g}",
        *times,
        *ratios,
        f"≤ {row['aim']:g}",
        *sizes,
    )


def _traffic(row: dict) -> tuple:
    counts = [f"{value:g}" for value in row["messages"]]
    return row["game"], row["features"], *counts, *(f"{value:,.0f}" for value in row["bytes"])


def _equality(row: dict) -> tuple:
    times = [f"{value:.2f} ms" for value in row["step_ms"]]
    counts = (row["agents"], row["steps"], row["games"], row["absences"])
    return row["game"], *counts, f"{row['difference']:.0e}" if row["difference"] else "0", *times
