"""Many parallel runs, each with a key: done once, saved as it finishes, resumed after any interruption."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from typing import Any

from nashcast.errors import NashcastError
from nashcast.records.results import Results, Writer

Progress = Callable[[int, int], None]
# Seconds between two progress reports.
_REPORT_EVERY = 0.2


def run_missing(
    tasks: Mapping[str, Any],
    work: Callable[[Any], Any],
    results: Results,
    *,
    jobs: int | None = None,
    threads: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The result of every task by its key, in the order of the tasks; tasks without a saved result are done by `work`.

    work: returns a task's result as JSON values; a module's function, unless in threads.   jobs: parallel tasks, by
    default one per core.   threads: for compiled work; else processes.   progress: called with the numbers of tasks
    done and in total.
    """
    known = results.done()
    todo = {key: task for key, task in tasks.items() if key not in known}
    workers = min(jobs or os.cpu_count() or 1, max(len(todo), 1))
    _tell(progress, len(tasks) - len(todo), len(tasks))
    if todo:
        with results.writer() as writer, _pool(workers, threads or workers == 1) as pool:
            pending = {pool.submit(_explained, work, task): key for key, task in todo.items()}
            try:
                while pending:
                    _keep(wait(pending, timeout=_REPORT_EVERY, return_when=FIRST_COMPLETED).done, pending, writer)
                    _tell(progress, len(tasks) - len(pending), len(tasks))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        known = results.done()
    return {key: known[key] for key in tasks}


def _keep(finished: Iterable[Future], pending: dict[Future, str], writer: Writer) -> None:
    """Save all finished results before a failure is raised."""
    failures = []
    for future in finished:
        found, failed = future.result()
        key = pending.pop(future)
        if failed:
            failures.append(failed)
        else:
            writer.add(key, found)
    if failures:
        raise NashcastError(failures[0])


def _tell(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)


def _pool(workers: int, threads: bool) -> Executor:
    if threads:
        return ThreadPoolExecutor(workers)
    # Spawned: a forked process would share the threads of compiled code.
    return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))


def _explained(work: Callable[[Any], Any], task: Any) -> tuple[Any, str]:
    """The result, or why there is none: as text, since not every exception can cross processes."""
    try:
        return work(task), ""
    except NashcastError as error:
        return None, str(error)
