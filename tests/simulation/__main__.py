"""Run seeds: `python -m simulation 17` one of them, with a trace; `python -m simulation 0-999` many, failures only."""

from __future__ import annotations

import logging
import sys
import time
import traceback

from simulation.seeds import run_seed, run_seeds


def main(words: list[str]) -> int:
    first, _, last = (words or ["0"])[0].partition("-")
    if not last:
        logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
        try:
            print(run_seed(int(first), trace=print))
        except Exception:
            traceback.print_exc()
            return 1
        return 0
    began = time.process_time()
    failures, counts = run_seeds(
        range(int(first), int(last) + 1), lambda seed, reason: print(f"seed {seed}: {reason}", flush=True)
    )
    print(f"{len(failures)} failures; {counts}; {time.process_time() - began:.0f} s of CPU")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
