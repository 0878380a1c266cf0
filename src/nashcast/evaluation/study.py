"""An evaluation as a study: tables, figures and notes for the terminal, the page and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import numpy as np

from nashcast.evaluation.declared import together, warmup_share
from nashcast.evaluation.evaluate import Outcome
from nashcast.evaluation.federation_methods import FEDERATION
from nashcast.evaluation.method import FAMILIES, PEERS
from nashcast.evaluation.methods import PERSISTENCE
from nashcast.evaluation.peers.interval_rivals import RIVALS
from nashcast.evaluation.rows import SURE, head_to_head, overview, rows_of, summary
from nashcast.evaluation.scoring import unpacked
from nashcast.evaluation.statistics.comparison import comparison, comparison_notes, comparison_table
from nashcast.intervals.intervals import COVERAGES
from nashcast.records.study import Column, Figure, Line, Panel, Study, Table

# Running means start after this number of steps.
_FIRST_SHOWN = 10


def study_of(outcomes: Sequence[Outcome], seeds: Sequence[int], missing: Mapping[str, str]) -> Study:
    """missing: streams that could not be opened, and why."""
    rows = rows_of(outcomes)
    arrays: dict[str, np.ndarray] = {}
    compared = comparison(rows, steps_of(outcomes))
    tables = [overview_table(rows), comparison_table(compared), peers_table(rows), parts_table(rows)]
    tables.append(intervals_table(outcomes))
    tables += [stream_table(stream, rows) for stream in dict.fromkeys(row["stream"] for row in rows)]
    return Study(
        "evaluation", "The federation beside its parts and its peers", "", seeds=list(seeds),
        settings={"warm-up": warmup_share(), "streams": list(dict.fromkeys(row["stream"] for row in rows))},
        notes=comparison_notes(compared) + notes(rows, missing), tables=[table for table in tables if table.rows],
        figures=figures(outcomes, rows, arrays), arrays=arrays,
    )  # fmt: skip


def steps_of(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many steps each stream has."""
    return {each.stream.label: len(each.stream.open().targets) for each in outcomes}


def overview_table(rows: Sequence[dict[str, Any]]) -> Table:
    columns = [
        Column("stream", "stream"), Column("federation", "federation", "error"), Column("peer", "best peer"),
        Column("peer_mse", "its error", "error"), Column("ratio", "ratio", "ratio"), Column("p", "p", "ratio"),
        Column("near", "near", "mark"), Column("place", "place"),
        Column("persistence_ratio", "to persistence", "ratio"),
        Column("all", "ratio, all steps", "ratio"), Column("all_persistence", "to persistence, all steps", "ratio"),
    ]  # fmt: skip
    whole = {row["stream"]: row for row in overview(rows, "mse")}
    found = []
    for row in overview(rows):
        other = whole[row["stream"]]
        found.append(
            row
            | {"place": f"{row['rank']} of {row['peers'] + 1}", "all": other["ratio"]}
            | {"all_persistence": other["persistence_ratio"], "near": "✓" if row["near"] else ""}
        )
    for line in found:  # no ratio to an error of 0
        line |= {key: None for key in ("ratio", "all") if line[key] == inf}
    marks = {"✓": "first or within 1 % of the first, or apart by less than a millionth of persistence's error"}
    return Table("The federation beside its best peer, error after the warm-up", columns, found, marks)


def peers_table(rows: Sequence[dict[str, Any]]) -> Table:
    columns = [
        Column("method", "method"), Column("family", "family"), Column("streams", "streams", "int"),
        Column("mean", "its error, geometric mean", "ratio"), Column("median", "median", "ratio"),
        Column("near", "first or near on", "int"), Column("better", "better on", "int"),
        Column("surely_better", f"better with p < {SURE}", "int"), Column("worse", "worse on", "int"),
        Column("surely_worse", f"worse with p < {SURE}", "int"),
    ]  # fmt: skip
    found = head_to_head(rows)
    return Table(
        "Peer by peer: error after the warm-up as a multiple of the federation's",
        columns,
        found if len(found) > 1 else [],
    )


def parts_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Each ablation's error as a multiple of the federation's, and whether the difference is significant."""
    names = list(
        dict.fromkeys(row["method"] for row in rows if row["family"] == "ours" and row["method"] != FEDERATION)
    )
    found = []
    for stream in dict.fromkeys(row["stream"] for row in rows):
        here = {row["method"]: row for row in rows if row["stream"] == stream and row["mse_after_warmup"] is not None}
        if FEDERATION not in here:
            continue
        own, line = here[FEDERATION]["mse_after_warmup"], {"stream": stream}
        for name in names:
            if name in here and own > 0.0:
                p = here[name]["dm_p"]
                sure = "" if p is None or p >= SURE else "*"
                line[name] = f"{here[name]['mse_after_warmup'] / own:.3g}{sure}"
        found.append(line)
    columns = [Column("stream", "stream"), *(Column(name, name, "mark") for name in names)]
    title = "Its parts: error after the warm-up as a multiple of the federation's"
    return Table(title, columns, found if names else [], {"*": "Diebold–Mariano p < 0.05"})


def intervals_table(outcomes: Sequence[Outcome]) -> Table:
    columns = [Column("stream", "stream"), Column("method", "intervals")]
    columns += [Column(f"c{level}", f"{level:.0%}", "ratio") for level in COVERAGES]
    columns += [Column("width", "mean width, 90%", "error"), Column("relative", "to persistence's", "ratio")]
    columns += [Column("endless", "infinite", "ratio"), Column("shift", "100 steps after the shift")]
    found = []
    results = {(each.stream.label, each.method.name): each.result for each in outcomes if each.result is not None}
    middle = COVERAGES.index(0.9)
    for (stream, method), result in results.items():
        base = results.get((stream, PERSISTENCE))
        if method != FEDERATION or base is None:
            continue
        for name, prefix in {"ours": "", **{name: f"{name}: " for name in RIVALS}}.items():
            width = result[f"{prefix}width"][middle]
            shift = result.get(f"{prefix}coverage_after_shift")
            line = {"stream": stream, "method": name, "width": width, "endless": result.get(f"{prefix}endless")}
            line |= {f"c{level}": share for level, share in zip(COVERAGES, result[f"{prefix}coverage"], strict=True)}
            line["relative"] = width / base["width"][middle] if base["width"][middle] else None
            line["shift"] = None if shift is None else " / ".join(f"{share:.0%}" for share in shift)
            found.append(line)
    return Table("Intervals round the federation's forecasts: coverage, all steps", columns, found)


def stream_table(stream: str, rows: Sequence[dict[str, Any]]) -> Table:
    columns = [
        Column("method", "method"), Column("family", "family"), Column("mse", "MSE, all steps", "error"),
        Column("mse_after_warmup", "after the warm-up", "error"), Column("skill", "skill", "ratio"),
        Column("dm_p", "p", "ratio"), Column("seconds", "a step", "seconds"),
        Column("coverage90", "90% intervals", "ratio"), Column("note", "chosen, or why not run"),
    ]  # fmt: skip
    here = [row for row in rows if row["stream"] == stream]
    here.sort(key=lambda row: (row["mse_after_warmup"] is None, row["mse_after_warmup"] or 0.0))
    shown = [
        row
        | {"seconds": None if row["us_per_step"] is None else 1e-6 * row["us_per_step"]}
        | {"note": row["why"] or row["choices"] or None}
        for row in here
    ]
    return Table(f"{stream}", columns, shown)


def notes(rows: Sequence[dict[str, Any]], missing: Mapping[str, str]) -> list[str]:
    found = []
    for key, words in (("mse_after_warmup", "after the warm-up"), ("mse", "all steps, warm-up counted")):
        total = summary(rows).get(key)
        if total:
            found.append(
                f"By the error {words}: first or within 1 % of the first peer on "
                f"{total['first_or_within_1_percent']} of {total['streams']} streams ({total['share']:.0%}); worst "
                f"ratio to persistence {total['worst_ratio_to_persistence']:.3f} ({total['worst_stream']})."
            )
    found += _closest(rows)
    found.append(
        f"The first {warmup_share():.0%} of every stream is the warm-up: settings marked as chosen are those that did "
        "best there; everything else was fixed beforehand. Random methods: mean over seeds. p: Diebold–Mariano against "
        "the federation, two-sided, after the warm-up. Intervals round every method's forecasts are nashcast's."
    )
    found += [f"Not run, on any stream: {name} ({why})." for name, why in _never(rows).items()]
    found += [f"Not run: {line}." for line in together(missing)]
    return found


def _closest(rows: Sequence[dict[str, Any]]) -> list[str]:
    """The closest peer over all streams together."""
    peers = [line for line in head_to_head(rows) if line["method"] != FEDERATION]
    most = max((line["streams"] for line in peers), default=0)
    whole = [line for line in peers if line["streams"] == most]
    if most < 2 or not whole:
        return []
    first = whole[0]
    words = f"{first['method']} comes closest ({first['mean']:.3f} times"
    words += f" the federation's, first or near on {first['near']} streams)"
    foreign = next((line for line in whole if line["family"] != "experts"), None)
    if foreign is not None and foreign is not first:
        words += f"; of those not made of our agents {foreign['method']} ({foreign['mean']:.3f}, {foreign['near']})"
    pairs, better, worse = (sum(line[key] for line in peers) for key in ("streams", "surely_better", "surely_worse"))
    note = f"By the geometric mean of the error after the warm-up over {most} streams, {words}. "
    note += f"Of {pairs} pairs of peer and stream the peer is better with p < {SURE} in {better}, worse in {worse}."
    return [note]


def _never(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    ran = {row["method"] for row in rows if row["mse"] is not None}
    return {row["method"]: row["why"] for row in rows if row["method"] not in ran}


def figures(outcomes: Sequence[Outcome], rows: Sequence[dict[str, Any]], arrays: dict[str, np.ndarray]) -> list[Figure]:
    """The running error of the federation and of the best of each family, as a multiple of persistence's."""
    losses = {(each.stream.label, each.method.name): each.result["losses"] for each in outcomes if each.result}
    panels = []
    for stream in dict.fromkeys(row["stream"] for row in rows):
        here = [row for row in rows if row["stream"] == stream and row["mse_after_warmup"] is not None]
        shown = {FEDERATION: FEDERATION}
        for family in PEERS:
            some = [row for row in here if row["family"] == family and row["method"] != PERSISTENCE]
            if some:
                best = min(some, key=lambda row: row["mse_after_warmup"])["method"]
                shown[best] = best
        if (stream, FEDERATION) not in losses or (stream, PERSISTENCE) not in losses:
            continue
        base, lines = np.cumsum(unpacked(losses[stream, PERSISTENCE])), []
        for name in shown:
            running = np.cumsum(unpacked(losses[stream, name]))
            key = f"{stream}.{name}"
            with np.errstate(divide="ignore", invalid="ignore"):
                arrays[key] = (running / base)[_FIRST_SHOWN:]
            arrays[f"{stream}.steps"] = np.arange(_FIRST_SHOWN, len(base), dtype=np.float64)
            lines.append(Line(name, key, f"{stream}.steps"))
        panels.append(Panel(stream, "step", "error / persistence's", lines, log_y=True, reference=1.0))
    if not panels:
        return []
    caption = (
        "Mean squared error up to each step as a multiple of persistence's: the federation, and the best of each "
        f"family of peers by the error after the warm-up ({', '.join(FAMILIES[family] for family in PEERS)})."
    )
    return [Figure("running-error", "Running error beside the best peers", caption, panels, 2)]
