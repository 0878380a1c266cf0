"""`nashcast completion SHELL`: a script that completes commands and options in a shell."""

from __future__ import annotations

import argparse

from nashcast.cli.shared.printed import print_json
from nashcast.errors import InvalidInput

SHELLS = ("bash", "zsh")


def add_to(commands) -> None:
    completion = commands.add_parser(
        "completion",
        help="completion of commands and options in a shell",
        description="Print a script that completes nashcast's commands and options. bash: nashcast completion bash > "
        "~/.local/share/bash-completion/completions/nashcast. zsh: write it to a file _nashcast in a folder of $fpath.",
    )
    completion.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")
    completion.add_argument("--json", action="store_true", help="print one JSON object with the script")
    completion.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> None:
    try:
        import shtab
    except ModuleNotFoundError:
        remedy = "Install it: pip install 'nashcast[completion]'."
        raise InvalidInput("completion", "no package shtab", remedy) from None
    from nashcast.cli.main import parser

    top = parser()
    mark_paths(top, {"FILE": shtab.FILE, "FOLDER": shtab.DIRECTORY, "RECORD": shtab.DIRECTORY})
    script = shtab.complete(top, shell=chosen.shell).rstrip("\n")
    if chosen.json:
        print_json({"shell": chosen.shell, "script": script})
    else:
        print(script)


def mark_paths(command: argparse.ArgumentParser, kinds: dict) -> None:
    """Mark the arguments whose placeholder is in `kinds` for completion by paths."""
    for action in command._actions:
        if isinstance(action.choices, dict):
            for part in action.choices.values():
                mark_paths(part, kinds)
        elif action.metavar in kinds:
            action.complete = kinds[action.metavar]  # type: ignore[attr-defined]
