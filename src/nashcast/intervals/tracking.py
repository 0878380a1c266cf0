"""Half-widths of intervals from past residuals, and what a new residual changes. All columns at once, in NumPy.

Axes as in `residuals`. For each column and half-life h there is a scale σ_h, a fading mean of absolute residuals, and
the last W residuals in units of the scale before them: the scores. A candidate half-width is σ_h times the quantile of
the scores at a level that the debt S = Σ (α - miss) corrects with one of the gains. Candidates are averaged with
weights from their fading pinball losses. One more scale may be given with every forecast, and is treated
as the others are.

A label h steps after its forecast is compared with the half-widths, candidates and scales issued with the forecast, not
with the present ones, which include the h - 1 overlapping residuals before it. A debt S counts as S/h there, since
misses of overlapping forecasts come in runs.
"""

from __future__ import annotations

from math import inf

import numpy as np

from nashcast.intervals.residuals import FADES, GAINS, HALF_LIVES, PRIOR, Issued, State, Widths, score_count

# Pinball losses fade by this factor per step; weights are exp(-SHARPNESS · loss / (mean residual · α)).
LOSS_FADE, SHARPNESS = 0.99, 5.0
# Debt at which the cubic term of the correction is 1, for too few misses and for too many. Beyond it, coverage has
# priority over sharpness. The second is larger because wide intervals cost more than narrow ones.
OWED, TOO_MANY = 3.0, 6.0
# Beyond the largest score, quantiles grow as level^(-TAIL); a Student t has TAIL = 1 / degrees of freedom.
TAIL = 0.3
# A half-width is at most this multiple of the largest residual (more in the first steps); scores are at most MAX_SCORE.
HEADROOM, MAX_SCORE = 1.2, 1000.0
# A residual counts as at most OUTLIER times the larger of the 16-step and 256-step scales. The first scales are means
# of few residuals and may be small by chance, so after n residuals the multiple is OUTLIER + EARLY / n³.
OUTLIER, EARLY = 100.0, 1e6
SHORT, LONG, GIVEN = 1, 3, len(HALF_LIVES)  # positions of the scales of 16 and 256 steps, and of a given one
# Half-life, in steps, at which the largest residual fades while it is an outlier itself. See `largest_fade`.
LARGEST_HALF_LIFE = 1024.0
# Larger residuals count as this one, so that no sum overflows.
MAX_RESIDUAL = 1e300
# The debt moves the logit of the level down by at most this: its exponential is finite.
MAX_CORRECTION = 500.0


class Tracker:
    """The state of all columns and the half-widths of the next intervals.

    misses: α for each coverage, descending.   memory: scores stored.   horizons: h of each column, 1 by default.
    given: whether a scale is given with every forecast.

    Operations on small arrays of one shape are twice as fast as those that broadcast. So the constants below have the
    shape of the candidates, and only what depends on the state is broadcast.
    """

    def __init__(
        self, columns: int, misses: np.ndarray, memory: int, horizons: np.ndarray | None = None, given: bool = False
    ):
        self._pace = None if horizons is None else (1.0 / horizons)[:, None, None]
        p, H, G, C = columns, len(HALF_LIVES) + given, len(GAINS), len(misses)
        self._misses, self._memory = misses, memory
        self._largest_fade = largest_fade(float(misses.min()))
        self._unit = -misses / SHARPNESS
        self._columns = np.arange(p)
        self._candidate_misses = np.tile(misses[:, None], (p, 1, H * G))
        self._candidate_odds = (1.0 - self._candidate_misses) / self._candidate_misses
        self._candidate_gains = np.tile(GAINS, (p, C, H))
        # Two zeros and the scores in ascending order, and where each candidate's array ends in the flat one.
        self._sorted = np.zeros((p, H, memory + 2))
        ends = (memory + 2) * np.arange(1, p * H + 1).reshape(p, 1, H, 1) - 1
        self._candidate_ends = np.broadcast_to(ends, (p, C, H, G)).reshape(p, C, H * G)
        self.set_state(State.initial(p, C, memory, int(given)))

    @property
    def state(self) -> State:
        return self._state

    def set_state(self, state: State) -> None:
        self._state = state
        self._next: Widths | None = None
        self._count()

    def set_scale(self, scale: np.ndarray) -> None:
        """The scale given with the next forecasts, (p,); the one of 256 steps where it is not a positive number."""
        scales = self._state.scales
        scales[:, GIVEN] = np.where((scale > 0.0) & (scale < MAX_RESIDUAL), scale, scales[:, LONG])
        self._next = None

    def widths(self) -> Widths:
        """Half-widths of the intervals round the next forecasts, computed once per state."""
        if self._next is None:
            with np.errstate(all="ignore"):
                self._next = self._compute_widths()
        return self._next

    def issued(self) -> Issued:
        """The quantities behind the intervals of the next forecasts."""
        now = self.widths()
        return Issued(self._state.scales.copy(), now.candidates, now.widths)

    def learn(self, residuals: np.ndarray, issued: Issued | None = None) -> None:
        """One residual per column, (p,). Columns whose residual is not finite are skipped.

        issued: the quantities issued with their forecasts; the present ones if left out.
        """
        s = self._state
        met = Issued(s.scales, *self.widths()) if issued is None else issued
        with np.errstate(all="ignore"):
            a = np.abs(residuals)
            known = a < inf
            counted = self._counted(a)
            # From here on the state changes: the stored half-widths are out of date.
            self._next = None
            scored = _rows(known if self._all_seen else known & (s.seen > 0))
            if scored is not None:
                # For forecasts issued without an interval, only the size is learnt.
                bounded = scored if issued is None else _rows(known & (s.seen > 0) & np.isfinite(met.widths[:, 0]))
                if bounded is not None:
                    self._settle_debts(bounded, a, met.widths)
                    self._add_losses(bounded, counted, met.candidates)
                scales = s.scales if issued is None else np.where(met.scales > 0.0, met.scales, s.scales)
                self._add_scores(scored, counted, scales)
            rows = scored if self._all_seen else _rows(known)
            if rows is not None:
                self._add_residuals(rows, counted)
            if not self._all_full:
                self._count()

    def _count(self) -> None:
        """Update the quantities that depend only on the number of residuals."""
        n, W = self._state.seen, self._memory
        counts = score_count(n, W)
        self._totals = (counts + 1.0)[:, None, None]
        self._all_seen, self._all_full = bool(n.all()), bool((counts == W).all())

    def _compute_widths(self) -> Widths:
        s = self._state
        p, C, _ = s.losses.shape
        candidates = self._quantiles()
        by_scale = candidates.reshape(p, C, -1, len(GAINS))
        by_scale *= s.scales[:, None, :, None]
        # The first residuals are a poor estimate of the largest.
        widest = s.largest * (10.0 / (s.seen if self._all_seen else np.maximum(s.seen, 1)) + HEADROOM)
        np.minimum(candidates, widest[:, None, None], out=candidates)
        unit = s.size[:, None] * self._unit
        if np.count_nonzero(unit) < unit.size:
            # While the forecasts are exact, all candidates weigh the same.
            unit = np.where(unit < 0.0, unit, -inf)
        excess = s.losses - np.minimum.reduce(s.losses, axis=2, keepdims=True)
        w = np.exp(excess / unit[..., None])
        widths = np.add.reduce(w * candidates, axis=2) / np.add.reduce(w, axis=2)
        np.maximum.accumulate(widths, axis=1, out=widths)
        if not self._all_seen:
            widths[s.seen == 0] = inf
        return Widths(candidates, widths)

    def _quantiles(self) -> np.ndarray:
        """The scores that a new one exceeds with probability α', (p, C, H G).

        logit α' = logit α + g S + (S / 3)³, with S / 6 where S < 0.
        """
        s = self._state
        debts = np.empty_like(self._candidate_gains)
        debts[...] = s.debts[..., None]
        if self._pace is not None:
            debts *= self._pace
        share = np.maximum(debts * (1.0 / OWED), debts * (1.0 / TOO_MANY))
        correction = share * share * share + self._candidate_gains * debts
        odds = np.exp(-np.maximum(correction, -MAX_CORRECTION)) * self._candidate_odds
        # This many of the scores and a new one are expected above the quantile.
        above = self._totals / (odds + 1.0)
        inside = np.maximum(above, 1.0)
        place = inside.astype(np.int64)
        ordered, index = self._sorted, self._candidate_ends - place
        ordered[..., 2:] = s.scores
        ordered[..., 2:].sort(axis=2)
        low, high = ordered.take(index), ordered.reshape(-1)[1:].take(index)
        return (high + (inside - place) * (low - high)) * np.minimum(above, 1.0) ** -TAIL

    def _counted(self, a: np.ndarray) -> np.ndarray:
        """The absolute residuals `a` (p,), or the limit for outliers where they exceed it."""
        s = self._state
        if not np.count_nonzero(a > s.largest):
            return a
        n = np.maximum(s.seen, 1).astype(np.float64)
        # A residual beyond the widest interval always widens it: the long-run coverage depends on that.
        limits = np.maximum(self._outlier_scales() * (OUTLIER + EARLY / (n * n * n)), s.largest * HEADROOM)
        return np.minimum(np.minimum(a, np.where(s.largest > 0.0, limits, inf)), MAX_RESIDUAL)

    def _outlier_scales(self) -> np.ndarray:
        return np.maximum(self._state.scales[:, SHORT], self._state.scales[:, LONG])

    def _settle_debts(self, rows, a: np.ndarray, widths: np.ndarray) -> None:
        a, widths = a[rows, None], widths[rows]
        due = self._misses - (a > widths)
        if np.count_nonzero(a) < len(a):
            # A correct interval of width 0 cannot be narrower: it adds no debt.
            due[(a == 0.0) & (widths == 0.0)] = 0.0
        self._state.debts[rows] += due

    def _add_losses(self, rows, a: np.ndarray, candidates: np.ndarray) -> None:
        s, a = self._state, a[rows]
        over = a[:, None, None] - candidates[rows]
        pinball = np.maximum(over, 0.0) - over * self._candidate_misses[rows]
        s.losses[rows] = s.losses[rows] * LOSS_FADE + pinball
        s.size[rows] = s.size[rows] * LOSS_FADE + a

    def _add_scores(self, rows, a: np.ndarray, scales: np.ndarray) -> None:
        """The residuals in units of the scales take the place of the oldest scores, or of empty ones."""
        s, a = self._state, a[rows]
        scores = np.minimum(a[:, None] / scales[rows], MAX_SCORE)
        if np.count_nonzero(a) < len(a):
            scores[a == 0.0] = 0.0
        place = (s.seen[rows] + (len(PRIOR) - 1)) % self._memory
        s.scores[self._columns[rows], :, place] = scores

    def _add_residuals(self, rows, a: np.ndarray) -> None:
        """Scales and the largest residual."""
        s, a = self._state, a[rows]
        largest = s.largest[rows]
        fading = (largest > self._outlier_scales()[rows] * OUTLIER) & (a > 0.0)
        if np.count_nonzero(fading):
            largest = np.where(fading, self._largest_fade * largest, largest)
        s.largest[rows] = np.maximum(largest, a)
        weights = s.weights[rows] * FADES + 1.0
        s.weights[rows] = weights
        fading = s.scales[rows, :GIVEN]
        s.scales[rows, :GIVEN] = fading + (a[:, None] - fading) / weights
        s.seen[rows] += 1


def largest_fade(miss: float) -> float:
    """The factor per step by which an outlying largest residual fades, for the smallest nominal rate of misses α.

    A residual beyond the widest interval multiplies the largest residual by HEADROOM or more. In the 2/α steps after it
    the largest residual fades by no more than that, so bounded residuals exceed the widest interval at most at the rate
    α/2 in the long run.
    """
    return max(0.5 ** (1.0 / LARGEST_HALF_LIFE), HEADROOM ** (-miss / 2.0))


def _rows(chosen: np.ndarray) -> slice | np.ndarray | None:
    """An index of the chosen columns: a slice, which does not copy, if all are; None if none is."""
    count = np.count_nonzero(chosen)
    if count == len(chosen):
        return slice(None)
    return np.flatnonzero(chosen) if count else None
