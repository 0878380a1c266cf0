"""Servers forked from a process that has imported everything: they start in a fraction of a second.

python -m support.service.fork_server FEDERATION     # then lines of JSON: arguments, and files for output and log
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from support.service.served import Served, federation_file

TESTS = Path(__file__).parents[2]


class Nursery:
    def __init__(self, folder: Path):
        command = [sys.executable, "-m", __name__, str(federation_file(folder))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TESTS)
        assert self._process.stdout.readline() == "ready\n"
        self._count = 0

    def start(self, arguments: list[str], folder: Path) -> tuple[int, Path]:
        self._count += 1
        output = folder / f"output-{self._count}"
        self._process.stdin.write(json.dumps([arguments, str(output), str(folder / "log")]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline()), output

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


class Forked(Served):
    """As `Served`, from a nursery."""

    def __init__(self, folder: Path, nursery: Nursery, *, wait: bool = True):
        self.folder, self.journal, self.about = folder, folder / "journal", {}
        arguments = ["serve", str(folder / "federation.toml"), "--json", "--no-auth", "--port", "0"]
        self.pid, self._output = nursery.start([*arguments, "--journal", str(self.journal)], folder)
        if wait:
            self.wait()

    def wait(self) -> None:
        while not (self._output.exists() and self._output.read_text().endswith("\n")):
            assert alive(self.pid), f"it did not start: {self.log()}"
            time.sleep(0.002)
        self.about = json.loads(self._output.read_text())

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._gone()

    def stop(self) -> int:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        return self._gone()

    def _gone(self) -> int:
        while alive(self.pid):
            time.sleep(0.002)
        return 0


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def be_one(federation: str) -> None:
    from nashcast.cli.main import main
    from nashcast.service.http import server
    from nashcast.service.streams.settings import load_served
    from nashcast.service.workers import spawner, worker
    from nashcast.service.workers.factory import make_federation

    assert server
    assert spawner
    assert worker
    make_federation(load_served(federation)).make()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are gone at once
    print("ready", flush=True)
    for line in sys.stdin:
        arguments, output, log = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), 1)
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
            os.close(0)
            os._exit(main(arguments))
        print(pid, flush=True)


if __name__ == "__main__":
    be_one(sys.argv[1])
