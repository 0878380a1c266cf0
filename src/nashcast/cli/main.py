"""`nashcast`: the command line. Exit code 2 for misuse, 1 for failure."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from nashcast import __version__
from nashcast.cli import (
    agent,
    bench,
    bridge,
    broker,
    certs,
    data,
    demo,
    enroll,
    evaluate,
    hub,
    journal,
    report,
    run,
    serve,
    sweep,
)
from nashcast.errors import NashcastError

# Modules that add commands where they are installed; nothing here imports them otherwise.
PLUG_INS = ("nashcast.paper.command",)


def plug_ins() -> list[ModuleType]:
    """The commands of packages beside the product, such as the reproduction of the paper."""
    found = []
    for name in PLUG_INS:
        try:
            found.append(import_module(name))
        except ModuleNotFoundError as error:
            # A package that is not there adds nothing; one that is there and is broken says so.
            if error.name is None or not name.startswith(error.name):
                raise
    return found


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="nashcast", description="Federate black-box forecasters online.",
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=20),
    )  # fmt: skip
    top.add_argument("--version", action="version", version=f"nashcast {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    everyday, apart = (
        (demo, data, run, sweep, evaluate, report),
        (serve, journal, bridge, hub, agent, enroll, certs, broker),
    )
    for command in (*everyday, *plug_ins(), *apart, bench):
        command.add_to(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = parser().parse_args(arguments)
    try:
        chosen.run(chosen)
    except NashcastError as error:
        print(f"nashcast: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output, such as `head`, has seen enough
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print("nashcast: interrupted", file=sys.stderr)
        return 130
    return 0
