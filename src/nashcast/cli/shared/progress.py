"""One line of progress on standard error, for commands that take a while."""

from __future__ import annotations

import sys
import time

WIDTH = 30
# Without a terminal one line is printed per interval, so that a log stays short.
_LOG_INTERVAL_S = 30.0


class Progress:
    """Called as progress(label, done, total); estimates the time left from the pace under this label."""

    def __init__(self, shown: bool = True):
        self._shown, self._terminal = shown, sys.stderr.isatty()
        self._label, self._begun, self._first, self._last = "", 0.0, 0, 0.0

    def __call__(self, label: str, done: int, total: int) -> None:
        now = time.monotonic()
        if label != self._label:
            self._label, self._begun, self._first = label, now, done
        finished = done >= total
        if not self._shown or (now - self._last < (0.1 if self._terminal else _LOG_INTERVAL_S) and not finished):
            return
        self._last = now
        pace = (done - self._first) / max(now - self._begun, 1e-9)
        left = f", {clock((total - done) / pace)} left" if pace > 0 and not finished else ""
        text = f"{label}: {done:,} of {total:,}{left}"
        if not self._terminal:
            print(text, file=sys.stderr, flush=True)
        elif finished:
            self.clear()
        else:
            filled = "█" * (WIDTH * done // max(total, 1))
            print(f"\r\x1b[K[{filled:{WIDTH}}] {text}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Clear the line, so that the next output starts on it."""
        if self._shown and self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> clock(59), clock(61), clock(7322)
    ('0:59', '1:01', '2:02:02')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
