"""The argument parser of every command: no abbreviations, and a suggestion for a misspelt word."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from nashcast.cli.shared.colours import help_page


class Misuse(SystemExit):
    """An invalid command line. Exit code 2; the caller prints it.

    usage: the command's usage.   message: the fault.   prog: the command's words.
    """

    def __init__(self, prog: str, usage: str, message: str):
        super().__init__(2)
        self.prog, self.usage, self.message = prog, usage, message


class Parser(argparse.ArgumentParser):
    """argparse's parser; sub-commands get the same class.

    nested: parsers used if the first word is their name, for a command whose first argument is a file.
    """

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **{"allow_abbrev": False} | options)
        self.commands: Any = None
        self.nested: dict[str, Parser] = {}

    def add_subparsers(self, **options: Any) -> Any:
        """Add sub-commands as argparse does, and store them, to suggest one for a misspelt name."""
        self.commands = super().add_subparsers(**options)
        return self.commands

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] of its overloads, the one that is called
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """The arguments. The rest is always empty: unknown arguments are an error here."""
        words = list(sys.argv[1:] if args is None else args)
        if words and words[0] in self.nested:
            return self.nested[words[0]].parse_known_args(words[1:], namespace)
        self._refuse_unknown_command(words)
        chosen, rest = super().parse_known_args(words, namespace)
        if rest:
            options = [name for action in self._actions for name in action.option_strings]
            self.error(f"unrecognized arguments: {' '.join(rest)}. {_near(rest[0], options)}".rstrip(" ."))
        return chosen, []

    def _refuse_unknown_command(self, words: Sequence[str]) -> None:
        # Parsers with commands have no option with a value, so the first plain word is the command.
        command = next((word for word in words if not word.startswith("-")), None)
        if self.commands is not None and command is not None and command not in self.commands.choices:
            names = list(self.commands.choices)
            self.error(f"unknown command {command!r}. {_near(command, names)}Commands: {', '.join(names)}")

    def walk(self) -> Iterator[Parser]:
        """This parser and those of all commands below it."""
        yield self
        below = () if self.commands is None else self.commands.choices.values()
        for each in (*below, *self.nested.values()):
            yield from each.walk()

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise Misuse(self.prog, self.format_usage(), message)

    def print_help(self, file: Any = None) -> None:
        """Print the help, coloured on a terminal."""
        stream: Any = file or sys.stdout
        stream.write(help_page(self.format_help(), stream))


def _near(word: str, names: Sequence[str]) -> str:
    from nashcast.suggest import near

    return near(word.partition("=")[0], names)
