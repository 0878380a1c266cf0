"""`nashcast`: the command line. Exit code 2 for misuse, 1 for failure; with --json errors are JSON."""

from __future__ import annotations

import sys
from argparse import HelpFormatter
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from nashcast import __version__
from nashcast.cli import bench, completion, data, demo, evaluate, report, run, sweep
from nashcast.cli.elsewhere import agent, broker, certs, enroll, hub
from nashcast.cli.service import bridge, journal, serve
from nashcast.cli.shared.parsing import Misuse, Parser
from nashcast.cli.shared.printed import print_error
from nashcast.errors import NashcastError

# Optional modules that add commands if they are installed; they are imported only here.
PLUG_INS = ("nashcast.paper.command",)


def plug_ins() -> list[ModuleType]:
    """Commands of optional packages, such as the reproduction of the paper."""
    found = []
    for name in PLUG_INS:
        try:
            found.append(import_module(name))
        except ModuleNotFoundError as error:
            # A missing package adds no command; an import error inside an installed one is raised.
            if error.name is None or not name.startswith(error.name):
                raise
    return found


def parser() -> Parser:
    """The parser of all commands."""
    top = Parser(
        prog="nashcast",
        description="Federate black-box forecasters online.",
        formatter_class=lambda prog: HelpFormatter(prog, max_help_position=20),
    )
    top.add_argument("--version", action="version", version=f"nashcast {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    everyday = (demo, data, run, sweep, evaluate, report)
    apart = (serve, journal, bridge, hub, agent, enroll, certs, broker)
    for command in (*everyday, *plug_ins(), *apart, bench, completion):
        command.add_to(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (sys.argv's). Returns the exit code; misuse raises SystemExit(2)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json, top = "--json" in words, parser()
    if not words:
        top.print_help()
        return 0
    try:
        chosen = top.parse_args(words)
        chosen.run(chosen)
    except Misuse as misuse:
        if not as_json:
            sys.stderr.write(misuse.usage)
        print_error(misuse.message, kind="Misuse", code=2, as_json=as_json, prog=misuse.prog)
        raise
    except NashcastError as error:
        print_error(str(error), kind=type(error).__name__, code=1, as_json=as_json)
        return 1
    except BrokenPipeError:  # the program that reads the output, such as `head`, has closed it
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print_error("interrupted", kind="KeyboardInterrupt", code=130, as_json=as_json)
        return 130
    return 0
