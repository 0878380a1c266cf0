"""What the rows of the private-information benchmark come to: ratios by stream, and the worst and the mean by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any

import numpy as np

from nashcast.evaluation.evaluate import Outcome
from nashcast.evaluation.federation_methods import FEDERATION, WITHOUT_GAME
from nashcast.evaluation.methods import PERSISTENCE
from nashcast.evaluation.rows import KEYS, SURE, rows_of
from private_information import methods

PRIVATE_KEYS = (*KEYS, "owners", "rounds", "bytes")
# The federation's error is divided by that of each of these.
BESIDE = {
    "ml_poly": methods.ML_POLY, "no_game": WITHOUT_GAME, "joint": methods.JOINT, "papers": methods.PAPERS,
    "mean": methods.MEAN, "boa": methods.BOA, "stacking": methods.STACKING, "stacking_all": methods.STACKING_ALL,
    "pooled": methods.POOLED, "pooled_federation": methods.POOLED_FEDERATION, "persistence": PERSISTENCE,
}  # fmt: skip


def private_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """PRIVATE_KEYS and what `rows_of` adds; group: of the stream."""
    rows = rows_of(outcomes)
    for row, each in zip(rows, outcomes, strict=True):
        result = each.result or {}
        row |= {"owners": len(each.stream.open().owners), "group": each.stream.group, "beside": each.stream.beside}
        row |= {"rounds": result.get("rounds"), "bytes": result.get("bytes")}
    return rows


def ratios(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """By stream: the federation's error after the warm-up as a multiple of others', and the p-value of each difference.

    alone: of the owner who is best alone, in hindsight.   cost: of the fifth owner, where there is one: the error as a
    multiple of the federation's on the same stream without that owner.
    """
    found, own = [], {row["stream"]: row["mse_after_warmup"] for row in rows if row["method"] == FEDERATION}
    for stream in dict.fromkeys(row["stream"] for row in rows):
        here = {row["method"]: row for row in rows if row["stream"] == stream and row["mse_after_warmup"] is not None}
        if FEDERATION not in here:
            continue
        line: dict[str, Any] = {key: here[FEDERATION][key] for key in ("stream", "group", "owners")}
        for key, name in BESIDE.items():
            other = here.get(name)
            line[key] = own[stream] / other["mse_after_warmup"] if other and other["mse_after_warmup"] else None
            line[f"{key}_p"] = other["dm_p"] if other else None
        alone = [row["mse_after_warmup"] for row in here.values() if row["family"] == "agents"]
        line["alone"] = own[stream] / min(alone) if alone and min(alone) else None
        beside = own.get(here[FEDERATION]["beside"])
        line["cost"] = own[stream] / beside if beside else None
        found.append(line)
    return found


def geometric_mean(values: Sequence[float]) -> float:
    return exp(sum(map(log, values)) / len(values))


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By group and other method: geometric mean of the ratios, worst with its stream, and how many differ surely."""
    lines, found = ratios(rows), {}
    for group in dict.fromkeys(line["group"] or "others" for line in lines):
        here = [line for line in lines if (line["group"] or "others") == group]
        found[group] = {"streams": len(here)}
        for key in (*BESIDE, "alone", "cost"):
            known = [line for line in here if line[key]]
            if not known:
                continue
            worst = max(known, key=lambda line: line[key])
            sure = [line for line in known if (line.get(f"{key}_p") or 1.0) < SURE]
            found[group][key] = {
                "mean": geometric_mean([line[key] for line in known]), "worst": worst[key],
                "worst_stream": worst["stream"], "surely_better": sum(line[key] < 1.0 for line in sure),
                "surely_worse": sum(line[key] > 1.0 for line in sure),
            }  # fmt: skip
    return found


def interval(values: Sequence[float], draws: int = 4000) -> tuple[float, float]:
    """A 95 % interval of the geometric mean over streams, by resampling streams; the same each time.

    >>> interval([0.9, 0.9, 0.9])
    (0.9, 0.9)
    """
    logs = np.log(values)
    picked = np.random.default_rng(0).integers(0, len(logs), (draws, len(logs)))
    low, high = np.quantile(logs[picked].mean(axis=1), [0.025, 0.975])
    return round(exp(low), 12), round(exp(high), 12)
