"""`nashcast bench serve`: many streams in one service, under load."""

from __future__ import annotations

import argparse
import os

from nashcast.cli.shared.printed import print_json


def add_to(kinds) -> None:
    serve = kinds.add_parser(
        "serve", help="a service of many streams under load",
        description="Default streams in one real service on this machine, posted to by producers on the same cores.",
    )  # fmt: skip
    serve.add_argument("--streams", type=int, default=300, metavar="N", help="default streams (default: %(default)s)")
    serve.add_argument(
        "--producers", type=int, default=32, metavar="N", help="connections that post (default: %(default)s)"
    )
    serve.add_argument("--workers", type=int, metavar="N", help="processes that compute (default: one for each core)")
    serve.add_argument(
        "--seconds", type=float, default=60.0, metavar="S", help="seconds of posting (default: %(default)g)"
    )
    serve.add_argument(
        "--batch", type=int, default=1, metavar="N", help="observations in one post (default: %(default)s)"
    )
    serve.add_argument("--json", action="store_true", help="print one JSON object")
    serve.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    from speed.serve_load import Load, measure

    workers = chosen.workers or len(os.sched_getaffinity(0))
    row = measure(Load(chosen.streams, chosen.producers, workers, chosen.seconds, chosen.batch))
    if chosen.json:
        print_json({"rows": [row]})
        return
    for name, value in row.items():
        print(f"{name:24} {value}")
