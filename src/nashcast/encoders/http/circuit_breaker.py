"""A circuit breaker: a server that fails repeatedly is not called for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from nashcast.errors import NashcastError

Result = TypeVar("Result")


class CircuitBreaker:
    """failures: how many in a row open it.   pause: seconds it stays open; then one call is allowed.

    clock: seconds, for tests.
    """

    def __init__(self, failures: int, pause: float, clock: Callable[[], float] = time.monotonic):
        self._limit, self._pause, self._clock = failures, pause, clock
        self._failures, self._open_until = 0, -1.0

    def call(self, function: Callable[[], Result]) -> Result:
        now = self._clock()
        if now < self._open_until:
            left = self._open_until - now
            raise NashcastError(f"not asked: it failed {self._failures} times in a row, next attempt in {left:.0f} s")
        try:
            result = function()
        except Exception:
            self._failures += 1
            if self._failures >= self._limit:
                self._open_until = self._clock() + self._pause
            raise
        self._failures = 0
        return result
