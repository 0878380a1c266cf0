"""The current forecast, read from the journal, so that it is available after a restart before a worker computes it."""

from __future__ import annotations

from nashcast.service.journal.entries import OBSERVATION, read_outcome
from nashcast.service.journal.reader import StreamReader
from nashcast.service.streams.stream import Stream
from nashcast.service.streams.views import encoded, forecast_view


def recorded_standing(reader: StreamReader, stream: Stream) -> tuple[bytes | None, int]:
    """The forecast as JSON and the position of the entry it follows; None and 0 if it is not recorded."""
    step, serve = stream.journal.step, stream.config.serve
    row = None if step is None else reader.forecast_row(step + 1)
    last, _ = reader.end()
    if row is None or step is None or row[1] != last:
        return None, 0
    outcome = read_outcome(row, len(stream.names), serve.y_dim)
    entries = [entry for entry in reader.entries(step - 1, step) if entry.kind == OBSERVATION]
    times, now = None, entries[-1].time
    before = entries[0].time if len(entries) > 1 else None
    apart = serve.time_step or (now - before if now is not None and before is not None and now > before else None)
    if now is not None and apart is not None:
        horizon = stream.config.federation.horizon
        times = [now + (h + 1) * apart for h in range(horizon)]
    return encoded(forecast_view(outcome, entries[-1].at, stream.names, serve, times)), row[1]
