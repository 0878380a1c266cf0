"""Metrics in Prometheus's text format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import isfinite

# Upper bounds of the response-time buckets, in seconds.
BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Answers:
    """Number of requests by path and status, and response times by path."""

    def __init__(self):
        self._counts: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def add(self, path: str, method: str, status: int, seconds: float) -> None:
        self._counts[path, method, status] += 1
        buckets = self._buckets.setdefault(path, [0] * (len(BUCKETS) + 1))
        self._seconds[path] = self._seconds.get(path, 0.0) + seconds
        for i, end in enumerate(BUCKETS):
            if seconds <= end:
                buckets[i] += 1
                return
        buckets[-1] += 1

    def lines(self) -> Iterable[str]:
        yield "# TYPE nashcast_requests_total counter"
        for (path, method, status), count in sorted(self._counts.items()):
            labels = f'path="{escaped(path)}",method="{escaped(method)}",status="{status}"'
            yield f"nashcast_requests_total{{{labels}}} {count}"
        yield "# TYPE nashcast_request_seconds histogram"
        for path, buckets in sorted(self._buckets.items()):
            below, label = 0, f'path="{escaped(path)}"'
            for end, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                below += count
                yield f'nashcast_request_seconds_bucket{{{label},le="{end}"}} {below}'
            yield f"nashcast_request_seconds_sum{{{label}}} {self._seconds[path]:.6f}"
            yield f"nashcast_request_seconds_count{{{label}}} {below}"


def metric(name: str, kind: str, help_text: str, values: Iterable[tuple[dict[str, str], float]]) -> Iterable[str]:
    """values: labels and number; unknown numbers are left out."""
    yield f"# HELP nashcast_{name} {help_text}"
    yield f"# TYPE nashcast_{name} {kind}"
    for labels, value in values:
        if not isfinite(value):
            continue
        shown = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
        yield f"nashcast_{name}{'{' + shown + '}' if shown else ''} {value:.17g}"


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
