"""`nashcast broker`: run the broker of a federation, and reload it when its folder changes."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import threading


def add_to(commands) -> None:
    broker = commands.add_parser(
        "broker",
        help="run a federation's broker apart from its hub",
        description="Run the broker of a federation: nats-server with the folder's rules. Changed rules and "
        "certificates are reloaded automatically, and invited owners are answered. `nashcast hub` starts its own "
        "broker if none is running. Ctrl-C stops it.",
    )
    broker.add_argument(
        "folder", nargs="?", default=".", metavar="FOLDER", help="folder of the federation (default: current folder)"
    )
    broker.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    from nashcast.errors import InvalidInput
    from nashcast.remote.broker.running.process import lasting_broker
    from nashcast.remote.hub.desk import broker_and_desk

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    if lasting_broker(chosen.folder) is not None:
        raise InvalidInput("folder", f"{chosen.folder}, from which a broker runs already", "Stop it first, or use it.")
    ended = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: ended.set())
    with broker_and_desk(chosen.folder) as url:
        print(f"broker at {url}", flush=True)
        ended.wait()
