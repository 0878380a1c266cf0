"""Runs a program for as long as its parent lives: a separate process, run as a script.

`python watchdog.py PARENT PROGRAM ARGUMENT…` prints the program's process id, and ends the program when its
standard input is closed or its parent, the process of that number, has ended for any reason. Prints nothing else; its
exit code is the program's.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys

STOP_TIMEOUT_S = 10.0


def keep(parent: int, command: list[str]) -> int:
    program = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=_killed_with_parent()
    )
    try:
        print(program.pid, flush=True)
        # The parent is checked too: a forked sibling may hold the other end of the input open.
        while program.poll() is None and os.getppid() == parent and not select.select([sys.stdin], [], [], 0.1)[0]:
            pass
    finally:
        _end(program)
    return abs(program.returncode)


def _end(program: subprocess.Popen) -> None:
    program.terminate()
    try:
        program.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()


def _killed_with_parent():
    """Ends the program if this process is killed. Linux takes the creating thread for the parent; there is only one."""
    if sys.platform != "linux":
        return None
    prctl, set_death_signal = ctypes.CDLL(None).prctl, 1
    return lambda: prctl(set_death_signal, signal.SIGKILL)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(keep(int(sys.argv[1]), sys.argv[2:]))
