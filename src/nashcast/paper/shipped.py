"""Trained encoders shipped with the package: each an npz with its note, and a checksum for every file.

Made by `nashcast reproduce pretrain`, then `python benchmarks/ship_encoders.py`.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from nashcast.errors import NashcastError

FOLDER = Path(__file__).parent / "encoders"
SUMS = "SHA256SUMS"


@cache
def checksums(folder: Path = FOLDER) -> dict[str, str]:
    """SHA-256 of every file, by name; empty if none were shipped."""
    try:
        lines = (folder / SUMS).read_text().splitlines()
    except FileNotFoundError:
        return {}
    return {name: digest for digest, name in (line.split() for line in lines)}


def shipped(name: str, folder: Path = FOLDER) -> Path | None:
    """The shipped file of this name, with its checksum verified; None if there is none."""
    expected = checksums(folder).get(name)
    if expected is None:
        return None
    path = folder / name
    if not path.is_file() or digest(path) != expected:
        remedy = "Install nashcast again, or train it: nashcast reproduce pretrain."
        raise NashcastError(f"the shipped encoder {path} is damaged: its checksum is not the one in {SUMS}. {remedy}")
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_checksums(folder: Path) -> None:
    files = sorted(path for path in folder.iterdir() if path.suffix in (".npz", ".json"))
    (folder / SUMS).write_text("".join(f"{digest(path)}  {path.name}\n" for path in files))
