"""The broker's process: finding it, and reloading its rules."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from nashcast.errors import NashcastError
from nashcast.remote.broker.enrolling.enrolment import read, write_conf
from nashcast.remote.broker.files import locked
from nashcast.remote.broker.rules import CONF, LOG, PID
from nashcast.remote.broker.running import watchdog

# Timeout of a start or a reload, and the polling interval.
TIMEOUT_S, POLL_S = 30.0, 0.01


def running_broker(folder: str | Path) -> int | None:
    """The process id of the broker that runs from this folder on this machine."""
    folder = Path(folder).expanduser()
    try:
        pid = int((folder / PID).read_text())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    # The number may belong to another process by now, which must not get a signal.
    words = _command_line(pid) if pid > 0 else []
    if not words or "nats-server" not in Path(words[0]).name:
        return None
    try:
        started_in = Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        started_in = Path.cwd()
    conf = (folder / CONF).resolve()
    return pid if any((started_in / word.rpartition("=")[2]).resolve() == conf for word in words[1:]) else None


def lasting_broker(folder: str | Path) -> int | None:
    """`running_broker`, unless the broker is about to end because the program that ran it has ended."""
    pid = running_broker(folder)
    if pid is None:
        return None
    parent = _parent(pid)
    words = _command_line(parent)
    for i, word in enumerate(words[:-1]):
        if word == watchdog.__file__:
            return pid if words[i + 1] == str(_parent(parent)) else None
    return pid


def reload_broker(folder: str | Path) -> bool:
    """Write the configuration from the enrolment, and have the broker of this folder read it.

    Returns False if none runs on this machine.
    """
    folder = Path(folder).expanduser()
    read(folder)
    with locked(folder):
        write_conf(folder, read(folder))
        pid = running_broker(folder)
        if pid is None:
            return False
        # Twice: nats-server connects an account's imports only if the account exists before the reload.
        for _ in range(2):
            _reload_once(pid, folder / LOG)
    return True


def _reload_once(pid: int, log: Path) -> None:
    begun, deadline = log.stat().st_size, time.monotonic() + TIMEOUT_S
    try:
        os.kill(pid, signal.SIGHUP)
        while time.monotonic() < deadline:
            size = log.stat().st_size
            with log.open("rb") as file:
                # A shorter log has been rotated.
                file.seek(begun if size >= begun else 0)
                said = file.read().decode(errors="replace")
            if "Reloaded server configuration" in said:
                return
            if "Failed to reload" in said:
                why = said.partition("Failed to reload server configuration: ")[2].partition("\n")[0]
                raise NashcastError(f"the broker keeps its old rules: {why}. See {log}.")
            os.kill(pid, 0)
            time.sleep(POLL_S)
    except ProcessLookupError:
        raise NashcastError(f"the broker has ended: see {log}. Start it again.") from None
    raise NashcastError(f"the broker did not read its configuration within {TIMEOUT_S:g} s: see {log}.")


def said_last(log: Path, begun: int) -> str:
    """The last error or line that nats-server wrote, without the time."""
    with log.open("rb") as file:
        file.seek(begun)
        lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    fatal = [line for line in lines if "[FTL]" in line or "[ERR]" in line or line.startswith("nats-server:")] or lines
    return re.sub(r"^\[\d+\] \S+ \S+ \[\w+\] ", "", fatal[-1]) if fatal else "it said nothing"


def _parent(pid: int) -> int:
    """The parent's process id; 0 if unknown."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _command_line(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    except OSError:
        pass
    try:
        shown = subprocess.run(["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
    except OSError:
        return []
    return shown.stdout.split()
