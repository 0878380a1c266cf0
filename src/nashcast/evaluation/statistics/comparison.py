"""What an evaluation over many streams comes to: ratios with intervals, ranks, and the worst cases.

Three questions, three numbers. How large is the error beside a peer's? The geometric mean ratio, its interval from
resampled streams. Is the difference more than chance? Wilcoxon's signed-rank test on the log ratios, Holm's correction
over all peers. Which methods cannot be told apart? Mean ranks with Nemenyi's critical difference, all pairs at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import Any

import numpy as np

from nashcast.evaluation.federation_methods import FEDERATION
from nashcast.evaluation.method import PEERS
from nashcast.evaluation.methods import PERSISTENCE
from nashcast.evaluation.rows import LEAST, overview
from nashcast.evaluation.statistics.critical_difference import mean_ranks
from nashcast.evaluation.statistics.ratio_interval import geometric_mean_interval
from nashcast.evaluation.statistics.signed_rank import holm, signed_rank_p
from nashcast.records.study import Column, Table

SEED = 2024  # of the resamples
LONG = 500  # steps from which a stream must not be worse than persistence
FAR = 1.10  # ratio to the best peer that counts as far behind
TITLE = "The federation's error as a multiple of each peer's, over all streams"


def comparison(
    rows: Sequence[dict[str, Any]], steps: Mapping[str, int], key: str = "mse_after_warmup"
) -> dict[str, Any]:
    """peers: a line for each, those hardest to beat first.   steps: of each stream.

    In a line: ratio, low, high: the federation's error over the peer's, geometric mean and interval, both errors no
    less than LEAST of persistence's; p: signed ranks; p_holm: corrected; rank: mean over streams; apart: whether the
    mean ranks differ by more than the critical difference.   A peer that failed on a stream has the last rank there and
    is left out of that stream's ratios.
    """
    errors = _errors(rows, key)
    names = list(dict.fromkeys(name for here in errors.values() for name in here))
    families = {row["method"]: row["family"] for row in rows}
    # Without the federation or persistence a stream says nothing of either.
    streams = [stream for stream, here in errors.items() if FEDERATION in here and PERSISTENCE in here]
    peers = [name for name in names if name != FEDERATION and any(name in errors[stream] for stream in streams)]
    lines = []
    for name in peers:
        both = [errors[stream] for stream in streams if name in errors[stream]]
        ratios = np.array([_ratio(here, name) for here in both])
        interval = geometric_mean_interval(ratios, generator=np.random.default_rng(SEED))
        lines.append({
            "method": name, "family": families[name], "streams": len(both), "ratio": interval.mean,
            "low": interval.low, "high": interval.high, "better": int((ratios < 1.0).sum()),
            "p": signed_rank_p(np.log(ratios)), "us_per_step": _time(rows, name),
        })  # fmt: skip
    for line, p in zip(lines, holm([line["p"] for line in lines]), strict=True):
        line["p_holm"] = p
    found: dict[str, Any] = {"streams": len(streams), "us_per_step": _time(rows, FEDERATION)}
    if lines and len(streams) > 1:
        table = [[errors[stream].get(name, inf) for name in (FEDERATION, *peers)] for stream in streams]
        ranks = mean_ranks(np.array(table))
        found |= {
            "rank": float(ranks.ranks[0]),
            "friedman_p": ranks.p,
            "critical_difference": ranks.critical_difference,
        }
        for line, rank in zip(lines, ranks.ranks[1:], strict=True):
            line |= {"rank": float(rank), "apart": bool(abs(rank - ranks.ranks[0]) > ranks.critical_difference)}
    return found | worst_cases(rows, steps, key) | {"peers": sorted(lines, key=lambda line: -line["ratio"])}


def worst_cases(rows: Sequence[dict[str, Any]], steps: Mapping[str, int], key: str) -> dict[str, Any]:
    """The largest ratios to the best peer of each stream and to persistence; and how many streams are first or near."""
    streams = overview(rows, key)
    if not streams:
        return {}
    peer = max(streams, key=lambda row: row["ratio"])
    base = max(streams, key=lambda row: row["persistence_ratio"])
    long = [row for row in streams if steps[row["stream"]] >= LONG]
    long_base = max(long, key=lambda row: row["persistence_ratio"]) if long else None
    return {
        "near": sum(row["near"] for row in streams),
        "first": sum(row["ratio"] <= 1.0 for row in streams),
        "within_10_percent": sum(row["ratio"] <= FAR for row in streams),
        "worst_to_best_peer": {"stream": peer["stream"], "peer": peer["peer"], "ratio": peer["ratio"]},
        "worst_to_persistence": {"stream": base["stream"], "ratio": base["persistence_ratio"]},
        "worst_to_persistence_long": long_base
        and {"stream": long_base["stream"], "ratio": long_base["persistence_ratio"]},
    }


def comparison_table(found: Mapping[str, Any]) -> Table:
    columns = [
        Column("method", "peer"), Column("family", "family"), Column("streams", "streams", "int"),
        Column("ratio", "federation ÷ peer", "ratio"), Column("interval", "95 % interval"),
        Column("better", "better on", "int"), Column("p", "p", "ratio"), Column("p_holm", "p, Holm", "ratio"),
        Column("rank", "mean rank", "ratio"), Column("seconds", "a step", "seconds"),
    ]  # fmt: skip
    lines = [
        line
        | {"interval": f"{line['low']:.3f} to {line['high']:.3f}"}
        | {"seconds": None if line["us_per_step"] is None else 1e-6 * line["us_per_step"]}
        for line in found["peers"]
    ]
    return Table(TITLE, columns, lines)


def comparison_notes(found: Mapping[str, Any]) -> list[str]:
    """What the table does not say."""
    if not found["peers"]:
        return []
    total, worst, base = found["streams"], found["worst_to_best_peer"], found["worst_to_persistence"]
    hardest = found["peers"][0]
    sure = [line for line in found["peers"] if line["p_holm"] < 0.05]
    smaller = sum(line["ratio"] > 1.0 for line in found["peers"])
    better, worse = sum(line["ratio"] < 1.0 for line in sure), sum(line["ratio"] > 1.0 for line in sure)
    count = len(found["peers"])
    mean = (
        f"By the geometric mean over {total} streams the peer that is hardest to beat is {hardest['method']}: the "
        f"federation's error is {hardest['ratio']:.3f} of its (95 % interval {hardest['low']:.3f} to "
        f"{hardest['high']:.3f}, streams resampled). Of {count} peers {smaller} have a smaller geometric mean."
    )
    ranks = (
        f"Signed ranks, Holm's correction over the {count} peers: the federation is better than {better} and worse "
        f"than {worse} with p < 0.05."
    )
    notes = [mean, ranks]
    if "rank" in found:
        close = [line["method"] for line in found["peers"] if not line["apart"]]
        notes.append(
            f"Mean rank {found['rank']:.2f} of {count + 1} (Friedman p {found['friedman_p']:.2g}); within the critical "
            f"difference of {found['critical_difference']:.2f} (Nemenyi, all pairs at once, 5 %): "
            f"{', '.join(close) or 'none'}."
        )
    far = found["worst_to_persistence_long"]
    notes.append(
        f"Worst ratio to the best peer of a stream {worst['ratio']:.3f} ({worst['stream']}, {worst['peer']}); at most "
        f"{FAR:.2f} on {found['within_10_percent']} of {total} streams. Worst ratio to persistence {base['ratio']:.3f} "
        f"({base['stream']})"
        + (f", over streams of at least {LONG} steps {far['ratio']:.3f} ({far['stream']})." if far else ".")
    )
    notes.append(f"First or within 1 % of the best peer of each stream: {found['near']} of {total} streams.")
    return notes


def _errors(rows: Sequence[dict[str, Any]], key: str) -> dict[str, dict[str, float]]:
    """By stream and method: peers, and the federation. Without those that were not run or diverge."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if (row["family"] in PEERS or row["method"] == FEDERATION) and row[key] is not None and isfinite(row[key]):
            found.setdefault(row["stream"], {})[row["method"]] = row[key]
    return found


def _ratio(here: Mapping[str, float], name: str) -> float:
    least = max(LEAST * here[PERSISTENCE], 1e-300)
    return max(here[FEDERATION], least) / max(here[name], least)


def _time(rows: Sequence[dict[str, Any]], name: str) -> float | None:
    """Microseconds a step, median over streams."""
    times = [row["us_per_step"] for row in rows if row["method"] == name and row["us_per_step"] is not None]
    return float(np.median(times)) if times else None
