"""Named arrays and a description in one file: versioned, with a checksum, written in full or not at all, never pickled.

Layout, all integers little-endian:

    8 bytes   b"nashstat"
    8 bytes   length of the header
    8 bytes   length of the content
    16 bytes  BLAKE2b of the two lengths, the header and the content
    header    JSON: {"version": 3, "arrays": [[name, dtype, shape], …], "about": {…}}
    content   the bytes of the arrays in that order, each in C order, without gaps

A `DoubleBufferedFile` has the same header and content in its slots. A reader trusts neither: every size is compared
with the bytes present before anything is allocated.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
from contextlib import suppress
from hashlib import blake2b
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.federation.saving import double_buffered_file
from nashcast.federation.saving.double_buffered_file import DoubleBufferedFile, read_slots

VERSION = 3
MAX_BYTES = 256 * 2**20
MAX_HEADER_BYTES = 8 * 2**20  # about 10⁵ arrays; Python's objects take up to 30 times the bytes of their JSON
MAX_DEPTH = 32  # nesting of lists and objects in the header
MAX_RANK = 8
MAX_NAME = 200
_MAGIC = b"nashstat"
_LENGTHS = struct.Struct("<QQ")
_DIGEST = 16
_CONTENT = len(_MAGIC) + _LENGTHS.size + _DIGEST  # where the header starts
_BOOL = "|b1"
_DTYPES = frozenset([_BOOL, "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8"])


def write_arrays(path: str | Path, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    """Write a file that only its owner may read (mode 0600). Returns once it is synced to disk.

    about: a description in JSON types.
    """
    path, header = Path(path), _header(arrays, about)
    content = b"".join([_little_endian(array).tobytes() for array in arrays.values()])
    lengths = _LENGTHS.pack(len(header), len(content))
    partial = None
    try:
        # A temporary file first: a full disk or a crash leaves the old file as it was.
        fd, partial = tempfile.mkstemp(".partial", f"{path.name}.", path.parent)  # mode 0600
        with os.fdopen(fd, "wb") as file:
            for part in (_MAGIC, lengths, _digest(lengths, header, content), header, content):
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        Path(partial).replace(path)
        partial = None
        _sync_folder(path.parent)
    except OSError as error:
        raise InvalidInput("path", f"{path.name}: {error.strerror}", "Choose a folder that can be written.") from error
    finally:
        if partial is not None:
            Path(partial).unlink(missing_ok=True)


def write_slot(file: DoubleBufferedFile, arrays: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    """The same for a state that is written after every step, whose description seldom changes."""
    key = [(name, array.dtype, array.shape) for name, array in arrays.items()], about
    if file.last_header is None or file.last_header[0] != key:
        file.last_header = key, _header(arrays, about)
    file.write(file.last_header[1], [_little_endian(array) for array in arrays.values()])


def read_arrays(path: str | Path, max_bytes: int = MAX_BYTES) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and description of a file that `write_arrays` or `write_slot` wrote; InvalidInput if it is damaged.

    max_bytes: the largest file that is read. Memory is bounded by the size of the file, not by its header.
    """
    path = Path(path)
    if not path.is_file():
        raise InvalidInput("path", f"no file {path.name}", "Pass a file that `save` wrote.")
    try:
        data = _read(path, max_bytes)
        slots = data.startswith(double_buffered_file.MAGIC)
        header, content = read_slots(data) if slots else _unframed(data)
        document = _parsed(header)
        if document.get("version") != VERSION:
            got = f"{path.name} of version {document.get('version')!r:.20}"
            raise InvalidInput("path", got, f"This release reads version {VERSION}.")
        return _arrays(document, content, max_bytes), _object(document["about"])
    except InvalidInput:
        raise
    except OSError as error:
        raise InvalidInput("path", f"{path.name}: {error.strerror}", "Pass a file that can be read.") from error
    except ValueError as error:
        got = f"{path.name}, which cannot be read ({error})"
        raise InvalidInput("path", got, "It is damaged or no saved state: use an earlier copy.") from None


def _read(path: Path, max_bytes: int) -> bytes:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            got = f"{path.name} of {size} bytes, more than max_bytes = {max_bytes}"
            raise InvalidInput("path", got, "Pass another file, or a larger max_bytes if it is yours.")
        data = file.read(size + 1)
    if len(data) != size:
        raise ValueError("its size changed while it was read")
    return data


def _unframed(data: bytes) -> tuple[memoryview, memoryview]:
    if not data.startswith(_MAGIC):
        raise ValueError("it does not begin as a saved state does")
    if len(data) < _CONTENT:
        raise ValueError("it is cut short")
    start, view = len(_MAGIC) + _LENGTHS.size, memoryview(data)
    lengths = view[len(_MAGIC) : start]
    header, content = _LENGTHS.unpack(lengths)
    if len(data) - _CONTENT != header + content:
        raise ValueError(f"it has {len(data)} bytes, and {_CONTENT + header + content} by its own account")
    parts = view[_CONTENT : _CONTENT + header], view[_CONTENT + header :]
    if data[start:_CONTENT] != _digest(lengths, *parts):
        raise ValueError("its checksum is wrong")
    return parts


def _parsed(header: memoryview) -> dict[str, Any]:
    if len(header) > MAX_HEADER_BYTES:
        raise ValueError(f"its header has {len(header)} bytes, more than {MAX_HEADER_BYTES}")
    try:
        text = str(header, "utf-8")
        document = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("its header is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"its header is not valid: {error!s:.80}") from None
    _check_depth(document)
    return _object(document)


def _arrays(document: dict[str, Any], content: memoryview, max_bytes: int) -> dict[str, np.ndarray]:
    if set(document) != {"version", "arrays", "about"} or not isinstance(document["arrays"], list):
        raise ValueError("its header has other parts than version, arrays and about")
    arrays, at = {}, 0
    for entry in document["arrays"]:
        if not isinstance(entry, list) or len(entry) != 3:
            raise ValueError("its header lists an array without name, type and shape")
        name, dtype, shape = entry
        _check_entry(name, dtype, shape)
        if name in arrays:
            raise ValueError(f"its header lists the array {name!r} twice")
        kind = np.dtype(dtype)
        if prod([max(n, 1) for n in shape]) * kind.itemsize > max_bytes:  # axes of an empty array count as well
            raise ValueError(f"array {name!r} is too large")
        end = at + prod(shape) * kind.itemsize
        if end > len(content):
            raise ValueError(f"array {name!r} is longer than the rest of the file")
        if dtype == _BOOL and end > at and np.frombuffer(content[at:end], np.uint8).max() > 1:
            raise ValueError(f"array {name!r} has entries that are neither true nor false")
        arrays[name] = np.frombuffer(content[at:end], kind).reshape(shape).copy()
        at = end
    if at != len(content):
        raise ValueError(f"it has {len(content) - at} bytes after the last array")
    return arrays


def _header(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> bytes:
    """The header's bytes. Raises InvalidInput for a state that could not be read again."""
    index = [[name, array.dtype.newbyteorder("<").str, list(array.shape)] for name, array in arrays.items()]
    document = {"version": VERSION, "arrays": index, "about": about}
    try:
        for entry in index:
            _check_entry(*entry)
        _object(about)
        header = json.dumps(document, allow_nan=False).encode()
        _parsed(memoryview(header))
    except (ValueError, TypeError) as error:
        raise InvalidInput("state", f"a state that cannot be saved ({error})", "Save arrays of numbers.") from None
    return header


def _check_entry(name: Any, dtype: Any, shape: Any) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise ValueError(f"an array has the name {name!r:.40}")
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise ValueError(f"array {name!r} has the type {dtype!r:.40}")
    if not isinstance(shape, list) or len(shape) > MAX_RANK or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError(f"array {name!r} has the shape {check.describe(shape)}")


def _check_depth(document: Any) -> None:
    layer, depth = [document], 0
    while layer:
        if depth > MAX_DEPTH:
            raise ValueError("its header is nested too deeply")
        inner = [part for part in layer if isinstance(part, list | dict)]
        layer = [each for part in inner for each in (part.values() if isinstance(part, dict) else part)]
        depth += 1


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("its header is no JSON object")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice in an object")
    return found


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _digest(*parts: bytes | memoryview) -> bytes:
    digest = blake2b(digest_size=_DIGEST)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _little_endian(array: np.ndarray) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the new name persists; errors of file systems without this call are ignored."""
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
