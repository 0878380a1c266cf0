"""Export the journal as CSV or Parquet: one row per step, with the target and forecast of that step."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nashcast.errors import InvalidInput
from nashcast.extras import needed
from nashcast.service.journal.entries import LABEL, Entry, Outcome
from nashcast.service.journal.reader import JournalReader, StreamReader

FORMATS = ("csv", "parquet")
# Steps read and written at once, so that memory does not grow with the journal.
_CHUNK = 5000


def export(
    folder: str | Path, out: Path, *, stream: str | None = None, first: int | None = None, last: int | None = None
) -> int:
    """Write steps first … last of a stream atomically; the suffix of `out` is the format. Returns the number of rows.

    stream: its name; optional if there is only one.
    """
    kind = out.suffix.removeprefix(".").lower()
    if kind not in FORMATS:
        raise InvalidInput("out", f"{out.name}", "End its name with .csv or .parquet.")
    journal = JournalReader(folder)
    try:
        reader = journal.named(stream)
        shape = reader.shape()
        if shape is None:
            raise InvalidInput("journal", f"{folder}, which holds no forecast yet", "Post two observations first.")
        chunks = _chunks(reader, shape, first, last)
        partial = out.with_name(out.name + ".partial")
        try:
            count = (_write_csv if kind == "csv" else _write_parquet)(partial, chunks, _columns(shape))
            partial.replace(out)
        except OSError as error:
            raise InvalidInput("out", f"{out} ({error.strerror})", "Choose a file that can be written.") from None
        finally:
            partial.unlink(missing_ok=True)
        return count
    finally:
        journal.close()


def _columns(shape: dict[str, Any]) -> list[str]:
    numbered = lambda name, size: [f"{name}_{k}" for k in range(size)]  # noqa: E731
    y_dim, agents = shape["y_dim"], shape["agents"]
    found = ["step", "at", "time", "late"]
    found += numbered("x", shape["x_dim"]) + numbered("target", y_dim) + numbered("forecast", y_dim)
    for coverage in shape["coverages"]:
        for side in ("lower", "upper"):
            found += numbered(f"{side}_{100 * coverage:g}", y_dim)
    found += [f"weight: {name}" for name in agents]
    for name in agents:
        found += numbered(f"forecast: {name}", y_dim)
    return [*found, *numbered("no_game", y_dim), "absent"]


def _chunks(reader: StreamReader, shape: dict, first: int | None, last: int | None) -> Iterator[list[list]]:
    known = reader.steps()
    assert known is not None
    begin = known[0] if first is None else max(first, known[0])
    end = known[1] if last is None else min(last, known[1])
    while begin <= end:
        stop = min(begin + _CHUNK - 1, end)
        yield _rows(reader, shape, begin, stop)
        begin = stop + 1


def _rows(reader: StreamReader, shape: dict, begin: int, stop: int) -> list[list]:
    y_dim, agents = shape["y_dim"], len(shape["agents"])
    observed: dict[int, Entry] = {}
    labels: dict[int, Entry] = {}
    for entry in reader.entries(begin, stop):
        (labels if entry.kind == LABEL else observed)[entry.step] = entry
    outcomes = {outcome.step: outcome for outcome in reader.outcomes(begin, stop, agents, y_dim)}
    return [
        _row(step, observed.get(step), labels.get(step), outcomes.get(step), shape)
        for step in sorted(observed.keys() | outcomes.keys())
    ]


def _row(step: int, entry: Entry | None, label: Entry | None, outcome: Outcome | None, shape: dict) -> list:
    y_dim, agents, coverages = shape["y_dim"], len(shape["agents"]), len(shape["coverages"])
    target = label.y if label is not None else None if entry is None else entry.y
    at = None if entry is None else datetime.fromtimestamp(entry.at, UTC).isoformat()
    sent = None if entry is None or entry.time is None else datetime.fromtimestamp(entry.time, UTC).isoformat()
    row: list[Any] = [step, at, sent, label is not None]
    row += _cells(None if entry is None else entry.x, shape["x_dim"]) + _cells(target, y_dim)
    if outcome is None:
        return [*row, *[None] * (y_dim * (2 + 2 * coverages + agents) + agents), None]
    row += _cells(outcome.forecast, y_dim) + _cells(outcome.bounds, 2 * coverages * y_dim)
    row += _cells(outcome.weights, agents) + _cells(outcome.agents, agents * y_dim) + _cells(outcome.beside, y_dim)
    return [*row, json.dumps(outcome.absent) if outcome.absent else None]


def _cells(values, size: int) -> list[float | None]:
    if values is None:
        return [None] * size
    return [None if value != value else value for value in values.ravel().tolist()]


def _write_csv(path: Path, chunks: Iterator[list[list]], columns: list[str]) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for rows in chunks:
            writer.writerows(rows)
            count += len(rows)
    return count


def _write_parquet(path: Path, chunks: Iterator[list[list]], columns: list[str]) -> int:
    pa, parquet = needed("pyarrow", "pyarrow", "parquet"), needed("pyarrow.parquet", "pyarrow", "parquet")
    kinds = {"step": pa.int64(), "at": pa.string(), "time": pa.string(), "late": pa.bool_(), "absent": pa.string()}
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in columns])
    count = 0
    with parquet.ParquetWriter(path, schema) as writer:
        for rows in chunks:
            by_column = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
            arrays = [pa.array(list(cells), schema.field(i).type) for i, cells in enumerate(by_column)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(rows)
    return count
