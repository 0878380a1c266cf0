"""`nashcast bench`: measure speed. The measurements are in `benchmarks/speed` of a source checkout."""

from __future__ import annotations

import argparse

from nashcast.cli.shared.checkout import from_checkout


def add_to(commands) -> None:
    bench = commands.add_parser(
        "bench", help="measure speed (source checkout only)",
        description="Measure speed on this machine: a game, a replay, steps with remote agents, or a service.",
    )  # fmt: skip
    bench.add_argument(
        "kind", metavar="WHAT", choices=["game", "replay", "remote", "serve"], help="game, replay, remote or serve"
    )
    bench.add_argument(
        "arguments", metavar="…", nargs=argparse.REMAINDER, help="options of the measurement; --help lists them"
    )
    bench.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    from_checkout("benchmarks", "speed.command").main([chosen.kind, *chosen.arguments])
