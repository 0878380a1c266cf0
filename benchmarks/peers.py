"""The federation beside all peers, on sets of streams that stand apart by when they were first seen.

    python benchmarks/peers.py [--sets declared,held-out,fresh] [--methods LIST] [--seeds 2024] [--jobs 2] [--quick]

Writes a record of each set (RECORDS), docs/peers.md, docs/fresh-streams.md and docs/evaluation-summary.md. Runs are
kept in build/peers as they finish: the same command continues where it was stopped. --quick: a few short streams of the
sets that have been seen, fewer peers, everything written to build/evaluation-quick; fresh streams are not part of it,
so that they are not looked at while something is being changed.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Mapping, Sequence
from datetime import date
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import nashcast
from nashcast.cli.shared.argument_types import positive, seeds
from nashcast.cli.shared.progress import Progress
from nashcast.errors import NashcastError
from nashcast.evaluation.declared import Declared, check_streams, declared_streams, fresh_streams, together
from nashcast.evaluation.evaluate import evaluate
from nashcast.evaluation.federation_methods import WITHOUT_GAME
from nashcast.evaluation.method import PEERS
from nashcast.evaluation.methods import PERSISTENCE, all_methods
from nashcast.evaluation.rows import rows_of
from nashcast.evaluation.statistics.comparison import comparison, comparison_notes, comparison_table
from nashcast.evaluation.study import overview_table, steps_of
from nashcast.reports.markdown import markdown_table

ROOT = Path(__file__).parents[1]
METHODS = (WITHOUT_GAME, *PEERS)
QUICK_METHODS = (
    WITHOUT_GAME, "baselines", "ML-Poly over the federation's experts", "river KNNRegressor", "river SNARIMAX",
    "reservoirpy NVAR >> RLS", "statsforecast AutoETS", "statsforecast AutoTheta", "sktime OnlineEnsemble NNLS",
)  # fmt: skip
QUICK_STREAMS = {
    "declared": ("logistic", "concept-y2", "sunspots", "el-nino"),
    "held-out": ("brent", "lincoln", "treasury", "unemployment"),
}
RECORDS = {"declared": "peers-declared.json", "held-out": "peers-held-out.json", "fresh": "fresh.json"}
WORDS = {
    "declared": "streams of 0.1's evaluation",
    "held-out": "streams that 0.1 held out",
    "fresh": "fresh streams",
}
FAMILY_WORDS = {
    "baselines": "simple forecasters", "experts": "other rules over the same experts", "river": "river",
    "reservoirpy": "reservoirpy", "statsforecast": "statsforecast", "sktime": "sktime's online ensembles",
}  # fmt: skip


class Place(NamedTuple):
    """Where records and pages go."""

    records: Path
    pages: Path
    results: Path


KEPT = Place(ROOT / "benchmarks" / "results", ROOT / "docs", ROOT / "build" / "peers")
QUICK = Place(*(ROOT / "build" / "evaluation-quick" / name for name in ("records", "pages", "results")))


def streams_of(name: str, quick: bool) -> list[Declared]:
    found = fresh_streams() if name == "fresh" else declared_streams(held_out=name == "held-out")
    return [each for each in found if not quick or each.label in QUICK_STREAMS[name]]


def record_of(name: str, chosen: argparse.Namespace, place: Place, progress: Progress) -> dict[str, Any]:
    """One set: all methods on all its streams, and what they come to."""
    begun = time.monotonic()
    streams, missing = check_streams(streams_of(name, chosen.quick))
    methods = chosen.methods or (QUICK_METHODS if chosen.quick else METHODS)
    outcomes = evaluate(streams, methods, chosen.seeds, place.results, jobs=chosen.jobs, progress=progress)
    progress.clear()
    rows, steps = rows_of(outcomes), steps_of(outcomes)
    return {
        "set": name, "version": nashcast.__version__, "created": date.today().isoformat(), "seeds": list(chosen.seeds),
        "seconds": time.monotonic() - begun, "steps": steps, "not_run": missing,
        "left_out": left_out(rows),
        "comparison": comparison(rows, steps), "rows": [plain(row) for row in rows],
    }  # fmt: skip


def left_out(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Peers that the evaluation knows and that were not asked for."""
    ran = {row["method"] for row in rows}
    return [name for name, method in all_methods().items() if method.family in PEERS and name not in ran]


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """What is kept of a row; JSON has no infinite number."""
    kept = ("stream", "method", "family", "mse", "mse_after_warmup", "dm_p", "us_per_step", "choices", "why")
    found = {key: row[key] for key in kept}
    for key in ("mse", "mse_after_warmup"):
        if row[key] is not None and not isfinite(row[key]):
            found |= {key: None, "why": "diverges"}
    return found


def section(record: Mapping[str, Any], heading: str) -> list[str]:
    """What one set comes to: notes and tables."""
    found, rows = record["comparison"], record["rows"]
    lines = [f"## {heading}", "", *(f"- {note}" for note in comparison_notes(found))]
    game = game_note(rows)
    lines += [f"- {game}"] if game else []
    for table in (comparison_table(found), overview_table(rows)):
        lines += ["", f"### {table.title}", "", markdown_table(table)]
    lines += [f"\nNot run: {line}." for line in together(record["not_run"])]
    failed = [f"{row['method']} on {row['stream']} ({row['why']})" for row in rows if row["why"]]
    lines += ["\nFailed: " + "; ".join(failed) + "."] if failed else []
    lines += (
        ["\nPeers that were not part of this run: " + ", ".join(record["left_out"]) + "."] if record["left_out"] else []
    )
    lines += ["\nTimes are those of processes that share the machine: orders of magnitude, and more where it is busy."]
    many = ", ".join(map(str, record["seeds"]))
    return [*lines, "", f"nashcast {record['version']}, {record['created']}, seeds {many}.", ""]


def game_note(rows: Sequence[Mapping[str, Any]]) -> str:
    """The federation beside itself without its game."""
    errors = {(row["stream"], row["method"]): row["mse_after_warmup"] for row in rows}
    pairs = [
        (own, errors[stream, WITHOUT_GAME])
        for (stream, method), own in errors.items()
        if method == "federation" and own and errors.get((stream, WITHOUT_GAME))
    ]
    if not pairs:
        return ""
    better = sum(own < other for own, other in pairs)
    worst = max(own / other for own, other in pairs)
    words = f"With its game the error is smaller on {better} of {len(pairs)} streams, and nowhere more than {worst:.3f}"
    return f"{words} of that without."


def summary(records: Mapping[str, Mapping[str, Any]]) -> str:
    """At most ten lines: for each family the peer that is hardest to beat; persistence; the worst case."""
    names = list(records)
    lines = ["| federation ÷ hardest peer among | " + " | ".join(counted(records[name]) for name in names) + " |"]
    lines.append("| --- |" + " --- |" * len(names))
    for family, words in FAMILY_WORDS.items():
        cells = []
        for name in names:
            peers = [line for line in records[name]["comparison"]["peers"] if line["family"] == family]
            cells.append(_cell(peers[0]) if peers else "–")
        lines.append(f"| {words} | {' | '.join(cells)} |")
    cells = []
    for name in names:
        own = [line for line in records[name]["comparison"]["peers"] if line["method"] == PERSISTENCE]
        cells.append(_cell(own[0], named=False) if own else "–")
    lines.append(f"| persistence | {' | '.join(cells)} |")
    cells = []
    for name in names:
        worst = records[name]["comparison"]["worst_to_best_peer"]
        cells.append(f"{worst['ratio']:.2f} ({worst['stream']}, {worst['peer']})")
    lines.append(f"| worst ratio to the best peer of a stream | {' | '.join(cells)} |")
    return "\n".join(lines)


def counted(record: Mapping[str, Any]) -> str:
    return f"{record['comparison']['streams']} {WORDS[record['set']]}"


def _cell(line: Mapping[str, Any], named: bool = True) -> str:
    interval = f"{line['ratio']:.3f} ({line['low']:.3f} to {line['high']:.3f})"
    return f"{interval}, {line['method']}" if named else interval


SUMMARY = """# The federation beside its peers

Written by `python benchmarks/peers.py`. Mean squared error after the warm-up, one step ahead: the default federation's
divided by that of the peer that is hardest to beat in each family, geometric mean over streams with a 95 % interval
from resampled streams. Below 1 the federation is better. The hardest peer is picked after the fact, which favours the
peers.
"""
SEEN = """# Seen streams: the federation beside its peers

Written by `python benchmarks/peers.py`. These streams were known while the federation was made: this is no untouched
test; that is [the one on fresh streams](fresh-streams.md). What the columns mean: [how methods are
compared](reference/evaluation.md).
"""


def summary_page(records: Mapping[str, Mapping[str, Any]]) -> str:
    return f"{SUMMARY}\n{summary(records) if records else 'No record yet.'}\n"


def rule_page(records: Mapping[str, Mapping[str, Any]]) -> str:
    """The declaration as it stands in the page, the results after it."""
    page = (ROOT / "docs" / "fresh-streams.md").read_text().partition("\n## Results")[0].rstrip()
    introduction, results = page.replace(" No result stands here yet.", ""), ""
    if "fresh" in records:
        results = "\n\n" + "\n".join(section(records["fresh"], "Results")).rstrip()
    return introduction + results + "\n"


def seen_page(records: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [SEEN]
    for name in ("declared", "held-out"):
        if name in records:
            lines += section(records[name], counted(records[name]))
    return "\n".join(lines).rstrip() + "\n"


def write_pages(place: Place) -> list[Path]:
    """From the records that are there; a set without one is left out."""
    found = {name: place.records / file for name, file in RECORDS.items()}
    records = {name: json.loads(path.read_text()) for name, path in found.items() if path.is_file()}
    place.pages.mkdir(parents=True, exist_ok=True)
    pages = {"evaluation-summary.md": summary_page(records)}
    if "fresh" in records:
        pages["fresh-streams.md"] = rule_page(records)
    if records.keys() & {"declared", "held-out"}:
        pages["peers.md"] = seen_page(records)
    for name, text in pages.items():
        (place.pages / name).write_text(text)
    return [place.pages / name for name in pages]


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--sets", metavar="LIST", help="some of declared,held-out,fresh (default: all)")
    parser.add_argument(
        "--methods", type=lambda text: tuple(text.split(",")), metavar="LIST",
        help="families of peers or names of methods (default: all peers)",
    )  # fmt: skip
    parser.add_argument("--seeds", type=seeds, default=(2024,), metavar="LIST", help="seeds (default: 2024)")
    parser.add_argument("--jobs", type=positive, default=2, metavar="N", help="processes (default: 2)")
    parser.add_argument("--quick", action="store_true", help="a few short seen streams and fewer peers")
    parser.add_argument("--pages", action="store_true", help="only write the pages again from the records")
    parser.add_argument("--results", type=Path, metavar="FOLDER", help="folder of finished runs (default: build/peers)")
    chosen = parser.parse_args(words)
    known = list(QUICK_STREAMS) if chosen.quick else list(WORDS)
    chosen.sets = known if chosen.sets is None else chosen.sets.split(",")
    for name in chosen.sets:
        if name not in known:
            parser.error(f"--sets: got {name!r}; pass some of {', '.join(known)}")
    return chosen


def main(words: Sequence[str] | None = None) -> None:
    chosen = arguments(words)
    # The matrices of a step are small: threads of the linear algebra would only get into each other's way.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    place = QUICK if chosen.quick else KEPT
    place = place._replace(results=chosen.results or place.results)
    progress = Progress(shown=True)
    for name in () if chosen.pages else chosen.sets:
        try:
            record = record_of(name, chosen, place, progress)
        except NashcastError as error:
            if name != "fresh":
                raise
            print(f"{name}: {error}")  # its files come from elsewhere; the other sets go on
            continue
        place.records.mkdir(parents=True, exist_ok=True)
        (place.records / RECORDS[name]).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        print("\n".join([f"\n{name}", *(f"- {note}" for note in comparison_notes(record["comparison"]))]), flush=True)
    for path in write_pages(place):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
