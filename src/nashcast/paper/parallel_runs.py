"""Many parallel runs of the paper, each result saved when computed: a killed study continues where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nashcast.paper.runs import OURS, Way, run
from nashcast.paper.settings import MODELS, SEEDS, Setting
from nashcast.records.keyed_runs import run_missing
from nashcast.records.results import Results, settings_key

# Increased whenever a change of the code changes the numbers, so that older results are not reused.
NUMBERS = 3


class Task(NamedTuple):
    """One run."""

    setting: Setting
    seed: int
    way: Way = OURS


class Outcome(NamedTuple):
    """mse: infinite if the run diverged.   seconds: duration on one core.   fallbacks: see `Replay`."""

    mse: float
    seconds: float
    fallbacks: int = 0


@dataclass(frozen=True)
class Options:
    """Options of a study.

    folder: folder of results.   seeds: of the random encoders.   models: families.   jobs: parallel runs.
    as_published: also as the published code does it.   progress: called as progress(label, done, total).
    """

    folder: Path
    seeds: Sequence[int] = SEEDS
    models: Sequence[str] = MODELS
    jobs: int | None = None
    as_published: bool = False
    progress: Callable[[str, int, int], None] | None = None

    def tell(self, label: str, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(label, done, total)


def outcomes(tasks: Iterable[Task], options: Options, label: str) -> dict[Task, Outcome]:
    """Every task's outcome, read from the folder if it is there."""
    keys = {task: _key(task) for task in dict.fromkeys(tasks)}
    # Tasks that share encoders are adjacent, so that their features are computed once.
    order = sorted(keys, key=_shared)
    # Compiled loops run in parallel threads; the remaining Python code holds the GIL.
    known = run_missing(
        {keys[task]: task for task in order}, _result, Results(options.folder / "results"), jobs=options.jobs,
        threads=True, progress=partial(options.tell, label),
    )  # fmt: skip
    return {task: _outcome(known[key]) for task, key in keys.items()}


def _result(task: Task) -> dict:
    start = time.thread_time()
    found = run(*task)
    mse = float(found.mse) if np.isfinite(found.mse) else np.inf
    return {"mse": repr(mse), "seconds": time.thread_time() - start, "fallbacks": int(found.fallbacks)}


def mean(found: dict[Task, Outcome], setting: Setting, seeds: Sequence[int], way: Way = OURS) -> float:
    """The mean error over seeds."""
    return float(np.mean([found[Task(setting, seed, way)].mse for seed in seeds]))


def spread(found: dict[Task, Outcome], setting: Setting, seeds: Sequence[int], way: Way = OURS) -> tuple[float, float]:
    """The smallest and the largest error over seeds."""
    errors = [found[Task(setting, seed, way)].mse for seed in seeds]
    return min(errors), max(errors)


def _key(task: Task) -> str:
    departures = list(task.way.departures) if task.way.name == "published" else []
    return settings_key(
        {"numbers": NUMBERS, "setting": task.setting.described(), "seed": task.seed, "way": [task.way.name, departures]}
    )


def _outcome(result: dict) -> Outcome:
    return Outcome(float(result["mse"]), float(result["seconds"]), int(result["fallbacks"]))


def _shared(task: Task) -> tuple:
    of = task.setting
    return of.model, of.dataset, of.agents, of.features, of.noise, task.seed, str(of.rounds), of.causal
