"""Runs with keys: each done once, whatever interrupts them, in threads and in processes."""

import os

import pytest

from nashcast.errors import InvalidInput, NashcastError
from nashcast.records.keyed_runs import run_missing
from nashcast.records.results import Results

TASKS = {f"key {n}": n for n in range(6)}


def squared(n):
    return {"square": n * n, "process": os.getpid()}


def fails_at_three(n):
    if n == 3:
        raise InvalidInput("n", "3", "Pass another number.")
    return squared(n)


@pytest.mark.parametrize("threads", [True, False])
def test_every_task_has_its_result_and_is_done_once(tmp_path, threads):
    results, seen = Results(tmp_path), []
    found = run_missing(
        TASKS, squared, results, jobs=2, threads=threads, progress=lambda done, total: seen.append((done, total))
    )
    assert [found[key]["square"] for key in TASKS] == [0, 1, 4, 9, 16, 25]
    assert (os.getpid() in {each["process"] for each in found.values()}) == threads
    assert seen[0] == (0, 6)
    assert seen[-1] == (6, 6)
    assert seen == sorted(seen)
    assert run_missing(TASKS, never, Results(tmp_path)) == found


def never(n):
    raise AssertionError("it is known already")


@pytest.mark.parametrize("threads", [True, False])
def test_what_was_done_before_a_failure_is_kept(tmp_path, threads):
    with pytest.raises(NashcastError, match=r"^n: got 3\. Pass another number\.$"):
        run_missing(TASKS, fails_at_three, Results(tmp_path), jobs=1, threads=threads)
    kept = set(Results(tmp_path).done())
    assert {"key 0", "key 1", "key 2"} <= kept  # and perhaps what was under way
    assert "key 3" not in kept
    called = []
    found = run_missing(TASKS, lambda n: called.append(f"key {n}") or squared(n), Results(tmp_path), jobs=1)
    assert called == [key for key in TASKS if key not in kept]
    assert [found[key]["square"] for key in TASKS] == [0, 1, 4, 9, 16, 25]


def test_no_tasks_leave_no_file(tmp_path):
    assert run_missing({}, squared, Results(tmp_path / "out")) == {}
    assert not (tmp_path / "out").exists()
