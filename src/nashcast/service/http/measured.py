"""The service's own figures, gathered for Prometheus."""

from __future__ import annotations

import time
from math import nan

from nashcast.service.http.metrics import metric
from nashcast.service.streams.scores import BESIDE, MIXTURE, PERSISTENCE
from nashcast.service.streams.state import Service


async def measured(service: Service) -> list[str]:
    worker, feed = service.worker, service.feed
    agents, counts, recent = await service.ask(
        lambda: (worker.live.agents(), worker.live.counts(), worker.live.scores.recent())
    )
    entries, size = await service.read(service.reader.size)
    one = {}
    lines: list[str] = []
    add = lines.extend
    add(metric("up_seconds", "gauge", "Seconds since the process began.", [(one, time.time() - service.began)]))
    add(metric("ready", "gauge", "1 if observations are taken.", [(one, float(service.not_ready() is None))]))
    add(metric("step", "gauge", "The last step observed.", [(one, nan if service.step is None else service.step)]))
    kinds = [({"kind": kind}, float(count)) for kind, count in worker.counts.items()]
    add(metric("journal_total", "counter", "Entries accepted, repeated, refused; commits; snapshots.", kinds))
    spent = [({"in": what}, seconds) for what, seconds in worker.seconds.items()]
    add(metric("worker_seconds_total", "counter", "Seconds spent committing and computing.", spent))
    add(metric("journal_entries", "gauge", "Entries kept.", [(one, entries)]))
    add(metric("journal_bytes", "gauge", "Bytes of the journal's main file.", [(one, size)]))
    add(metric("waiting", "gauge", "Observations that wait to be committed.", [(one, worker.waiting)]))
    add(metric("event_readers", "gauge", "Readers of the event stream.", [(one, feed.readers)]))
    add(metric("event_messages_total", "counter", "Messages sent to them.", [(one, feed.sent)]))
    steps = [({"kind": kind.replace(" ", "_")}, float(count)) for kind, count in counts.items()]
    add(metric("steps_total", "counter", "Games, fallbacks, missing, late and suspect labels.", steps))
    errors = [({"of": "federation"}, recent[MIXTURE]), ({"of": "persistence"}, recent[PERSISTENCE])]
    errors.append(({"of": "no game"}, recent[BESIDE]))
    add(metric("squared_error", "gauge", "Mean squared error over the last steps.", errors))
    add(metric("agent_weight", "gauge", "Weight in the mixture.", [({"agent": a.name}, a.weight) for a in agents]))
    add(metric("agent_squared_error", "gauge", "The same of an agent.", [({"agent": a.name}, a.error) for a in agents]))
    add(
        metric(
            "agent_in", "gauge", "1 if it takes part.", [({"agent": a.name}, float(a.state == "in")) for a in agents]
        )
    )
    absences = [({"agent": a.name}, float(a.absences)) for a in agents]
    add(metric("agent_absences_total", "counter", "Steps it sat out.", absences))
    if service.made.elsewhere is not None:
        days = [({"certificate": name}, left) for name, left in service.made.elsewhere.certificate_days().items()]
        add(metric("certificate_days", "gauge", "Days until a certificate of the hub expires.", days))
    add(service.answers.lines())
    return lines
