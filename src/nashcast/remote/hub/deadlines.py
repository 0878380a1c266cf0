r"""How long an agent may take for a turn: always the same, or learnt from how long it took before."""

from __future__ import annotations

from collections import Counter, deque
from statistics import median
from typing import NamedTuple, Protocol

from nashcast import validation as check


class Deadlines(Protocol):
    def of(self, name: str) -> float:
        """Seconds that an agent has for its next turn."""
        ...

    def took(self, name: str, seconds: float) -> None:
        """It has answered after so long, in time or late."""
        ...

    def missed(self, name: str) -> None:
        """It has not answered in time."""
        ...


class Fixed(NamedTuple):
    """The same for everybody."""

    seconds: float

    def of(self, name: str) -> float:
        return self.seconds

    def took(self, name: str, seconds: float) -> None: ...

    def missed(self, name: str) -> None: ...


class Learned:
    r"""$\text{median} + k \cdot \text{MAD}$ of an agent's last answers, between `least` and `most` seconds.

    MAD is the median distance from the median. An agent has `most` until it has answered `MINIMUM` turns.

    One that has become slow is found again: after 1, 2, 4, 8, … turns in a row not answered in time it has 2, 4, 8, 16,
    … times as long for the next one, and only for that one, so that an agent that hangs does not hold up the others for
    more than a few times what is usual; and after an answer it has at least half as long again for the next.
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
        # A median over a hundred times is not free, and moves slowly.
        if len(times) < self._window or self._answers[name] % 10 == 0:
            self._usual.pop(name, None)

    def missed(self, name: str) -> None:
        self._misses[name] += 1
