"""A study on disk: tables, figures and notes, with the arrays the figures draw, in one record of kind "study"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.records.folder import Record, read_record, write_record

KINDS = ("text", "int", "error", "ratio", "seconds", "mark")
STYLES = ("line", "points", "step", "line+points")


@dataclass(frozen=True)
class Column:
    """key: the column's key in the rows.   kind: format of the values, one of KINDS."""

    key: str
    label: str
    kind: str = "text"


@dataclass(frozen=True)
class Table:
    """rows: a value or None by column key.   marks: meaning of each symbol in a column of kind "mark"."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping]
    marks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """y, x: names of arrays of shape (points,); without x, 0 … points-1.   style: one of STYLES."""

    label: str
    y: str
    x: str | None = None
    style: str = "line"


@dataclass(frozen=True)
class Panel:
    """One pair of axes.   reference: y of a horizontal line, or None."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False
    reference: float | None = None


@dataclass(frozen=True)
class Figure:
    """name: the stem of its files.   columns: panels in a row."""

    name: str
    title: str
    caption: str
    panels: Sequence[Panel]
    columns: int = 1


@dataclass(frozen=True)
class Study:
    """The results of a study and how to repeat it.   created, versions: filled in by the record."""

    name: str
    title: str
    command: str
    seeds: Sequence[int] = ()
    settings: Mapping = field(default_factory=dict)
    seconds: float | None = None
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    created: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)


def write(folder: str | Path, study: Study) -> Path:
    """Check the study, then write it as a record, with the current `created` and `versions`."""
    check_study(study)
    about = {each.name: getattr(study, each.name) for each in fields(study)}
    arrays = {name: np.asarray(array) for name, array in about.pop("arrays").items()}
    del about["created"], about["versions"]
    about["tables"] = [asdict(table) for table in study.tables]
    about["figures"] = [asdict(figure) for figure in study.figures]
    return write_record(folder, "study", plain(about), arrays)


def read(folder: str | Path) -> Study:
    """The study in a folder, checked."""
    record = read_record(folder)
    if record.about.get("kind") != "study":
        got = f"{folder} of kind {record.about.get('kind')!r}"
        raise InvalidInput("record", got, "Pass a record of kind 'study'.")
    return from_record(record)


def from_record(record: Record) -> Study:
    """The study that a record's `about` describes, checked. Unknown keys are ignored."""
    about = record.about
    try:
        study = Study(
            name=str(about.get("name") or about.get("kind", "")),
            title=str(about.get("title") or about.get("name", "")),
            command=str(about.get("command") or ""),
            seeds=list(about.get("seeds") or []),
            settings=dict(about.get("settings") or {}),
            seconds=about.get("seconds"),
            notes=[str(note) for note in about.get("notes") or []],
            tables=[table_from(table) for table in about.get("tables") or []],
            figures=[_figure(figure) for figure in about.get("figures") or []],
            arrays=record.arrays,
            created=str(about.get("created", "")),
            versions=dict(about.get("versions") or {}),
        )
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        got = f"tables or figures that cannot be read ({type(error).__name__}: {error})"
        raise InvalidInput("record", got, "Run the command that wrote it again.") from None
    check_study(study)
    return study


def table_from(about: Mapping | Table) -> Table:
    """A table from its description in a record; a Table is returned unchanged."""
    if isinstance(about, Table):
        return about
    return Table(
        title=str(about["title"]),
        columns=[Column(**_known(Column, column)) for column in about["columns"]],
        rows=[dict(row) for row in about["rows"]],
        marks=dict(about.get("marks") or {}),
    )


def _figure(about: Mapping) -> Figure:
    panels = [
        Panel(**{**_known(Panel, panel), "lines": [Line(**_known(Line, line)) for line in panel["lines"]]})
        for panel in about["panels"]
    ]
    return Figure(**{**_known(Figure, about), "panels": panels})


def _known(kind, about: Mapping) -> dict:
    return {each.name: about[each.name] for each in fields(kind) if each.name in about}


def check_study(study: Study) -> None:
    """Check that kinds and styles are known, figures have distinct file names, and lines name arrays that fit."""
    for table in study.tables:
        check_table(table)
    names = [figure.name for figure in study.figures]
    for figure in study.figures:
        where = f"figures[{figure.name!r}]"
        # The name becomes a file: nothing in it may lead out of the folder.
        if not isinstance(figure.name, str) or not re.fullmatch(r"\w[\w.-]*", figure.name):
            raise InvalidInput("figures", f"the name {figure.name!r}", "Pass letters, digits, '-', '_' and '.' only.")
        if names.count(figure.name) > 1:
            raise InvalidInput(where, "the same name twice", "Name each figure differently.")
        if isinstance(figure.columns, bool) or not isinstance(figure.columns, int) or figure.columns < 1:
            raise InvalidInput(f"{where}.columns", repr(figure.columns), "Pass a whole number ≥ 1.")
        if not figure.panels:
            raise InvalidInput(where, "no panels", "Pass at least one panel.")
        for i, panel in enumerate(figure.panels):
            for line in panel.lines:
                _check_line(f"{where}.panels[{i}], line {line.label!r}", line, study.arrays)


def check_table(table: Table) -> None:
    """Check that columns have known kinds and distinct keys."""
    where = f"tables[{table.title!r}]"
    for column in table.columns:
        if column.kind not in KINDS:
            raise InvalidInput(f"{where}.columns", f"kind {column.kind!r}", f"Pass one of {', '.join(KINDS)}.")
    keys = [column.key for column in table.columns]
    if not keys or len(set(keys)) < len(keys):
        raise InvalidInput(f"{where}.columns", f"keys {keys}", "Pass at least one column, each with its own key.")


def _check_line(where: str, line: Line, arrays: Mapping[str, np.ndarray]) -> None:
    if line.style not in STYLES:
        raise InvalidInput(where, f"style {line.style!r}", f"Pass one of {', '.join(STYLES)}.")
    shapes = []
    for name in (line.y,) if line.x is None else (line.y, line.x):
        if name not in arrays:
            raise InvalidInput(where, f"no array {name!r}", f"Pass one of {', '.join(sorted(arrays)) or 'none'}.")
        array = np.asarray(arrays[name])
        if array.ndim != 1 or array.dtype.kind not in "fiub":
            got = f"array {name!r} of shape {array.shape} and type {array.dtype}"
            raise InvalidInput(where, got, "Pass real numbers of shape (points,).")
        shapes.append(array.shape)
    if len(set(shapes)) > 1:
        got = f"{line.y!r} of shape {shapes[0]} over {line.x!r} of shape {shapes[1]}"
        raise InvalidInput(where, got, "Pass as many x as y.")


def plain(value):
    """The value in JSON types: NumPy's numbers as Python's, tuples as lists, anything else as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset | range):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int | float | bool | None) else str(value)
