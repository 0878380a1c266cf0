"""`make bench`: measure every table on this machine and keep the results beside this file."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import numba
import numpy as np
from speed import games
from speed.command import line, table_head

from nashcast import __version__

HERE = Path(__file__).parent
# Other work on the machine comes in bursts longer than one measurement: go round more than once.
ROUNDS = 3


def processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [row.split(":")[1].strip() for row in info.read_text().splitlines() if row.startswith("model name")]
    return names[0] if names else platform.processor()


def main() -> None:
    cases = games.paper_cases() + games.growth_cases()
    rounds = []
    for turn in range(ROUNDS):
        rounds.append([])
        for row in games.measure(cases):
            rounds[-1].append(row)
            print(f"\rround {turn + 1} of {ROUNDS}: {len(rounds[-1])} of {len(cases)} games", end="", flush=True)
    print()
    rows = [games.best_of(same) for same in zip(*rounds, strict=True)]
    exponents = {kind: games.growth_exponent(rows, kind == "noisy") for kind in ("deterministic", "noisy")}
    machine = {
        "processor": processor(),
        "threads": numba.get_num_threads(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "nashcast": __version__,
    }
    record = {"machine": machine, "growth_exponents": exponents, "rows": rows}
    (HERE / "results" / "game.json").write_text(json.dumps(record, indent=1) + "\n")
    page = [
        "# Time per game",
        "",
        "Written by `make bench`; do not edit. " + ", ".join(f"{key} {value}" for key, value in machine.items()) + ".",
        "",
        "- compiled: called from compiled code, one core below 8192 agents, all threads above;",
        "- from Python: one `solve_game` call, checks and allocation included;",
        "- dense: the paper's matrices in NumPy (`tests/support/reference/dense_game.py`), in the same run;",
        "- floor ×: time in units of one pass over the game's inputs and outputs at this machine's copy bandwidth,",
        "  measured at the same moment (for a small game, which stays in the cache, that says little);",
        "- MB: peak memory of the whole process.",
        "",
        "Growth exponent between 10³ and 10⁶ agents: "
        + ", ".join(f"{kind} {value:.2f}" for kind, value in exponents.items())
        + ".",
        "",
        *table_head(),
        *(line(row) for row in rows),
        "",
    ]
    (HERE / "results" / "game.md").write_text("\n".join(page))
    print(f"wrote {HERE.name}/results/game.md and game.json")


if __name__ == "__main__":
    main()
