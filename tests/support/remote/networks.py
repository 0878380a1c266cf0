"""A network of its own for a process, joined to this one by a cable that can be cut. It is gone with its process."""

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from support.remote.processes.crew_processes import end, fork, leave_network


class Cable:
    """here: this machine's address on the cable.   pid: of the process whose network is at the other end."""

    def __init__(self, folder: Path):
        third = random.SystemRandom().randrange(256)
        self.here, self._there, self._name = f"10.201.{third}.1", f"10.201.{third}.2", f"nc{os.getpid()}"
        self._holder = fork(_hold, self._there, folder / "network", log=folder / "network.log")
        self.pid = self._holder.pid
        try:
            _until((folder / "network.left").exists, folder)
            _ip("link", "add", self._name, "type", "veth", "peer", "name", "cable", "netns", str(self.pid))
            _ip("addr", "add", f"{self.here}/24", "dev", self._name)
            _ip("link", "set", self._name, "up")
            _until((folder / "network.ready").exists, folder)
        except BaseException:
            self.close()
            raise

    def cut(self) -> None:
        _ip("link", "set", self._name, "down")

    def heal(self) -> None:
        _ip("link", "set", self._name, "up")

    def close(self) -> None:
        # Both ends go together. Without this they would go with the process too, but not before the last connection
        # that waits at the other end has given up.
        subprocess.run(["ip", "link", "del", self._name], capture_output=True, check=False)
        end(self._holder)


def needed() -> None:
    """Skip the test where there is no way to make a network; continuous integration must have one."""
    missing = None
    if shutil.which("ip") is None:
        missing = "no program ip on this machine. Install it: apt-get install iproute2"
    elif os.geteuid() != 0:
        missing = "only root may make a network"
    if missing:
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)


def _hold(address: str, mark: Path) -> None:
    leave_network()
    mark.with_suffix(".left").touch()
    while subprocess.run(["ip", "link", "show", "cable"], capture_output=True, check=False).returncode:
        time.sleep(0.02)
    _ip("link", "set", "lo", "up")
    _ip("addr", "add", f"{address}/24", "dev", "cable")
    _ip("link", "set", "cable", "up")
    mark.with_suffix(".ready").touch()
    while True:
        time.sleep(60.0)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"


def _until(condition, folder: Path) -> None:
    until = time.monotonic() + 30.0
    while not condition():
        log = folder / "network.log"
        assert time.monotonic() < until, log.read_text() if log.exists() else "no network within 30 s"
        time.sleep(0.01)
