"""Post history from files to streams without observations, with the same checks as HTTP posts."""

from __future__ import annotations

import csv
import logging
import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.extras import needed
from nashcast.service.journal.entries import OBSERVATION
from nashcast.service.streams.intake import Item
from nashcast.service.streams.service import Service
from nashcast.service.streams.settings import ServeSettings

logger = logging.getLogger("nashcast.service")
CHUNK = 1000
LARGEST = 1e15


def history_files(path: Path, names: Sequence[str]) -> dict[str, Path]:
    """File of each stream: one file for a single stream, else NAME.csv or NAME.parquet in a folder."""
    if path.is_file():
        if len(names) != 1:
            remedy = "Pass a folder with a file NAME.csv or NAME.parquet for each."
            raise InvalidInput("history", f"one file for {len(names)} streams", remedy)
        return {names[0]: path}
    if not path.is_dir():
        raise InvalidInput("history", f"no file or folder {path}", "Pass one that is there.")
    found = {}
    for each in sorted(path.iterdir()):
        if each.suffix in (".csv", ".parquet"):
            if each.stem not in names:
                raise InvalidInput("history", f"{each.name}, but no stream {each.stem!r}", "Name files as streams.")
            found[each.stem] = each
    return found


def read_history_file(path: Path, serve: ServeSettings) -> Iterator[Item]:
    """Columns x or x_0, x_1 …; y or y_0 …, or target_0 … as in an export; optionally time."""
    columns: tuple[list[str], list[str], bool] | None = None
    for number, row in enumerate(_rows(path), start=2):
        if columns is None:
            columns = _columns(path, list(row), serve)
        xs, ys, timed = columns
        where = f"{path.name}: row {number}"
        y = [_number(where, name, row[name]) for name in ys]
        x = [_number(where, name, row[name]) for name in xs]
        target = None if any(math.isnan(value) for value in y) else np.array(y)
        time = _seconds(where, row["time"]) if timed else None
        yield Item(where, OBSERVATION, None, None, np.array(x), target, time)


async def warm_start(service: Service, files: dict[str, Path]) -> None:
    """Post the files' rows to streams without observations. Errors in a file are logged."""
    for name, path in files.items():
        stream = service.streams.get(name)
        if stream is None or stream.journal.step is not None:
            logger.info("history %s: stream %s has observations already", path.name, name)
            continue
        try:
            count, rows = 0, read_history_file(path, stream.config.serve)
            while chunk := await service.read(lambda rows=rows: _some(rows)):
                await service.writer.post(stream, chunk)
                count += len(chunk)
            logger.info("history %s: %d observations posted to %s", path.name, count, name)
        except Exception as error:
            logger.error("history %s: %s", path.name, error)


def _some(rows: Iterator[Item]) -> list[Item]:
    return [item for _, item in zip(range(CHUNK), rows, strict=False)]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if path.suffix == ".parquet":
        parquet = needed("pyarrow.parquet", "pyarrow", "parquet")
        for batch in parquet.ParquetFile(path).iter_batches(CHUNK):
            yield from batch.to_pylist()
        return
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _columns(path: Path, names: list[str], serve: ServeSettings) -> tuple[list[str], list[str], bool]:
    def numbered(size: int, *stems: str) -> list[str]:
        for stem in stems:
            wanted = [f"{stem}_{k}" for k in range(size)]
            if size == 1 and stem in names:
                return [stem]
            if set(wanted) <= set(names):
                return wanted
        remedy = f"Add columns {', '.join(f'{stems[0]}_{k}' for k in range(min(size, 3)))}{' …' if size > 3 else ''}."
        raise InvalidInput(f"{path.name}", f"columns {', '.join(names[:10])}", remedy)

    return numbered(serve.x_dim, "x"), numbered(serve.y_dim, "y", "target"), "time" in names


def _number(where: str, name: str, value: Any) -> float:
    if value is None or value == "":
        return math.nan
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.inf
    if not (math.isnan(found) or abs(found) <= LARGEST):
        raise InvalidInput(f"{where}.{name}", repr(value)[:60], f"Pass a number between {-LARGEST:g} and {LARGEST:g}.")
    return found


def _seconds(where: str, value: Any) -> float | None:
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        found = value
    elif isinstance(value, int | float):
        return float(value)
    else:
        try:
            return float(value)
        except ValueError:
            pass
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidInput(f"{where}.time", repr(value)[:60], "Pass seconds since 1970, or ISO 8601.") from None
    if found.tzinfo is None:
        raise InvalidInput(f"{where}.time", repr(value)[:60], "Pass a time with its offset from UTC.")
    return found.timestamp()
