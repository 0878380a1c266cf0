"""Past steps as recorded in the journal: target and forecast of the same step in one row."""

from __future__ import annotations

from typing import Any

from nashcast.service.journal.entries import LABEL
from nashcast.service.journal.reader import StreamReader
from nashcast.service.streams.stream import Stream
from nashcast.service.streams.views import forecast_row, iso_time, plain


def read_history(
    reader: StreamReader, stream: Stream, first: int | None, last: int | None, limit: int, every: int
) -> dict:
    """Rows of steps first … last, at most `limit`, only steps divisible by `every`; the newest if first is None."""
    serve = stream.config.serve
    head = {"agents": stream.names, "coverages": list(serve.coverages)}
    known = reader.steps()
    if known is None:
        return {**head, "rows": [], "next": None}
    oldest, newest = known
    end = newest if last is None else min(last, newest)
    if first is not None and first > end:
        return {**head, "rows": [], "next": None}
    # The newest step on the grid of `every`, and limit - 1 grid steps before it.
    start = max(oldest, end // every * every - (limit - 1) * every) if first is None else max(first, oldest)
    begin = -(-start // every) * every
    stop = min(end, begin + (limit - 1) * every)
    rows: dict[int, dict] = {}
    for entry in reader.entries(begin, stop, every):
        if entry.kind == LABEL:
            rows[entry.step] |= {"target": plain(entry.y), "late": True}
        else:
            rows[entry.step] = {
                "step": entry.step, "at": entry.at, "time": iso_time(entry.time), "x": plain(entry.x),
                "target": plain(entry.y), "late": False,
            } | _NO_FORECAST  # fmt: skip
    for outcome in reader.outcomes(begin, stop, len(stream.names), serve.y_dim, every):
        empty = {
            "step": outcome.step,
            "at": None,
            "time": None,
            "x": None,
            "target": None,
            "late": False,
        } | _NO_FORECAST
        rows[outcome.step] = rows.get(outcome.step, empty) | forecast_row(outcome)
    for entry in reader.entries(begin - 1, stop - 1, every, every - 1):
        if entry.y is not None and entry.step + 1 in rows:
            rows[entry.step + 1]["persistence"] = plain(entry.y)
    following = stop + every
    return {**head, "rows": [rows[step] for step in sorted(rows)], "next": following if following <= end else None}


_NO_FORECAST: dict[str, Any] = {
    "persistence": None, "forecast": None, "bounds": None, "weights": None, "agents": None, "beside": None,
    "absent": {}, "played": False, "fell_back": False,
}  # fmt: skip
_NOTHING = {"step": 0, "at": None, "time": None, "x": None, "target": None, "late": False} | _NO_FORECAST
