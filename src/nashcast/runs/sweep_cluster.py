"""A sweep's runs on the workers of a Dask scheduler: one task for each setting, saved in the sweep's folder."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nashcast.config.config import Config, parse
from nashcast.errors import InvalidInput, NashcastError
from nashcast.extras import needed
from nashcast.records.results import WHOSE, Results, Writer
from nashcast.runs.sweep import Plan, Progress, Run, Scored, open_scored, run_of, score

# Seconds to wait for the scheduler, and for a first worker.
_CONNECT, _FIRST_WORKER = 10, 60
_opening = threading.Lock()


def run_on_cluster(
    plan: Plan, runs: Sequence[Run], results: Results, address: str, *, progress: Progress | None = None
) -> None:
    """Do all pending runs. If a worker is lost, another repeats its task."""
    distributed = _distributed()
    done = results.done()
    tasks = _tasks(plan, [run for run in runs if run.key not in done], results)
    finished = len(runs) - sum(len(task["seeds"]) for task in tasks)
    if not tasks:
        return
    client = _client(distributed, address)
    try:
        with results.writer() as writer:
            futures = [client.submit(work, task, pure=False) for task in tasks]
            for future in distributed.as_completed(futures, loop=client.loop):
                for key, result in _answer(distributed, future).items():
                    if key not in results.done():  # the worker does not share this machine's disk
                        writer.add(key, result)
                    finished += 1
                if progress is not None:
                    progress(finished, len(runs))
                future.release()
    finally:
        client.close()


def work(task: dict[str, Any]) -> dict[str, Any]:
    """Run one setting with its seeds on a worker. Saves each result before the next run, and returns all."""
    try:
        config = parse(task["settings"], source=task["source"], folder=Path(task["folder"]))
        scored = _scored(config, task["tune_until"])
        if scored.digest != task["digest"]:
            remedy = "Give the workers the same files as this machine."
            raise InvalidInput(f"{config.source}: stream", "other data on a worker than here", remedy)
        results, writer = _shelf(task["results"])
        known = {} if results is None else results.done()
        answers = {}
        for seed in task["seeds"]:
            run = run_of(replace(config, seed=seed))
            # It may have been done before its worker was lost.
            answers[run.key] = known.get(run.key) or score(run.config, scored)
            if writer is not None and run.key not in known:
                writer.add(run.key, answers[run.key])
    except NashcastError as error:
        # As text: exceptions with several arguments cannot be unpickled.
        return {"error": str(error)}
    return answers


def _tasks(plan: Plan, todo: Sequence[Run], results: Results) -> list[dict[str, Any]]:
    by_setting: dict[str, dict[str, Any]] = {}
    for run in todo:
        setting = run_of(replace(run.config, seed=plan.base.seed))
        task = by_setting.get(setting.key)
        if task is None:
            task = by_setting[setting.key] = {
                "settings": setting.config.settings(),
                "source": setting.config.source,
                "folder": str(setting.config.folder.resolve()),
                "results": str(results.folder.resolve()),
                "tune_until": plan.sweep.tune_until,
                "digest": plan.scored(run.config).digest,
                "seeds": [],
            }
        task["seeds"].append(run.config.seed)
    return list(by_setting.values())


def _answer(distributed, future) -> dict[str, Any]:
    try:
        answers = future.result()
    except distributed.scheduler.KilledWorker as error:
        raise NashcastError(f"a setting failed because its workers were lost repeatedly: {error}") from None
    except Exception as error:
        raise NashcastError(f"a run failed on the cluster: {type(error).__name__}: {error}") from error
    if "error" in answers:
        raise NashcastError(answers["error"])
    return answers


def _distributed() -> Any:
    return needed("distributed", "distributed", "cluster", "--cluster")


def _client(distributed, address: str) -> Any:
    try:
        client = distributed.Client(address, timeout=_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        got = f"{address!r}, which does not answer ({type(error).__name__})"
        raise InvalidInput("--cluster", got, "Pass the address of a running `dask scheduler`.") from None
    try:
        client.wait_for_workers(1, timeout=_FIRST_WORKER)
    except TimeoutError:
        client.close()
        remedy = f"Start some: dask worker {address}"
        raise InvalidInput("--cluster", f"{address!r}, a scheduler without workers", remedy) from None
    return client


_scored_streams: dict[Any, Scored] = {}
_shelves: dict[str, tuple[Results, Writer]] = {}


def _scored(config: Config, tune_until: float | None) -> Scored:
    """The stream, opened once per worker."""
    key = repr((config.stream, config.steps, config.folder, tune_until))
    with _opening:
        if key not in _scored_streams:
            _scored_streams[key] = open_scored(config, tune_until)
        return _scored_streams[key]


def _shelf(folder: str) -> tuple[Results | None, Writer | None]:
    """This worker's own file among the results; None if it cannot access the folder."""
    with _opening:
        if folder not in _shelves:
            if not (Path(folder) / WHOSE).is_file():
                return None, None
            results = Results(folder)
            _shelves[folder] = results, results.writer()
        return _shelves[folder]
