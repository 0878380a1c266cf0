"""A ring buffer by step of the intervals issued with the last forecasts; each column reads the row of its step."""

from __future__ import annotations

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.intervals.residuals import Issued


class IssuedLog:
    """like: an entry of one step, for the shapes.   steps: how many are stored."""

    def __init__(self, like: Issued, steps: int):
        self._rows = Issued(*(np.zeros((steps, *part.shape)) for part in like))
        self._steps = np.full(steps, -1, dtype=np.int64)
        self._columns = np.arange(len(like.widths))

    def add(self, step: int, issued: Issued) -> None:
        place = step % len(self._steps)
        self._steps[place] = step
        for ring, part in zip(self._rows, issued, strict=True):
            ring[place] = part

    def at(self, steps: np.ndarray, now: Issued) -> Issued:
        """For each column what was issued at its step, (columns,); `now` where that is no longer stored."""
        places = steps % len(self._steps)
        known = (self._steps[places] == steps) & (steps >= 0)
        taken = Issued(*(ring[places, self._columns] for ring in self._rows))
        if known.all():
            return taken
        parts = zip(taken, now, strict=True)
        return Issued(*(np.where(known.reshape(-1, *[1] * (old.ndim - 1)), old, new) for old, new in parts))

    def save(self) -> dict[str, np.ndarray]:
        return {"issued_steps": self._steps} | {f"issued_{name}": part for name, part in self._rows._asdict().items()}

    def restore(self, saved: dict[str, np.ndarray]) -> None:
        """Restore what `save` returned; raises InvalidInput, and changes nothing, if it does not fit."""
        for name, own in self.save().items():
            given = saved.get(name)
            if given is None or given.shape != own.shape or given.dtype != own.dtype or np.isnan(given).any():
                raise InvalidInput(f"saved {name}", "nothing that fits", "Use an earlier copy.")
        for name, own in self.save().items():
            own[...] = saved[name]
