"""A record on disk: a folder with `record.json` (its description) and `arrays.npz` (numbers), written atomically."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nashcast.errors import InvalidInput, NashcastError

FORMAT = 1
ABOUT, ARRAYS = "record.json", "arrays.npz"
# Packages whose versions may affect numbers.
_PACKAGES = ("nashcast", "numpy", "numba", "torch", "river", "scikit-learn")


class Record(NamedTuple):
    """about: `kind`, `format`, `created`, `versions` and the kind's own keys.   arrays: numbers by name."""

    about: dict
    arrays: dict[str, np.ndarray]


def versions() -> dict[str, str]:
    """Versions of Python, the machine and the packages that may affect numbers."""
    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def write_record(folder: str | Path, kind: str, about: Mapping, arrays: Mapping[str, np.ndarray]) -> Path:
    """Write both files. A crash leaves the old record, the new one or none, never a mixture. Other files stay."""
    folder = Path(folder)
    whole = {"kind": kind, "format": FORMAT, "created": datetime.now(UTC).isoformat(timespec="seconds")}
    whole |= {"versions": versions(), **about}
    named: dict = dict(arrays)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # In the same folder, hence on the same disk: moving into place is then atomic.
        scratch = Path(tempfile.mkdtemp(prefix=".writing-", dir=folder))
        try:
            with (scratch / ARRAYS).open("wb") as file:
                np.savez_compressed(file, **named)
                file.flush()
                os.fsync(file.fileno())
            with (scratch / ABOUT).open("w") as file:
                json.dump(whole, file, indent=1, allow_nan=True)
                file.flush()
                os.fsync(file.fileno())
            # record.json last: without it the folder is no record.
            (folder / ABOUT).unlink(missing_ok=True)
            (scratch / ARRAYS).replace(folder / ARRAYS)
            (scratch / ABOUT).replace(folder / ABOUT)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise NashcastError(f"cannot write a record to {folder}: {error.strerror}. Pass a folder with room.") from None
    return folder


def read_record(folder: str | Path) -> Record:
    """Read and check the record in a folder."""
    folder = Path(folder)
    if not (folder / ABOUT).is_file():
        raise InvalidInput("record", f"{folder}, without {ABOUT}", "Pass a folder that a nashcast command wrote.")
    try:
        about = json.loads((folder / ABOUT).read_text())
        arrays = {}
        if (folder / ARRAYS).is_file():
            # Opened here: NumPy leaves a file open that it finds damaged.
            with (folder / ARRAYS).open("rb") as content, np.load(content, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
    except Exception as error:
        # A damaged file can make the parsers raise anything; the user gets one error.
        remedy = "It is damaged: run the command that wrote it again."
        raise InvalidInput("record", f"{folder}, which cannot be read ({type(error).__name__})", remedy) from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        got = about.get("format") if isinstance(about, dict) else "no object"
        raise InvalidInput("record", f"{folder} of format {got!r}", f"This nashcast reads format {FORMAT}.")
    return Record(about, arrays)
