"""Rate-limits log lines per agent, so that a misbehaving agent cannot flood the hub's log."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable


class Complaints:
    """Writes the first `most` lines about an agent; of further ones within `every` seconds, their number and the last.

    counts: the number of lines by agent, written or not.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        most: int = 5,
        every: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._write, self._most, self._every, self._clock = say, most, every, clock
        self._began: dict[str, float] = {}
        self._written: Counter[str] = Counter()
        self._suppressed: dict[str, tuple[int, str]] = {}
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()  # hellos come in another thread than replies

    def add(self, who: str, line: str) -> None:
        with self._lock:
            self.counts[who] += 1
            now = self._clock()
            if now - self._began.get(who, float("-inf")) >= self._every:
                self._summarise(who)
                self._began[who], self._written[who] = now, 0
            if self._written[who] < self._most:
                self._written[who] += 1
                self._write(f"{who}: {line}")
            else:
                self._suppressed[who] = self._suppressed.get(who, (0, ""))[0] + 1, line

    def flush(self) -> None:
        """Write a summary of the suppressed lines."""
        with self._lock:
            for who in list(self._suppressed):
                self._summarise(who)

    def _summarise(self, who: str) -> None:
        count, line = self._suppressed.pop(who, (0, ""))
        if count:
            self._write(f"{who}: {count} more, the last: {line}")
