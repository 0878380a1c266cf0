"""Many simulations one after the other."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from simulation.federation import NAMES
from simulation.world import Outcome, World
from support.remote.brokers import found


@cache
def _enrolled() -> tuple[Path, tempfile.TemporaryDirectory]:
    kept = tempfile.TemporaryDirectory(prefix="simulation-")
    return found(Path(kept.name) / "tide", *NAMES), kept


def run_seed(seed: int, trace=None) -> Outcome:
    """Raises what went wrong."""
    folder, kept = _enrolled()
    work = Path(kept.name) / f"seed-{seed}"
    work.mkdir()
    try:
        return World(seed, folder, work, trace).run()
    finally:
        shutil.rmtree(work)


def run_seeds(seeds: Iterable[int], tell: Callable[[int, str], None]) -> tuple[dict[int, str], Counter[str]]:
    """Failures by seed, and what was counted over all seeds. tell: called with each failure."""
    failures, counts = {}, Counter()
    for seed in seeds:
        try:
            outcome = run_seed(seed)
            counts.update({name: value for name, value in outcome._asdict().items() if isinstance(value, int)})
        except Exception as error:
            failures[seed] = f"{type(error).__name__}: {error}"
            tell(seed, failures[seed])
        counts["seeds"] += 1
    return failures, counts
