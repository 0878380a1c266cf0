r"""Change detection in a stream: larger errors, too many interval misses, coverage off its nominal value.

Drift is found by cumulative sums of log-likelihood ratios (Page's test). With $p_0$ the distribution before and $p_1$
that of a change worth an alarm,

$$S_t = \max\Bigl(0,\; S_{t-1} + \log\frac{p_1(z_t)}{p_0(z_t)}\Bigr),$$

an alarm is raised where $S_t \ge h$ and cleared where $S_t$ is back at 0. Independent $z_t$ from $p_0$ take
at least $e^h$ steps on average to raise one. All of it is part of a stream's state: a replay raises the same alarms.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from nashcast.service.events.kinds import COVERAGE_BACK, COVERAGE_OFF, DRIFT, DRIFT_OVER

# h: at most one false alarm in 160,000 steps of each kind, on average.
THRESHOLD = 12.0
# A change worth an alarm: errors of twice the size (variance times 4), misses three times as frequent.
_VARIANCE, _MISSES = 4.0, 3.0
# Squared errors are clipped at this multiple of their mean, so that a single spike is no drift.
_CLIP = 9.0
# Scored steps before errors are compared, and longest memory of their mean.
_WARM, _MEMORY = 50, 500
# Coverage is checked every `_EVERY` scored steps from step `_FROM` on; it is off beyond `_ERRORS` standard errors.
_EVERY, _FROM, _ERRORS = 25, 100, 4.0
# Steps in the mean of recent errors, for messages.
_RECENT = 20

ERRORS, INTERVALS, COVERAGE = "errors", "intervals", "coverage"


class Noticed(NamedTuple):
    kind: str
    text: str


class Watch:
    """Learns from each scored forecast. coverages: nominal coverages of the intervals."""

    def __init__(self, coverages: Sequence[float]):
        self._coverages = tuple(coverages)
        self._count = 0
        self._scale = 0.0  # mean squared error of the past
        self._recent = 0.0  # exponentially weighted mean squared error of the last steps
        self._errors, self._debt = 0.0, 0.0  # the two sums
        self._raised = np.zeros(2 + len(coverages), dtype=bool)
        self._noticed: list[Noticed] = []

    def learn(self, error: float, inside: float) -> None:
        """error: squared, averaged over targets.   inside: share of targets in their widest interval; NaN for none."""
        if self._count >= _WARM:
            self._errors = self._sum(0, self._errors, self._error_ratio(error), self._jump)
        if inside == inside:
            self._debt = self._sum(1, self._debt, self._miss_ratio(1.0 - inside), self._misses)
        self._count += 1
        known = error if self._count <= 5 else min(error, _CLIP * self._scale) if self._scale > 0 else error
        # Averages over about the last third of the steps, at most `_MEMORY`: early errors of new agents are forgotten.
        self._scale += (known - self._scale) * max(3 / (self._count + 2), 1 / _MEMORY)
        self._recent += (error - self._recent) / min(self._count, _RECENT)

    @property
    def due(self) -> bool:
        """Whether to check coverage after this step."""
        return self._count >= _FROM and self._count % _EVERY == 0

    def cover(self, achieved: np.ndarray, window: int) -> None:
        """achieved: shares of the last `window` targets inside each interval. Call it when `due`."""
        steps = min(self._count, window)
        for i, (nominal, share) in enumerate(zip(self._coverages, achieved.tolist(), strict=True)):
            far = _ERRORS * sqrt(nominal * (1 - nominal) / steps)
            off, was = abs(share - nominal), self._raised[2 + i]
            if share == share and (off > far if not was else off < far / 2):
                self._raised[2 + i] = not was
                text = f"{100 * nominal:g} % intervals held {100 * share:.1f} % of the last {steps} targets"
                self._noticed.append(Noticed(COVERAGE_BACK if was else COVERAGE_OFF, text))

    def drain(self) -> list[Noticed]:
        """Events since the last call."""
        found, self._noticed = self._noticed, []
        return found

    def alarms(self) -> list[str]:
        """Which alarms are raised now: errors, intervals, coverage."""
        raised = [bool(self._raised[0]), bool(self._raised[1]), bool(self._raised[2:].any())]
        return [name for name, on in zip((ERRORS, INTERVALS, COVERAGE), raised, strict=True) if on]

    def _error_ratio(self, error: float) -> float:
        """Log p1/p0 of a normal error: the past variance under p0, `_VARIANCE` times it under p1."""
        z = min(error / self._scale, _CLIP) if self._scale > 0 else _CLIP * (error > 0)
        return 0.5 * (z * (1 - 1 / _VARIANCE) - log(_VARIANCE))

    def _miss_ratio(self, missed: float) -> float:
        """Log p1/p0 of a miss: the nominal probability under p0, `_MISSES` times it under p1."""
        alpha = 1.0 - self._coverages[-1]
        more = min(_MISSES * alpha, (1 + alpha) / 2)
        return missed * log(more / alpha) + (1.0 - missed) * log((1 - more) / (1 - alpha))

    def _sum(self, which: int, before: float, ratio: float, words) -> float:
        now = min(max(0.0, before + ratio), THRESHOLD)
        if now == THRESHOLD and not self._raised[which]:
            self._raised[which] = True
            self._noticed.append(Noticed(DRIFT, words()))
        elif now == 0.0 and self._raised[which]:
            self._raised[which] = False
            text = "errors are as before" if which == 0 else "intervals hold as many targets as they should"
            self._noticed.append(Noticed(DRIFT_OVER, text))
        return now

    def _jump(self) -> str:
        times = sqrt(self._recent / self._scale) if self._scale > 0 else float("inf")
        return f"error jump: recent errors are {times:.1f} times as large as before"

    def _misses(self) -> str:
        share = 100 * self._coverages[-1]
        return f"interval debt: {share:g} % intervals miss far more of the last targets than {100 - share:g} %"

    def save(self) -> dict[str, np.ndarray]:
        numbers = [self._count, self._scale, self._recent, self._errors, self._debt]
        return {"numbers": np.array(numbers, dtype=np.float64), "raised": self._raised.copy()}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        count, self._scale, self._recent, self._errors, self._debt = saved["numbers"].tolist()
        self._count, self._raised = int(count), saved["raised"].astype(bool)
