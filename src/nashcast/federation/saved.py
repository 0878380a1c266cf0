"""Named arrays and a description in one file: versioned, written whole or not at all, never pickled."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from math import prod
from pathlib import Path

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.federation.kept import MAGIC, KeptFile, read_kept

VERSION = 2
_ABOUT, _NUMBERS = "about", "numbers"


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray], about: dict) -> None:
    """An npz file. Returns when the disk has it."""
    path = Path(path)
    numbers = np.frombuffer(b"".join([array.tobytes() for array in arrays.values()]), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **{_ABOUT: np.array(_described(arrays, about)), _NUMBERS: numbers})
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


def keep_arrays(file: KeptFile, arrays: dict[str, np.ndarray], about: dict) -> None:
    """The same for a state that is kept after every step, whose description seldom changes."""
    key = [(name, array.dtype, array.shape) for name, array in arrays.items()], about
    if file.described is None or file.described[0] != key:
        file.described = key, _described(arrays, about).encode()
    file.write(file.described[1], list(arrays.values()))


def read_arrays(path: str | Path) -> tuple[dict[str, np.ndarray], dict]:
    path = Path(path)
    if not path.is_file():
        raise InvalidInput("path", f"no file {path.name}", "Pass a file that `save` wrote.")
    try:
        data = path.read_bytes()
        if data.startswith(MAGIC):
            text, content = read_kept(data)
        else:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                text, content = str(file[_ABOUT]), file[_NUMBERS].tobytes()
        about = json.loads(text)
        arrays = _apart(about["arrays"], content) if about.get("version") == VERSION else {}
    except (OSError, ValueError, TypeError, LookupError, EOFError, zipfile.BadZipFile, struct.error) as error:
        raise InvalidInput("path", f"{path.name}, which cannot be read ({error})", "Use an earlier copy.") from None
    if about.get("version") != VERSION:
        raise InvalidInput("path", f"version {about.get('version')}", f"This release reads version {VERSION}.")
    return arrays, about["description"]


def _described(arrays: dict[str, np.ndarray], about: dict) -> str:
    index = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    return json.dumps({"format": "nashcast state", "version": VERSION, "arrays": index, "description": about})


def _apart(index: list, content: bytes) -> dict[str, np.ndarray]:
    arrays, at = {}, 0
    for name, dtype, shape in index:
        kind, count = np.dtype(dtype), prod(shape)
        arrays[name] = np.frombuffer(content, kind, count, at).reshape(shape).copy()
        at += kind.itemsize * count
    return arrays
