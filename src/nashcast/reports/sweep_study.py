"""A sweep as a study: its ranked table, if it has one yet."""

from __future__ import annotations

from dataclasses import replace

from nashcast.records.folder import Record
from nashcast.records.study import Study, from_record


def study_of_sweep(record: Record) -> Study:
    """The study of a record of kind "sweep"; its `about["table"]` is a table as studies have them."""
    about = dict(record.about)
    table = about.get("table")
    about["tables"] = [*([table] if table else []), *(about.get("tables") or [])]
    if about.get("seed") is not None and not about.get("seeds"):
        about["seeds"] = [about["seed"]]
    study = from_record(Record(about, record.arrays))
    if not study.tables:
        study = replace(study, notes=[*study.notes, "This sweep has no ranked table: no run of it has finished yet."])
    return study
