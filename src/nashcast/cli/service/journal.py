"""`nashcast journal`: export, check, salvage, backup and replay of the service's journal."""

from __future__ import annotations

import argparse
from pathlib import Path

from nashcast.cli.shared.printed import print_json


def add_to(commands) -> None:
    journal = commands.add_parser(
        "journal",
        help="export, check, salvage, back up and replay the service's journal",
        description="The journal of `nashcast serve`. It may be read while the service runs.",
    )
    kinds = journal.add_subparsers(dest="kind", metavar="WHAT", required=True)
    exported = kinds.add_parser(
        "export", help="write a journal as CSV or Parquet",
        description="Write one row per step: inputs, target, forecast, bounds, weights, every agent's forecast.",
    )  # fmt: skip
    exported.add_argument("folder", metavar="FOLDER", type=Path, help="folder of the journal")
    exported.add_argument("output", metavar="OUTPUT", type=Path, help="file that ends in .csv or .parquet")
    exported.add_argument("--stream", metavar="NAME", help="name of the stream (default: the only one)")
    exported.add_argument(
        "--from", dest="first", type=int, metavar="STEP", help="first step (default: the oldest in the journal)"
    )
    exported.add_argument("--to", dest="last", type=int, metavar="STEP", help="last step (default: the newest)")
    exported.set_defaults(run=run_export)
    checked = kinds.add_parser(
        "check", help="verify all checksums",
        description="Verify that every entry's checksum is correct and that no entry is missing. Exit code 1 if not.",
    )  # fmt: skip
    checked.add_argument("folder", metavar="FOLDER", type=Path, help="folder of the journal")
    checked.set_defaults(run=run_check)
    saved = kinds.add_parser(
        "salvage", help="copy the undamaged part of a journal",
        description="Copy the entries before the first damaged one to a new journal. Stop the service first.",
    )  # fmt: skip
    saved.add_argument("folder", metavar="FOLDER", type=Path, help="folder of the journal")
    saved.add_argument("output", metavar="OUTPUT", type=Path, help="new folder")
    saved.add_argument("--until", type=int, metavar="STEP", help="last step to copy (default: the last undamaged one)")
    saved.set_defaults(run=run_salvage)
    copied = kinds.add_parser(
        "backup", help="copy a journal while the service runs",
        description="Copy the journal, its snapshots and its tokens to a new folder, which can be served as it is.",
    )  # fmt: skip
    copied.add_argument("folder", metavar="FOLDER", type=Path, help="folder of the journal")
    copied.add_argument("output", metavar="OUTPUT", type=Path, help="new folder")
    copied.set_defaults(run=run_backup)
    replayed = kinds.add_parser(
        "replay", help="recompute a stream's journal with other settings",
        description="Recompute a stream's entries with the settings of a file, in a new journal, and print which "
        "settings differ.",
    )  # fmt: skip
    replayed.add_argument("folder", metavar="OLD", type=Path, help="folder of the journal")
    replayed.add_argument("file", metavar="NEW.toml", type=Path, help="federation file with the new settings")
    replayed.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="folder of the new journal")
    replayed.add_argument(
        "--stream",
        metavar="NAME",
        help="stream of the old journal (default: the one with the file's name, or the only one)",
    )
    replayed.set_defaults(run=run_replay)
    for each in (exported, checked, saved, copied, replayed):
        each.add_argument("--json", action="store_true", help="print one JSON object")


def run_export(chosen: argparse.Namespace) -> None:
    from nashcast.service.journal.export import export

    rows = export(chosen.folder, chosen.output, stream=chosen.stream, first=chosen.first, last=chosen.last)
    if chosen.json:
        print_json({"output": str(chosen.output), "rows": rows})
    else:
        print(f"{chosen.output}: {rows:,} steps")


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

    found = salvage(chosen.folder, chosen.output, until=chosen.until)
    if chosen.json:
        print_json({"output": str(chosen.output), "streams": [each._asdict() for each in found]})
        return
    for each in found:
        print(f"{chosen.output}: {each.stream}: {each.entries:,} entries, up to step {each.last_step}")
        if each.stopped is not None:
            print(f"  then: {each.stopped}")


def run_backup(chosen: argparse.Namespace) -> None:
    from nashcast.service.journal.backup import backup

    entries = backup(chosen.folder, chosen.output)
    if chosen.json:
        print_json({"output": str(chosen.output), "entries": entries})
    else:
        print(f"{chosen.output}: {entries:,} entries")


def run_replay(chosen: argparse.Namespace) -> None:
    from nashcast.service.snapshots.replay import replay

    found = replay(chosen.folder, chosen.file, chosen.output, stream=chosen.stream)
    if chosen.json:
        print_json({"output": str(chosen.output), **found._asdict()})
        return
    ratio = found.scores["total"]["against_persistence"]
    error = "" if ratio is None else f"; squared error against persistence {ratio:.3f}"
    print(f"{chosen.output}: {found.stream}: {found.entries:,} entries{error}")
    for name, (before, after) in found.differ.items():
        print(f"  {name}: {before!r} -> {after!r}")
    if not found.differ:
        print("  no setting differs")
