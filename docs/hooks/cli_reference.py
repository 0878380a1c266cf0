"""The commands in the reference of the command line, written from the parsers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

# Where reference/cli.md has the commands.
MARK = "<!-- commands -->"


def commands() -> str:
    """All commands, each with its usage and its arguments."""
    from nashcast.cli.main import parser
    from nashcast.cli.shared.checkout import from_checkout

    parts: list[str] = []
    for each in list(parser().walk())[1:]:
        parts += _command(each)
        if each.prog == "nashcast bench":  # its own commands are in benchmarks/
            for measurement in list(from_checkout("benchmarks", "speed.command").parser().walk())[1:]:
                parts += _command(measurement)
    return "\n".join(parts)


def _command(command) -> Iterator[str]:
    yield f"{'#' * min(len(command.prog.split()), 4)} `{command.prog}`\n"
    if command.description:
        yield _text(command.description) + "\n"
    usage = re.sub(r"^usage: ", "", command.format_usage().rstrip())
    yield f"```text\n{usage}\n```\n"
    rows = [_row(command, action) for action in command._actions if action.dest != "help"]
    rows = [row for row in rows if row]
    if rows:
        yield "\n".join(["| argument | meaning |", "|---|---|", *rows]) + "\n"
    if command.epilog:
        yield f"```text\n{command.epilog.rstrip()}\n```\n"


def _row(command, action: argparse.Action) -> str:
    if isinstance(action.choices, dict) or action.help == argparse.SUPPRESS:
        return ""
    value = "" if action.nargs == 0 else str(action.metavar or "|".join(map(str, action.choices or [action.dest])))
    names = ", ".join(f"{name} {value}".strip() for name in action.option_strings) or value
    meaning = (action.help or "") % {**vars(action), "prog": command.prog}
    name = names.replace("|", "\\|")
    return f"| `{name}` | {_text(meaning)} |"


def _text(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;")


def on_page_markdown(markdown, page, config, files):
    return markdown.replace(MARK, commands()) if page.file.src_uri == "reference/cli.md" else markdown
