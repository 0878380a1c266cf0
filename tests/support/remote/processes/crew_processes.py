"""Real processes for tests, quickly: forked from one that has nashcast ready. They can be killed like any other.

None outlives the tests: they die with the process they are forked from, and that one with the tests.
"""

import ctypes
import multiprocessing
import os
import signal
import sys
from functools import cache
from pathlib import Path


@cache
def _context():
    tests = Path(__file__).parents[3]
    found = multiprocessing.get_context("forkserver")
    # The server looks for what it imports by the environment alone.
    before, mine = os.environ.get("PYTHONPATH"), [tests, tests.parent / "src"]
    os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, mine), *([before] if before else [])])
    try:
        found.set_forkserver_preload(["support.remote.processes.crew_start"])
        multiprocessing.forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    return found


def fork(target, *arguments, log: Path, folder: Path | None = None, network: int | None = None):
    """target(*arguments) in a process of its own, with what it prints appended to a file.

    network: of which process, if not this one's.
    """
    process = _context().Process(target=_run, args=(target, arguments, log, folder, network), daemon=True)
    process.start()
    return process


def command(*words, **where):
    """`nashcast WORDS…` in a process of its own."""
    return fork(_command, *map(str, words), **where)


def end(*processes) -> None:
    """Kill those that still run, and forget them all."""
    for process in processes:
        if process.is_alive():
            process.kill()
            process.join()
        process.close()


def die_with_parent() -> None:
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def enter_network(pid: int) -> None:
    """Have from now on the network of another process."""
    with Path(f"/proc/{pid}/ns/net").open("rb") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")


def leave_network() -> None:
    """Have from now on a network of its own, without a way out of it."""
    new_network = 0x40000000
    if ctypes.CDLL(None, use_errno=True).unshare(new_network):
        raise OSError(ctypes.get_errno(), "unshare")


def _command(*words) -> None:
    from nashcast.cli.main import main

    sys.exit(main(words))


def _run(target, arguments, log, folder, network) -> None:
    die_with_parent()
    file = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout, sys.stderr = (open(where, "w", buffering=1, closefd=False) for where in (1, 2))  # noqa: SIM115
    if folder is not None:
        os.chdir(folder)
    if network is not None:
        enter_network(network)
    target(*arguments)
