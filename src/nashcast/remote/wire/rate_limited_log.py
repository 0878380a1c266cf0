"""Log lines about somebody else, few however often there is reason for one: nobody can fill the hub's log."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable


class Complaints:
    """The first `most` lines about somebody are said at once; of more within `every` seconds, how many and the last.

    counts: all of them, by whom they are about.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        most: int = 5,
        every: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._say, self._most, self._every, self._clock = say, most, every, clock
        self._began: dict[str, float] = {}
        self._said: Counter[str] = Counter()
        self._kept: dict[str, tuple[int, str]] = {}
        self.counts: Counter[str] = Counter()
        self._lock = threading.Lock()  # hellos come in another thread than replies

    def add(self, who: str, line: str) -> None:
        with self._lock:
            self.counts[who] += 1
            now = self._clock()
            if now - self._began.get(who, float("-inf")) >= self._every:
                self._tell(who)
                self._began[who], self._said[who] = now, 0
            if self._said[who] < self._most:
                self._said[who] += 1
                self._say(f"{who}: {line}")
            else:
                self._kept[who] = self._kept.get(who, (0, ""))[0] + 1, line

    def flush(self) -> None:
        """Say what is kept back."""
        with self._lock:
            for who in list(self._kept):
                self._tell(who)

    def _tell(self, who: str) -> None:
        count, line = self._kept.pop(who, (0, ""))
        if count:
            self._say(f"{who}: {count} more, the last: {line}")
