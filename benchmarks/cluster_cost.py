"""`python benchmarks/cluster_cost.py`: what a default stream costs in a cluster, in CPU time and memory.

Three brokers, one machine with one worker, and one that forwards. Observations are posted one at a time by eight
threads. Prints JSON: milliseconds of CPU for each observation by process, megabytes for each further stream, and
megabytes of a snapshot. Milliseconds of one observation times observations per millisecond are cores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
sys.path[:0] = [str(TESTS / "service"), str(TESTS / "service" / "cluster")]

from support.service.clustering import Brokers, Machine, stream_files, until, value  # noqa: E402

SETTINGS = {"seed": 7, "serve": {"x_dim": 1, "y_dim": 1}}
_TICKS = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found = [pid]
    for parent in found:
        for thread in Path(f"/proc/{parent}/task").glob("*/children"):
            found += map(int, thread.read_text().split())
    return found


def cpu_seconds(pids: list[int]) -> float:
    total = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / _TICKS
    return total


def megabytes(pids: list[int]) -> float:
    """What processes share counts once."""
    total = 0
    for pid in pids:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def post(machine: Machine, names: list[str], steps: range) -> None:
    """One observation a post, eight at a time."""

    def some(mine: list[str]) -> None:
        with machine.client(retries=5) as client:
            for step in steps:
                for name in mine:
                    row = {"step": step, "x": value(name, step - 1), "y": value(name, step)}
                    client.stream(name).post([row])

    threads = [threading.Thread(target=some, args=(names[i::8],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    def computed() -> bool:
        with machine.client(retries=5) as client:
            return not any(row["behind"] for row in client.streams() if row["name"] in names)

    until(computed, "everything is computed", 300.0)


def measured(folder: Path, streams: int, steps: int) -> dict[str, Any]:
    names = [f"stream-{i}" for i in range(streams)]
    few = names[: streams // 5]
    files = stream_files(folder / "streams", few, "seed = 7\n[serve]\nx_dim = 1\ny_dim = 1\n")
    brokers = Brokers(folder, 3)
    machine = front = None
    try:
        brokers.wait()
        machine = Machine(folder / "machine", files, brokers).wait()
        front = Machine(folder / "front", files, brokers, workers=0).wait()
        every = machine
        until(lambda: len(every.client(retries=5).streams()) == len(few), "streams are there")
        post(machine, few, range(steps))
        small = megabytes(family(machine.process.pid))
        with machine.client(retries=5) as client:
            for name in names[len(few) :]:
                client.make_stream(name, SETTINGS)
        post(machine, names[len(few) :], range(steps))
        large = megabytes(family(machine.process.pid))
        servers = [process.pid for process in brokers.processes]
        serving, *workers = family(machine.process.pid)
        groups = {"front": [serving], "worker": workers, "brokers": servers, "forwarding": [front.process.pid]}
        count = streams * steps
        before = {name: cpu_seconds(pids) for name, pids in groups.items()}
        began = time.monotonic()
        post(machine, names, range(steps, 2 * steps))
        seconds = time.monotonic() - began
        direct = {name: 1000 * (cpu_seconds(pids) - before[name]) / count for name, pids in groups.items()}
        before = cpu_seconds(groups["forwarding"])
        post(front, names, range(2 * steps, 3 * steps))
        direct["forwarding"] = 1000 * (cpu_seconds(groups["forwarding"]) - before) / count
        snapshots = list((folder / "machine" / "journal" / "cache" / "snapshots").iterdir())
        size = sum(path.stat().st_size for path in snapshots[0].iterdir())
        return {
            "streams": streams, "observations": count, "cpu_ms_per_observation": _rounded(direct),
            "mb_per_stream": round((large - small) / (streams - len(few)), 2), "mb_of_machine": round(small, 1),
            "mb_of_brokers": round(megabytes(servers), 1), "snapshot_mb": round(size / 2**20, 2),
            "observations_per_s": round(count / seconds), "load_average": round(os.getloadavg()[0], 1),
        }  # fmt: skip
    finally:
        for each in (machine, front):
            if each is not None:
                each.close()
        brokers.close()


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {name: round(each, 3) for name, each in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=50, help="number of streams (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=40, help="observations of each, thrice (default: %(default)s)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measured(Path(folder), chosen.streams, chosen.steps), indent=1))


if __name__ == "__main__":
    main()
