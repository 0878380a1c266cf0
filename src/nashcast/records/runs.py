"""The record of one run: forecasts, targets and weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.records.folder import ABOUT, Record, read_record, write_record

KIND = "run"
ABOUT_KEYS = ("name", "command", "seed", "settings", "summary", "agents")
ARRAY_NAMES = ("start", "targets", "forecasts", "weights", "agents")


def write_run(folder: str | Path, about: Mapping, arrays: Mapping[str, np.ndarray]) -> Path:
    """about: see ABOUT_KEYS.   arrays: see ARRAY_NAMES; row t of each belongs to the forecast of targets[t]."""
    return write_record(folder, KIND, about, arrays)


def read_run(folder: str | Path) -> Record:
    """The record of a run, checked to be complete."""
    record = read_record(folder)
    kind = record.about.get("kind")
    if kind != KIND:
        raise InvalidInput("record", f"{folder}, the record of a {kind}", "Pass the record of a run.")
    missing = [name for name in ABOUT_KEYS if name not in record.about]
    missing += [f"array {name}" for name in ARRAY_NAMES if name not in record.arrays]
    if not missing:
        targets, N = record.arrays["targets"], len(record.about["agents"])
        steps, p = targets.shape if targets.ndim == 2 else (0, 0)
        shapes = {"start": (p,), "forecasts": (steps, p), "weights": (steps, N), "agents": (steps, N, p)}
        missing = [
            f"array {name} of shape {shape}" for name, shape in shapes.items() if record.arrays[name].shape != shape
        ]
    if missing:
        remedy = "It is damaged: run the command that wrote it again."
        raise InvalidInput("record", f"{folder}, without its {missing[0]}", remedy)
    return record


def may_overwrite(folder: str | Path, settings: dict) -> bool:
    """Whether a run of these settings may be written here: there is no record, or one of the same settings."""
    if not (Path(folder) / ABOUT).exists():
        return True
    try:
        return read_run(folder).about["settings"] == settings
    except InvalidInput:
        return False
