"""Rate limits: one token bucket per caller, filled at a constant rate."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

# Callers stored; beyond this number the least recent are dropped, whose buckets are full again by then.
REMEMBERED = 10_000


class Rates:
    """rate: requests a second on average.   burst: largest burst."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic):
        self._rate, self._burst, self._clock = rate, burst, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, asker: str) -> float:
        """0 if the request is allowed now, else seconds until it is."""
        now = self._clock()
        level, before = self._buckets.pop(asker, (self._burst, now))
        level = min(self._burst, level + (now - before) * self._rate)
        allowed = level >= 1.0
        self._buckets[asker] = (level - 1.0 if allowed else level, now)
        if len(self._buckets) > REMEMBERED:
            self._buckets.popitem(last=False)
        return 0.0 if allowed else (1.0 - level) / self._rate
