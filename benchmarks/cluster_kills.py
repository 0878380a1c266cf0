"""`python benchmarks/cluster_kills.py 100`: kill -9 of machines and brokers of a cluster at random moments.

Three brokers, two machines that compute six default streams, and one that forwards, all real processes. Each kill takes
one of the two machines or one of the brokers. Prints JSON: lost, doubled (entries of the log against what was
acknowledged), different (forecasts against those of an undisturbed service), and seconds until every stream takes posts
and forecasts again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
sys.path[:0] = [str(TESTS)]

from support.service.clustering import Kills, logged, undisturbed  # noqa: E402
from support.service.served import Served  # noqa: E402


def measured(folder: Path, kills: int, streams: int = 6, seed: int = 1, told=lambda *_: None) -> dict[str, Any]:
    """What became of so many kills."""
    cluster = Kills(folder, streams, seed)
    began = time.monotonic()
    try:
        cluster.run(kills, told)
        found = asyncio.run(logged(cluster.brokers.url))
    finally:
        cluster.close()
    seconds, lost, doubled, different, compared = time.monotonic() - began, 0, 0, 0, 0
    alone = folder / "alone"
    alone.mkdir()
    with Served(alone, path=folder / "streams") as served:
        for producer in cluster.producers:
            entries = Counter(found.get(producer.name, []))
            expected = {(0, step) for step in range(producer.steps)}
            expected |= {(1, step) for kind, step in producer.forecasts if kind == "label"}
            lost += len(expected - entries.keys())
            doubled += sum(count - 1 for count in entries.values())
            other = undisturbed(served.url, producer)
            compared += len(producer.forecasts)
            different += sum(other.forecasts.get(key) != made for key, made in producer.forecasts.items())
    times = sorted(each for _, each in cluster.takeovers)
    killed = Counter(victim.split()[0] for victim, _ in cluster.takeovers)
    worst = {kind: round(max(s for v, s in cluster.takeovers if v.startswith(kind)), 2) for kind in killed}
    return {
        "kills": len(times), "of": dict(killed), "lost": lost, "doubled": doubled, "different": different,
        "acknowledged": compared, "tries": sum(producer.tries for producer in cluster.producers),
        "takeover_s": {"p50": round(times[len(times) // 2], 2), "max": round(times[-1], 2), "max_of": worst},
        "seconds": round(seconds, 1), "load_average": round(os.getloadavg()[0], 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=100, help="number of kills (default: %(default)s)")
    parser.add_argument("--streams", type=int, default=6, help="number of streams (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of victims and moments (default: %(default)s)")
    chosen = parser.parse_args()

    def told(k: int, victim: str, seconds: float) -> None:
        print(f"kill {k}: {victim}, {seconds:.2f} s", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measured(Path(folder), chosen.kills, chosen.streams, chosen.seed, told), indent=1))


if __name__ == "__main__":
    main()
