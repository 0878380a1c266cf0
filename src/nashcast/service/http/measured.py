"""The service's metrics for Prometheus, from data in the front process; workers are not queried."""

from __future__ import annotations

import time
from math import nan
from typing import Any

from nashcast.service.events.kinds import EVENTS
from nashcast.service.events.watch import COVERAGE, ERRORS, INTERVALS
from nashcast.service.http.metrics import metric
from nashcast.service.streams.service import Service
from nashcast.service.streams.stream import LIVE

# Above this number of streams, metrics of single agents are left out to limit the size.
_WITH_AGENTS = 50


async def measured(service: Service) -> list[str]:
    writer = service.writer
    entries, size = await service.read(service.reader.size)
    one: dict[str, str] = {}
    lines: list[str] = []
    add = lines.extend
    now = time.monotonic()
    add(metric("up_seconds", "gauge", "Seconds since the process began.", [(one, time.time() - service.began)]))
    add(metric("ready", "gauge", "1 if observations are accepted.", [(one, float(service.not_ready() is None))]))
    for name, figure in service.placement.figures().items():
        add(metric(name, "gauge", "State of this machine in its cluster.", [(one, figure)]))
    kinds = [({"kind": kind}, float(count)) for kind, count in writer.counts.items()]
    add(metric("journal_total", "counter", "Entries accepted, repeated, refused; commits; snapshots.", kinds))
    spent = [({"in": what}, seconds) for what, seconds in writer.seconds.items()]
    add(metric("journal_seconds_total", "counter", "Seconds spent committing and recording.", spent))
    add(metric("journal_entries", "gauge", "Entries stored.", [(one, entries)]))
    add(metric("journal_bytes", "gauge", "Bytes of the journal's main file.", [(one, size)]))
    add(metric("waiting", "gauge", "Observations that wait to be committed.", [(one, writer.waiting)]))
    add(metric("event_readers", "gauge", "Readers of event streams.", [(one, service.events.count)]))
    workers = [({"worker": str(each.number)}, each) for each in service.pool]
    add(metric("worker_up", "gauge", "1 if the process runs.", [(k, float(w.alive)) for k, w in workers]))
    add(metric("worker_deaths_total", "counter", "Processes replaced.", [(k, float(w.deaths)) for k, w in workers]))
    silence = [(labels, now - worker.sign.heard) for labels, worker in workers]
    add(metric("worker_silence_seconds", "gauge", "Seconds since its last heartbeat.", silence))
    seconds = [(labels, worker.sign.seconds) for labels, worker in workers]
    add(metric("worker_seconds_total", "counter", "CPU seconds of the process.", seconds))
    counts = [({"kind": kind}, float(service.event_counts[kind])) for kind in EVENTS]
    add(metric("events_total", "counter", "Events since the process began.", counts))
    hooks = [({"hook": each.hook.host}, each) for each in service.deliveries]
    told = [({**k, "result": result}, float(n)) for k, each in hooks for result, n in each.counts.items()]
    add(metric("webhook_total", "counter", "Events posted, retried, dropped.", told))
    add(metric("webhook_failing", "gauge", "1 if the address refuses.", [(k, float(e.failing)) for k, e in hooks]))
    _add_streams(service, add)
    add(service.answers.lines())
    return lines


def _add_streams(service: Service, add: Any) -> None:
    streams = [({"stream": stream.name}, stream) for stream in service.streams.values()]
    add(metric("step", "gauge", "The last step computed.", [(k, _number(s.step)) for k, s in streams]))
    add(metric("behind", "gauge", "Entries not computed yet.", [(k, float(s.behind)) for k, s in streams]))
    add(metric("last_observation_time", "gauge", "Time of the last observation, in seconds since 1970.",
               [(k, _number(s.at)) for k, s in streams]))  # fmt: skip
    add(metric("live", "gauge", "1 if the stream is up to date.", [(k, float(s.state == LIVE)) for k, s in streams]))
    known = [(labels, stream.summary) for labels, stream in streams if stream.summary is not None]
    errors, covered, steps = [], [], []
    for labels, summary in known:
        recent = summary["scores"]["recent"]
        names = {"federation": "mse", "persistence": "persistence_mse", "no game": "no_game_mse"}
        errors += [({**labels, "of": of}, _number(recent[name])) for of, name in names.items()]
        covered += [
            ({**labels, "nominal": f"{row['nominal']:g}"}, _number(row["achieved"])) for row in summary["coverage"]
        ]
        counted = ("games", "fallbacks", "missing_labels", "late_labels", "suspect_labels")
        steps += [({**labels, "kind": name}, _number(summary["game"][name])) for name in counted]
    add(metric("squared_error", "gauge", "Mean squared error over the last steps.", errors))
    add(metric("coverage", "gauge", "Share of the last targets inside their interval.", covered))
    add(metric("steps_total", "counter", "Games, fallbacks, missing, late and suspect labels.", steps))
    days = [
        ({**labels, "certificate": name}, left)
        for labels, summary in known
        for name, left in summary["certificate_days"].items()
    ]
    add(metric("certificate_days", "gauge", "Days until a certificate of the hub expires.", days))
    alarms = [
        ({**labels, "kind": kind}, float(kind in summary["alarms"]))
        for labels, summary in known for kind in (ERRORS, INTERVALS, COVERAGE)
    ]  # fmt: skip
    add(metric("alarm", "gauge", "1 while errors or intervals drift, or coverage is off.", alarms))
    out = [(k, float(sum(a["state"] != "in" for a in summary["agents"]))) for k, summary in known]
    add(metric("agents_out", "gauge", "Absent agents.", out))
    agents = [
        ({**labels, "agent": agent["name"]}, agent) for labels, summary in known[:_WITH_AGENTS]
        for agent in summary["agents"]
    ]  # fmt: skip
    add(metric("agent_weight", "gauge", "Weight in the mixture.", [(k, a["weight"]) for k, a in agents]))
    add(metric("agent_squared_error", "gauge", "Mean squared error.", [(k, _number(a["error"])) for k, a in agents]))
    add(metric("agent_in", "gauge", "1 if the agent takes part.", [(k, float(a["state"] == "in")) for k, a in agents]))
    add(metric("agent_absences_total", "counter", "Steps it missed.", [(k, float(a["absences"])) for k, a in agents]))


def _number(value: float | None) -> float:
    return nan if value is None else float(value)
