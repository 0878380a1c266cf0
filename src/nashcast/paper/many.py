"""Many runs of the paper side by side, each result kept as soon as it is there: a killed study goes on where it was."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nashcast.paper.runs import OURS, Way, run
from nashcast.paper.settings import MODELS, SEEDS, Setting
from nashcast.records.results import Results, settings_key

# Raised whenever a change of ours moves the numbers: older results are then not taken for new ones.
NUMBERS = 3


class Task(NamedTuple):
    """One run."""

    setting: Setting
    seed: int
    way: Way = OURS


class Outcome(NamedTuple):
    """mse: infinite where the run diverged.   seconds: what it took, on one core.   fallbacks: see `Replay`."""

    mse: float
    seconds: float
    fallbacks: int = 0


@dataclass(frozen=True)
class Options:
    """What a study is asked for.

    folder: where results are kept.   seeds: of the random encoders.   models: which families.   jobs: runs at a time.
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
    """Every task's outcome, from the folder where it is there already."""
    keys = {task: _key(task) for task in dict.fromkeys(tasks)}
    store = Results(options.folder / "results")
    known = store.done()
    found = {task: _outcome(known[key]) for task, key in keys.items() if key in known}
    # Those that share encoders stand together: their features are then made once.
    missing = sorted((task for task in keys if task not in found), key=_shared)
    done, total = len(found), len(keys)
    if not missing:
        return found
    options.tell(label, done, total)
    with store.writer() as writer, ThreadPoolExecutor(options.jobs or os.cpu_count()) as pool:

        def one(task: Task) -> tuple[Task, Outcome]:
            start = time.thread_time()
            found = run(*task)
            mse = float(found.mse) if np.isfinite(found.mse) else np.inf
            result = Outcome(mse, time.thread_time() - start, int(found.fallbacks))
            writer.add(keys[task], {"mse": repr(result.mse), "seconds": result.seconds, "fallbacks": result.fallbacks})
            return task, result

        try:
            # Compiled loops run side by side; what is left of Python takes turns.
            for task, result in pool.map(one, missing):
                found[task] = result
                done += 1
                options.tell(label, done, total)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return found


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
