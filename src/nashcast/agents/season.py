"""The season, estimated from autocorrelations of the targets' changes, unless it was given."""

from __future__ import annotations

import numpy as np

LONGEST_SEASON = 168
_FADING = 0.999
_LEAST_CORRELATION = 0.1
# A season and its multiples correlate alike: the shortest peak that comes this close to the best is taken, in height
# over 0 and over the valley before it. Short lags correlate without being seasons, but have no valley before them.
_NEARLY, _STEEP = 0.75, 0.6
# How much higher the correlation of another season must be than that of the present one.
_BETTER, _MUCH_BETTER = 0.9, 1.1
# It is estimated at each of the first steps, this many, and then once in this many.
_EVERY_STEP, _SELDOM = 256, 16
_ROUNDING = 1e-9


class Season:
    """length: that of the present season, 0 if there is none.   given: its length, if it is known beforehand."""

    def __init__(self, y_dim: int, given: int | None = None):
        self.given = given or 0
        self.length = self.given
        # Fading products of each target's change with those before it, (y_dim, lags).
        self._products = np.zeros((y_dim, LONGEST_SEASON + 2))

    def learn(self, targets: np.ndarray, step: int) -> None:
        """Learn a target. targets: the known ones, the newest last; at most LONGEST_SEASON + 3 are used."""
        if self.given:
            return
        recent = targets[-(LONGEST_SEASON + 3) :]
        changes = (recent[1:] - recent[:-1])[::-1]
        self._products *= _FADING
        # Targets are at most 1e150 in size, so products are finite; beyond 1e300 they carry no information.
        products = changes[0][:, None] * changes.T
        self._products[:, : len(changes)] += np.minimum(np.maximum(products, -1e300), 1e300)
        if step <= _EVERY_STEP or step % _SELDOM == 0:
            self.length = self._find(min(LONGEST_SEASON, (len(targets) - 1) // 2))

    def save(self) -> dict[str, np.ndarray]:
        return {"products": self._products, "length": np.array(self.length)}

    def restore(self, fields) -> None:
        self._products = fields.take("products", self._products.shape)
        self.length = int(fields.take("length", (), dtype=np.int64, min=0, max=LONGEST_SEASON))

    def _find(self, longest: int) -> int:
        """The season to use: it has been observed twice, and is replaced only by one that is clearly better."""
        if longest < 2:
            return 0
        correlation = self._correlations()
        peaks, heights = _peaks(correlation, longest)
        best = int(heights.argmax())
        shorter = (peaks[2:best] > _NEARLY * peaks[best]) & (heights[2:best] > _STEEP * heights[best])
        found = 2 + int(shorter.argmax()) if shorter.any() else best
        present = self.length
        if 0 < present <= longest and found != present:
            height = correlation[present]
            rival = correlation[found] if found else 0.0
            # A lag next to the present season is the same season, blurred by noise.
            blurred = abs(found - present) <= max(1, present // 10)
            longer_or_weaker = found == 0 or found > present or blurred or height > _MUCH_BETTER * rival
            steep = heights[present] == 0.0 or heights[present] > _STEEP * heights[found]
            if height > _BETTER * rival and height > 0.5 * _LEAST_CORRELATION and longer_or_weaker and steep:
                return present
        return found

    def _correlations(self) -> np.ndarray:
        """Correlations of changes at each lag, averaged over targets."""
        size = self._products[:, :1]
        shares = np.divide(self._products, size, out=np.zeros_like(self._products), where=size > 0.0)
        return shares.mean(axis=0)


def _peaks(correlation: np.ndarray, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """For every peak its correlation, and its height above the lowest at a shorter lag; 0 at all other lags."""
    peaks, heights = np.zeros(LONGEST_SEASON + 1), np.zeros(LONGEST_SEASON + 1)
    now, before, after = correlation[2 : longest + 1], correlation[1:longest], correlation[3 : longest + 2]
    lowest = np.minimum.accumulate(before)
    peak = (now > before) & (now >= after) & (now > _LEAST_CORRELATION + _ROUNDING)
    peaks[2 : longest + 1] = np.where(peak, now, 0.0)
    heights[2 : longest + 1] = np.where(peak, now - lowest, 0.0)
    return peaks, heights
