"""Reports on disk: each file is written atomically."""

from __future__ import annotations

import os
from pathlib import Path

from nashcast.errors import NashcastError


def write_whole(path: Path, content: bytes | str) -> Path:
    """Write a temporary file, then move it into place; the old file stays until then."""
    content = content.encode() if isinstance(content, str) else content
    scratch = path.with_name(f".{path.name}.{os.getpid()}.writing")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            scratch.write_bytes(content)
            scratch.replace(path)
        finally:
            if scratch.exists():
                scratch.unlink()
    except OSError as error:
        remedy = "Pass --output with a folder that can be written."
        raise NashcastError(f"cannot write {path}: {error.strerror}. {remedy}") from None
    return path
