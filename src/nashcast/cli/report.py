"""`nashcast report`: a page, figures and Markdown from any record."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nashcast.cli.shared.printed import print_json
from nashcast.errors import InvalidInput
from nashcast.reports.formats import size
from nashcast.reports.report import FORMATS, write_report


def add_to(commands) -> None:
    report = commands.add_parser(
        "report",
        help="write a page, figures and Markdown from a record",
        description="Write the report of a record: report.html, one self-contained page; figures as PNG and PDF; "
        "report.md. Nothing is recomputed.",
    )
    report.add_argument("record", metavar="RECORD", help="folder that another nashcast command wrote")
    report.add_argument("--output", metavar="FOLDER", help="folder to write to (default: the record's own folder)")
    report.add_argument(
        "--format", type=_formats, default=FORMATS, metavar="LIST", help=f"formats (default: {','.join(FORMATS)})"
    )
    report.add_argument("--open", action="store_true", help="open the page in a browser")
    report.add_argument("--json", action="store_true", help="print one JSON object with the files")
    report.set_defaults(run=run)


def _formats(text: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [part for part in chosen if part not in FORMATS]
    if unknown or not chosen:
        raise argparse.ArgumentTypeError(f"got {text!r}; pass some of {','.join(FORMATS)}")
    return chosen


def run(chosen: argparse.Namespace) -> None:
    if chosen.open and "html" not in chosen.format:
        raise InvalidInput("--open", f"--format {','.join(chosen.format)}", "Add html, the page to open.")
    written = write_report(chosen.record, chosen.output, chosen.format)
    if chosen.json:
        files = [{"path": str(path), "bytes": path.stat().st_size} for path in written]
        print_json({"files": files})
    else:
        for path in written:
            print(f"{path}  {size(path.stat().st_size)}")
    if chosen.open:
        import webbrowser

        webbrowser.open(Path(written[0]).resolve().as_uri())


def report_of(folder: Path) -> list[Path]:
    """Write the report of a record; without the packages that draw, print the reason on standard error."""
    try:
        return write_report(folder)
    except InvalidInput as error:
        # Without the packages that draw, the numbers are still worth having.
        if "nashcast[report]" not in str(error):
            raise
        print(f"nashcast: no report: {error}", file=sys.stderr)
        return []
