"""`nashcast journal`: what the service has kept, as a table; whether it is sound; what can be saved of it."""

from __future__ import annotations

import argparse
from pathlib import Path

from nashcast.cli.printed import print_json


def add_to(commands) -> None:
    journal = commands.add_parser(
        "journal",
        help="export, check and salvage what the service has kept",
        description="The journal of `nashcast serve`. It may be read while the service runs.",
    )
    kinds = journal.add_subparsers(dest="kind", metavar="WHAT", required=True)
    exported = kinds.add_parser(
        "export", help="write it as CSV or Parquet",
        description="One row a step: inputs, target, forecast, bounds, weights, every agent's forecast.",
    )  # fmt: skip
    exported.add_argument("folder", metavar="FOLDER", type=Path)
    exported.add_argument("out", metavar="OUT", type=Path, help="a file that ends in .csv or .parquet")
    exported.add_argument("--stream", metavar="NAME", help="the stream, where there is more than one")
    exported.add_argument("--from", dest="first", type=int, metavar="STEP", help="the first step (the oldest kept)")
    exported.add_argument("--to", dest="last", type=int, metavar="STEP", help="the last step (the newest)")
    exported.set_defaults(run=run_export)
    checked = kinds.add_parser(
        "check", help="whether it is sound",
        description="Whether every entry has its checksum and follows the one before. Exit code 1 if not.",
    )  # fmt: skip
    checked.add_argument("folder", metavar="FOLDER", type=Path)
    checked.set_defaults(run=run_check)
    saved = kinds.add_parser(
        "salvage", help="take what is sound of a damaged one",
        description="Copy entries from the first on, up to the first that is damaged, to a new journal. Stop the "
        "service first.",
    )  # fmt: skip
    saved.add_argument("folder", metavar="FOLDER", type=Path)
    saved.add_argument("out", metavar="NEW", type=Path, help="a folder that is not there yet")
    saved.add_argument("--until", type=int, metavar="STEP", help="the last step to take")
    saved.set_defaults(run=run_salvage)
    for each in (exported, checked, saved):
        each.add_argument("--json", action="store_true", help="print one JSON object")


def run_export(chosen: argparse.Namespace) -> None:
    from nashcast.service.journal.export import export

    rows = export(chosen.folder, chosen.out, stream=chosen.stream, first=chosen.first, last=chosen.last)
    if chosen.json:
        print_json({"out": str(chosen.out), "rows": rows})
    else:
        print(f"{chosen.out}: {rows:,} steps")


def run_check(chosen: argparse.Namespace) -> None:
    from nashcast.service.journal.reader import JournalReader
    from nashcast.service.journal.schema import JournalDamaged

    reader = JournalReader(chosen.folder)
    rows = []
    try:
        for name in reader.names():
            entries, step, wrong = reader.named(name).sound()
            rows.append(
                {"stream": name, "sound": wrong is None, "entries": entries, "last_step": step, "damage": wrong}
            )
    finally:
        reader.close()
    damaged = [row for row in rows if not row["sound"]]
    if chosen.json:
        print_json({"sound": not damaged, "streams": rows})
    else:
        for row in rows:
            end = "all sound" if row["sound"] else "sound up to there"
            print(f"{row['stream']}: {row['entries']:,} entries, {end}, the last of step {row['last_step']}")
    if damaged:
        first = damaged[0]
        raise JournalDamaged(
            f"{chosen.folder}: {first['entries']:,} entries of {first['stream']} are sound, the last of step "
            f"{first['last_step']}; then: {first['damage']}."
        )


def run_salvage(chosen: argparse.Namespace) -> None:
    from nashcast.service.journal.salvage import salvage

    found = salvage(chosen.folder, chosen.out, until=chosen.until)
    if chosen.json:
        print_json({"out": str(chosen.out), "streams": [each._asdict() for each in found]})
        return
    for each in found:
        print(f"{chosen.out}: {each.stream}: {each.entries:,} entries, up to step {each.last_step}")
        if each.stopped is not None:
            print(f"  then: {each.stopped}")
