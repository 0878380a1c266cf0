"""Named arrays and a description in one npz file: versioned, written whole or not at all, never pickled."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np

from nashcast.errors import InvalidInput

VERSION = 1
_ABOUT = "about"


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray], about: dict) -> None:
    path = Path(path)
    text = json.dumps({"format": "nashcast state", "version": VERSION, "description": about})
    buffer = io.BytesIO()
    named: dict = {_ABOUT: np.array(text), **arrays}
    np.savez(buffer, **named)
    # Beside it first: a full disk or a crash leaves the old file as it was.
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.write(buffer.getvalue())
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InvalidInput("path", f"{path.name}: {error.strerror}", "Choose a folder that can be written.") from error


def read_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict]:
    path = Path(path)
    if not path.is_file():
        raise InvalidInput("path", f"no file {path.name}", "Pass a file that `save` wrote.")
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop(_ABOUT)))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInput("path", f"{path.name}, which cannot be read ({error})", "Use an earlier copy.") from None
    if about.get("version") != VERSION:
        raise InvalidInput("path", f"version {about.get('version')}", f"This release reads version {VERSION}.")
    return arrays, about["description"]
