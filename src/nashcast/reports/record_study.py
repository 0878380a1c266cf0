"""Any record as a study."""

from __future__ import annotations

from pathlib import Path

from nashcast.errors import InvalidInput
from nashcast.records.folder import read_record
from nashcast.records.study import Study, from_record
from nashcast.reports.run_study import study_of_run
from nashcast.reports.sweep_study import study_of_sweep

_KINDS = {"run": study_of_run, "sweep": study_of_sweep, "study": from_record}


def study_of(folder: str | Path) -> Study:
    """The record in a folder as a study, whatever its kind."""
    record = read_record(folder)
    kind = record.about.get("kind")
    if kind not in _KINDS:
        raise InvalidInput("record", f"{folder} of kind {kind!r}", f"Reports know the kinds {', '.join(_KINDS)}.")
    return _KINDS[kind](record)
