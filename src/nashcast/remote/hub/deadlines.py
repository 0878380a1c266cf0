r"""The deadline of an agent's turn: fixed, or learnt from its earlier response times."""

from __future__ import annotations

from collections import Counter, deque
from statistics import median
from typing import NamedTuple, Protocol

from nashcast import validation as check


class Deadlines(Protocol):
    def of(self, name: str) -> float:
        """The deadline of an agent's next turn, in seconds."""
        ...

    def took(self, name: str, seconds: float) -> None:
        """Record the response time of an agent, in time or late."""
        ...

    def missed(self, name: str) -> None:
        """Record that an agent has missed its deadline."""
        ...


class Fixed(NamedTuple):
    """The same deadline for all agents."""

    seconds: float

    def of(self, name: str) -> float:
        return self.seconds

    def took(self, name: str, seconds: float) -> None: ...

    def missed(self, name: str) -> None: ...


class Learned:
    r"""$\text{median} + k \cdot \text{MAD}$ of an agent's last answers, between `least` and `most` seconds.

    MAD is the median absolute deviation. An agent has `most` until it has answered `MINIMUM` turns.

    An agent that has become slow is not lost: after 1, 2, 4, 8, … missed deadlines in a row its next deadline, and only
    that one, is 2, 4, 8, 16, … times as long, so that an agent that hangs delays the others by no more than a few times
    the usual deadline. After an answer, the next deadline is at least 1.5 times that answer's response time.
    """

    MINIMUM, MARGIN = 5, 1.5

    def __init__(self, k: float = 12.0, *, least: float = 0.25, most: float = 5.0, window: int = 100):
        self._k = check.number("k", k, above=0.0)
        self._least = check.number("least", least, above=0.0)
        self._most = max(check.number("most", most, above=0.0), self._least)
        self._window = check.integer("window", window, min=self.MINIMUM)
        self._times: dict[str, deque[float]] = {}
        self._usual: dict[str, float] = {}
        self._answers: Counter[str] = Counter()
        self._misses: Counter[str] = Counter()  # in a row

    def of(self, name: str) -> float:
        times = self._times.get(name)
        if times is None or len(times) < self.MINIMUM:
            return self._most
        if name not in self._usual:
            middle = median(times)
            self._usual[name] = middle + self._k * median(abs(time - middle) for time in times)
        usual, misses = max(self._usual[name], self._least, self.MARGIN * times[-1]), self._misses[name]
        if misses and misses & (misses - 1) == 0:
            usual *= 2.0 * misses
        return min(usual, self._most)

    def took(self, name: str, seconds: float) -> None:
        times = self._times.setdefault(name, deque(maxlen=self._window))
        times.append(seconds)
        self._misses[name] = 0
        self._answers[name] += 1
        # The median of a hundred times costs time and changes slowly: it is updated at every tenth answer.
        if len(times) < self._window or self._answers[name] % 10 == 0:
            self._usual.pop(name, None)

    def missed(self, name: str) -> None:
        self._misses[name] += 1
