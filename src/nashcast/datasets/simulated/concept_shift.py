"""The paper's Concept Shift: halfway through, the relation between inputs and targets changes fast but smoothly."""

from __future__ import annotations

import numpy as np

from nashcast import validation as check
from nashcast.datasets.base import Stream
from nashcast.errors import InvalidInput


def concept_shift(steps: int = 200, target: int | None = None) -> Stream:
    """target: 0 or 1 for one of the two, None for both. The input at a step contains the point to forecast."""
    R = check.integer("steps", steps, min=1)
    p = np.linspace(0, 2 * np.pi, R + 2)
    root = np.sqrt(p)
    before = [p**2 + np.sin(p) + p * root + 0.5 * np.cos(10 * p), p * np.cos(p) + root - np.exp(-p)]
    after = [2 * p - np.sin(root), np.cos(p) * np.sin(p) + p + 0.25 * np.cos(10 * p)]
    first, last = 7 / 8 * np.pi, 9 / 8 * np.pi
    share = np.where(p < first, 1.0, np.where(p > last, 0.0, np.cos(2 * (p - first))))
    y = np.stack([share * b + (1 - share) * a for b, a in zip(before, after, strict=True)], axis=1)
    x = np.stack([p, p, root], axis=1)
    if target is not None and check.integer("target", target, min=0) > 1:
        raise InvalidInput("target", f"{target}", "Pass 0 or 1 for one of the two targets, or None for both.")
    chosen = y if target is None else y[:, [target]]
    return Stream("concept shift", x[1 : R + 1], chosen[1 : R + 1], chosen[0])
