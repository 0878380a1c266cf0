"""`nashcast agent join STRING`: enrol an invited agent, and run it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# Files of an invited agent, in its folder: its state (NAME.state), and the log of sent messages.
STATE, LOG = ".state", "sent.log"
# Not allowed in a file: the agent's identity and its hub's address come from the invitation.
_FIXED = ("command", "run", "misuse", "words", "hub", "name", "key", "certs", "folder", "json", "options")


def join_with(chosen: argparse.Namespace, text: str) -> None:
    """Enrol the agent unless it is enrolled already, and set the options of `nashcast agent` that follow from it."""
    from nashcast.remote.owner.join import join

    joined = join(text, chosen.folder, wait=chosen.wait, say=_say)
    chosen.hub, chosen.name, chosen.key, chosen.certs = joined.hub, joined.name, joined.key, joined.certs
    for name, file in (("state", f"{joined.name}{STATE}"), ("log", LOG)):
        if getattr(chosen, name) is None:
            setattr(chosen, name, str(joined.certs / file))


def read_file(chosen: argparse.Namespace, path: Path) -> None:
    """Options from a TOML file, under their names without dashes; `encoder`; and the encoder's own in `[options]`."""
    from nashcast.config.config_changes import read_toml
    from nashcast.config.run_schema import Place, refuse_unknown, table
    from nashcast.errors import InvalidInput

    given, place = dict(read_toml(path)), Place(str(path))
    known = [name for name in vars(chosen) if name not in _FIXED]
    refuse_unknown(place, given, ("encoder", "options", *known), "An agent's file")
    if not isinstance(given.get("encoder"), str):
        raise place.at("encoder").refused("nothing", 'Add encoder = "…": a name, or "module:name".')
    options = table(place.at("options"), given.pop("options", {}))
    chosen.options = [*options.items(), *chosen.options]
    chosen.encoder = given.pop("encoder")
    for name, value in given.items():
        if isinstance(value, dict | list):
            raise InvalidInput(f"{path}: {name}", f"{value!r:.80}", "Pass one value.")
        setattr(chosen, name, value)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
