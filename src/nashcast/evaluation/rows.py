"""The rows of an evaluation, one for each stream and method, in machine-readable form, and their summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nashcast.evaluation.declared import warmup_share
from nashcast.evaluation.evaluate import Outcome
from nashcast.evaluation.federation_methods import FEDERATION
from nashcast.evaluation.method import PEERS
from nashcast.evaluation.methods import PERSISTENCE
from nashcast.evaluation.scoring import as_number, unpacked
from nashcast.evaluation.statistics.significance import diebold_mariano
from nashcast.intervals.intervals import COVERAGES
from nashcast.runs.single_run import skill

KEYS = ("stream", "method", "mse", "mse_after_warmup", "skill", "dm_p", "us_per_step", "coverage90")
# Near the first: worse by at most this factor, or by less than this share of persistence's error, which is rounding
# where an error is 0.
NEAR, ROUNDING = 1.01, 1e-6
SURE = 0.05
# Errors below this share of persistence's error count as equal in averages of ratios over streams.
LEAST = 1e-3


def rows_of(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """KEYS, the family, the chosen settings and, where there is no number, the reason.

    skill: after the warm-up, against persistence.   dm_p: two-sided, after the warm-up, against the federation.
    """
    by_place = {(each.stream.label, each.method.name): each for each in outcomes}
    rows = []
    for each in outcomes:
        label = each.stream.label
        row: dict[str, Any] = dict.fromkeys(KEYS) | {"stream": label, "method": each.method.name}
        row |= {"family": each.method.family, "why": each.why, "choices": ""}
        if each.result is not None:
            result = each.result
            base = by_place[label, PERSISTENCE].result
            after, first = as_number(result["mse_after_warmup"]), as_number((base or {}).get("mse_after_warmup"))
            row |= {"mse": as_number(result["mse"]), "mse_after_warmup": after, "skill": skill(after, first)}
            row |= {"us_per_step": result["us_per_step"], "coverage90": result["coverage"][COVERAGES.index(0.9)]}
            row["dm_p"] = _p_value(each, by_place.get((label, FEDERATION)))
            row["choices"] = ", ".join(dict.fromkeys(choice for choice in result["choices"] if choice))
        rows.append(row)
    return rows


def scored(losses: np.ndarray) -> np.ndarray:
    """Those after the warm-up."""
    return losses[int(warmup_share() * len(losses)) :]


def _p_value(outcome: Outcome, federation: Outcome | None) -> float | None:
    if federation is None or federation.result is None or outcome is federation or outcome.result is None:
        return None
    own, other = (scored(unpacked(each.result["losses"])) for each in (outcome, federation) if each.result)
    p = diebold_mariano(own, other)[1]
    return None if np.isnan(p) else p


def overview(rows: Sequence[dict[str, Any]], key: str = "mse_after_warmup") -> list[dict[str, Any]]:
    """For each stream the federation compared with its best peer and with persistence."""
    found = []
    for stream in dict.fromkeys(row["stream"] for row in rows):
        here = {row["method"]: row for row in rows if row["stream"] == stream and row[key] is not None}
        peers = [row for row in here.values() if row["family"] in PEERS]
        if FEDERATION not in here or not peers:
            continue
        own, base = here[FEDERATION][key], here[PERSISTENCE][key]
        best = min(peers, key=lambda row: row[key])
        found.append({
            "stream": stream, "federation": own, "peer": best["method"], "peer_mse": best[key],
            "ratio": _ratio(own, best[key]), "p": best["dm_p"], "rank": 1 + sum(row[key] < own for row in peers),
            "peers": len(peers), "persistence_ratio": _ratio(own, base),
            "near": _near(own, best[key], base),
        })  # fmt: skip
    return found


def head_to_head(rows: Sequence[dict[str, Any]], key: str = "mse_after_warmup") -> list[dict[str, Any]]:
    """Each peer over all streams where it and the federation have an error, the closest first; and the federation.

    mean, median: of the peer's error as a multiple of the federation's, the mean geometric, both errors no less than
    LEAST of persistence's.   near: streams where it is first or near among the peers and the federation.
    better, worse: streams where its error is smaller or larger than the federation's; surely: with p < 0.05.
    """
    found: dict[str, dict[str, Any]] = {}
    ratios: dict[str, list[float]] = {}
    for stream in dict.fromkeys(row["stream"] for row in rows):
        here = {row["method"]: row for row in rows if row["stream"] == stream and row[key] is not None}
        if FEDERATION not in here:
            continue
        running = [row for row in here.values() if row["family"] in PEERS or row["method"] == FEDERATION]
        own, base, best = here[FEDERATION][key], here[PERSISTENCE][key], min(row[key] for row in running)
        for row in running:
            empty = dict.fromkeys(("streams", "near", "better", "surely_better", "worse", "surely_worse"), 0)
            line = found.setdefault(row["method"], {"method": row["method"], "family": row["family"], **empty})
            surely = row["dm_p"] is not None and row["dm_p"] < SURE
            line["streams"] += 1
            line["near"] += _near(row[key], best, base)
            for word, holds in (("better", row[key] < own), ("worse", row[key] > own)):
                line[word] += holds
                line[f"surely_{word}"] += holds and surely
            least = max(LEAST * base, 1e-300)
            ratios.setdefault(row["method"], []).append(max(row[key], least) / max(own, least))
    for name, line in found.items():
        line |= {"mean": float(np.exp(np.mean(np.log(ratios[name])))), "median": float(np.median(ratios[name]))}
    return sorted(found.values(), key=lambda line: (line["method"] != FEDERATION, line["mean"]))


def _near(own: float, best: float, persistence: float) -> bool:
    return own <= NEAR * best or own - best <= ROUNDING * persistence


def _ratio(own: float, other: float) -> float:
    if other > 0.0:
        return own / other
    return 1.0 if own == other else float("inf")


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Summary of the evaluation, by the error after the warm-up and by that of all steps."""
    found: dict[str, Any] = {}
    for key in ("mse_after_warmup", "mse"):
        streams = overview(rows, key)
        if streams:
            worst = max(streams, key=lambda row: row["persistence_ratio"])
            near = [row for row in streams if row["near"]]
            found[key] = {
                "streams": len(streams), "first": sum(row["ratio"] <= 1.0 for row in streams),
                "first_or_within_1_percent": len(near), "share": len(near) / len(streams),
                "worst_ratio_to_persistence": worst["persistence_ratio"], "worst_stream": worst["stream"],
            }  # fmt: skip
    return found
