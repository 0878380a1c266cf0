"""The paper's Logistic Map, its rate driven by three sines."""

from __future__ import annotations

from math import pi, sin

import numpy as np

from nashcast import validation as check
from nashcast.datasets.base import Stream


def logistic_map(steps: int = 200) -> Stream:
    r"""$s_0 = 0.6$, $s_i = (3.6 + 0.13 f_i)\, s_{i-1}(1 - s_{i-1})$; the input is the last value.

    $f_i = \sin 2\pi5t + \sin 2\pi11t + \sin 2\pi13t$ at $t = i/(R + 2)$: another number of steps is another series.
    """
    R = check.integer("steps", steps, min=1)
    # The map is chaotic: any other order of these operations gives a series that diverges from the published run.
    tick = 1 / (R + 2)
    s = np.empty((R + 1, 1))
    value = s[0, 0] = 0.6
    for i in range(1, R + 1):
        t = i * tick
        f = sin(2 * pi * 5 * t) + sin(2 * pi * 11 * t) + sin(2 * pi * 13 * t)
        value = s[i, 0] = (3.6 + 0.13 * f) * value * (1 - value)
    return Stream("logistic map", s[:-1], s[1:], s[0])
