"""The private-information benchmark as a study: tables, figure and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nashcast.evaluation.declared import Declared, together, warmup_share
from nashcast.evaluation.federation_methods import FEDERATION
from nashcast.evaluation.methods import PERSISTENCE
from nashcast.evaluation.rows import SURE
from nashcast.records.study import Column, Figure, Line, Panel, Study, Table
from private_information import methods
from private_information.ratios import BESIDE, interval, ratios, summary

ALONE = "best owner alone"
_SHOWN = (FEDERATION, methods.JOINT, methods.ML_POLY, methods.STACKING, methods.STACKING_ALL, methods.POOLED)


def study_of(
    rows: Sequence[dict[str, Any]], streams: Sequence[Declared], agents: str, seeds: Sequence[int],
    missing: Mapping[str, str],
) -> Study:  # fmt: skip
    """streams: those that were run.   agents: the kind.   missing: streams that could not be opened, and why."""
    arrays: dict[str, np.ndarray] = {}
    labels = [each.label for each in streams]
    tables = [ratios_table(rows), exchange_table(rows), *(stream_table(label, rows) for label in labels)]
    return Study(
        "private-evaluation", f"Owners with private inputs, {agents} agents", "", seeds=list(seeds),
        settings={"warm-up": warmup_share(), "agents": agents, "streams": labels}, notes=notes(rows, missing),
        tables=[table for table in tables if table.rows], figures=figures(rows, streams, arrays), arrays=arrays,
    )  # fmt: skip


def ratios_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Each ratio with a star where the difference is sure."""
    shown = {
        "persistence": "÷ persistence", "ml_poly": "÷ ML-Poly", "no_game": "÷ no game", "joint": "÷ joint game alone",
        "alone": "÷ best owner alone", "mean": "÷ mean", "boa": "÷ BOA", "stacking": "÷ stacking",
        "stacking_all": "÷ stacking of all experts", "papers": "÷ paper's game", "pooled": "÷ pooled regression",
        "pooled_federation": "÷ pooled federation", "cost": "cost of the fifth owner",
    }  # fmt: skip
    found = []
    for line in ratios(rows):
        cells = {key: _starred(line[key], line.get(f"{key}_p")) for key in shown}
        found.append({"stream": line["stream"], "owners": line["owners"], **cells})
    columns = [Column("stream", "stream"), Column("owners", "owners", "int")]
    columns += [Column(key, words, "mark") for key, words in shown.items()]
    return Table(
        "The federation's error after the warm-up as a multiple of others'", columns, found,
        {"*": f"Diebold–Mariano p < {SURE}, two-sided"},
    )  # fmt: skip


def _starred(ratio: float | None, p: float | None) -> str | None:
    return None if ratio is None else f"{ratio:.3f}" + ("*" if p is not None and p < SURE else "")


def exchange_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Rounds and bytes of each method, on the stream with most owners."""
    most = max((row["owners"] for row in rows), default=0)
    stream = next((row["stream"] for row in rows if row["owners"] == most), "")
    here = [row for row in rows if row["stream"] == stream and row["family"] != "agents" and row["bytes"] is not None]
    columns = [
        Column("method", "method"), Column("rounds", "rounds a step", "int"), Column("bytes", "bytes a step", "int"),
        Column("us_per_step", "µs a step, all agents", "int"),
    ]  # fmt: skip
    found = [
        {"method": row["method"], "rounds": int(row["rounds"]), "bytes": int(row["bytes"])}
        | {"us_per_step": round(row["us_per_step"])}
        for row in here
    ]
    return Table(f"What {most} owners and the server exchange in a step ({stream})", columns, found)


def stream_table(stream: str, rows: Sequence[dict[str, Any]]) -> Table:
    columns = [
        Column("method", "method"), Column("mse_after_warmup", "error after the warm-up", "error"),
        Column("skill", "skill", "ratio"), Column("dm_p", "p", "ratio"), Column("rounds", "rounds", "int"),
        Column("bytes", "bytes", "int"), Column("why", "why not run"),
    ]  # fmt: skip
    here = [
        row | {key: None if row[key] is None else int(row[key]) for key in ("rounds", "bytes")}
        for row in rows
        if row["stream"] == stream
    ]
    here.sort(key=lambda row: (row["mse_after_warmup"] is None, row["mse_after_warmup"] or 0.0))
    return Table(stream, columns, here)


def notes(rows: Sequence[dict[str, Any]], missing: Mapping[str, str]) -> list[str]:
    found, lines = [], ratios(rows)
    for group, total in summary(rows).items():
        words = []
        for key, name in {**BESIDE, "cost": "itself without the fifth owner"}.items():
            if key not in total:
                continue
            each, own = total[key], [line[key] for line in lines if (line["group"] or "others") == group and line[key]]
            low, high = interval(own)
            words.append(
                f"{name} {each['mean']:.3f} ({low:.3f} to {high:.3f}; worst {each['worst']:.3f}, "
                f"{each['worst_stream']}; better with p < {SURE} on {each['surely_better']}, worse on "
                f"{each['surely_worse']})"
            )
        found.append(f"{group}, {total['streams']} streams, the federation's error ÷ that of: {'; '.join(words)}.")
    found.append(
        f"Geometric means over streams, with 95 % intervals by resampling streams. The first {warmup_share():.0%} of "
        "every stream is the warm-up, in which regressions and stacking choose their forgetting (1, 0.998 or 0.99); "
        "the score is the rest. p-values are not corrected for the number of comparisons. ML-Poly and BOA mix "
        "persistence, running means and all decoders of all agents; stacking is an online ridge regression with free "
        "weights, over one forecast of each agent or over all experts."
    )
    found.append(
        "Bytes are those of the numbers that cross between owners and server in a step, all owners together, both "
        "ways, 8 bytes a number. The pooled methods need every input in one place."
    )
    return found + [f"Not run: {line}." for line in together(missing)]


def figures(rows: Sequence[dict[str, Any]], streams: Sequence[Declared], arrays: dict[str, np.ndarray]) -> list[Figure]:
    """Error against the correlation of what the owners know, over the simulated streams that have one."""
    by_place = {(row["stream"], row["method"]): row["mse_after_warmup"] for row in rows}
    known = {dict(each.options)["correlation"]: each.label for each in streams if "correlation" in dict(each.options)}
    known = {rho: label for rho, label in sorted(known.items()) if by_place.get((label, PERSISTENCE))}
    if len(known) < 2:
        return []
    arrays["correlation"], lines = np.array(list(known)), []
    for name in (*_SHOWN, ALONE):
        errors = [_error(rows, label, name) / by_place[label, PERSISTENCE] for label in known.values()]
        if np.isfinite(errors).all():
            arrays[f"correlation.{name}"] = np.array(errors)
            lines.append(Line(name, f"correlation.{name}", "correlation", "line+points"))
    caption = (
        "Mean squared error after the warm-up as a multiple of persistence's; four owners with one input each, any two "
        "of which are correlated as much as the axis says."
    )
    panel = Panel("simulated owners", "correlation of the owners' inputs", "error / persistence's", lines, log_y=True)
    return [Figure("correlation", "Error against how much the owners' knowledge overlaps", caption, [panel])]


def _error(rows: Sequence[dict[str, Any]], stream: str, name: str) -> float:
    here = [row for row in rows if row["stream"] == stream and row["mse_after_warmup"] is not None]
    some = [row["mse_after_warmup"] for row in here if row["family"] == "agents" and name == ALONE]
    some += [row["mse_after_warmup"] for row in here if row["method"] == name]
    return min(some, default=float("nan"))
