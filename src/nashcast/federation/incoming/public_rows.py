"""State that follows from inputs and labels alone: the rows of the stream, and which labels are learnt, and when.

The server of a federation maintains it. The owner of a remote agent does so too, from the same published numbers, and
obtains the same lessons. Lessons come one by one: each must be learnt before the next is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from nashcast.agents.history import History
from nashcast.agents.joint.joint_blocks import REMEMBERED
from nashcast.agents.joint.public_features import public_features
from nashcast.encoders.families.rows import Rows
from nashcast.federation.incoming.screen import Doubt, Screen, Verdict
from nashcast.fields import restore_parts, saved_parts

# Rows after a suspect label that are not learnt from: inputs may repeat it as lags.
_COOLING_ROWS = 4


class RowEnd(NamedTuple):
    """The present row ends.   label: the change to its next target in usual changes, (y_dim,), if it may be learnt.

    taught: whether the row may be learnt from.
    """

    step: int
    label: np.ndarray | None
    taught: bool


class Lesson(NamedTuple):
    """The label of one target came: all forecasts of it are scored, and learnt from."""

    step: int  # step of the row before the target
    target: np.ndarray
    steps: np.ndarray  # at which the forecasts of each horizon were made, (horizon,)
    known: np.ndarray  # whether there was such a forecast, (horizon,)
    changes: np.ndarray  # changes of the target since then, clipped, (y_dim, horizon)
    taught: bool  # whether agents learn from it
    in_time: bool  # whether it is the label of the present row


class PublicRows:
    """x_dim: numbers in an input.   start: the first known target.   season: its length, if known.

    first_step: rows before the first known target.
    """

    def __init__(self, x_dim: int, start: np.ndarray, season: int | None, horizon: int, first_step: int):
        p = len(start)
        self.history, self.screen = History(x_dim, start, season, first_step), Screen(p)
        self._cooling, self._stale, self._season = 0, True, self.history.season.length
        self._back = np.arange(horizon)  # how many steps before the last one forecasts of each horizon were made
        # Steps whose labels may still come, and the target at that time.
        self._steps, self._anchors = np.full(REMEMBERED, -1), np.zeros((REMEMBERED, p))

    @property
    def doubt(self) -> Doubt | None:
        return self.screen.doubt

    def refresh(self) -> Rows | None:
        """Before a forecast: update scales and season. If they changed, returns the rows as they were standardised."""
        if not self._stale:
            return None
        self._stale = False
        history = self.history
        first, last = history.first, history.now
        season, self._season = self._season, history.season.length
        before = history.standard
        if not history.revise_scales() and season == self._season:
            return None
        return history.rows_between(first, last, before, season) if last > first else None

    def relearn(self, server: Any, before: Rows) -> None:
        """Fit the public player of the joint game again, from the rows that `refresh` gave."""
        now = self.history.rows_between(before.span.first, before.span.last)
        public = public_features(now), public_features(before)
        server.relearn(public, self.history.step, now.unit_before(before))

    def learn(self, target: np.ndarray | None, stand_in: np.ndarray) -> Iterator[RowEnd | Lesson]:
        """Learn the label of the present row, or None if it is not known (yet): then `stand_in` takes its place."""
        settled, spike = self._settled_doubt(target)
        if settled is not None:
            yield from self._lesson(settled.step, settled.value, taught=True)
        history, step = self.history, self.history.step
        now = history.targets[history.now].copy()
        verdict = None if target is None else self.screen.judge(target, now)
        accepted, suspect = verdict is Verdict.ACCEPTED, verdict is Verdict.SUSPECT
        taught = not suspect and not spike and self._cooling == 0
        place = step % REMEMBERED
        self._steps[place], self._anchors[place] = step, now
        label = None
        if target is not None and accepted and taught:
            label = self.screen.clipped((target - now)[:, None])[:, 0] * history.scales.inverse_change
        yield RowEnd(step, label, taught)
        if verdict is Verdict.DOUBTFUL:
            assert target is not None
            self.screen.doubt = Doubt(step, target.copy(), now)
        history.append(now if suspect else stand_in if target is None else target, accepted)
        self._cooling = _COOLING_ROWS if suspect or spike else max(0, self._cooling - 1)
        self._stale = True
        # After a spike the present row was forecast from it: its experts are not scored on that row.
        if accepted and not spike:
            assert target is not None
            yield from self._lesson(step, target, taught, in_time=True)

    def learn_late(self, step: int, target: np.ndarray) -> Iterator[Lesson] | None:
        """Learn the label of an earlier step. None if it is too long ago, known already, or suspect."""
        history = self.history
        row = history.row_of(step)
        if row is None or row + 1 > history.now or history.labelled[row + 1]:
            return None
        if not self.screen.accept_late(target, history.targets[row]):
            return None
        history.set_target(row + 1, target)
        self._stale = True
        return self._lesson(step, target, taught=True)

    def _settled_doubt(self, target: np.ndarray | None) -> tuple[Doubt | None, bool]:
        """Judge a doubtful label by the next one: the doubt, if confirmed, to be learnt now; whether it was a spike."""
        doubt = self.screen.doubt
        if doubt is None or target is None:
            return None, False
        self.screen.doubt = None
        row = self.history.row_of(doubt.step)
        if row is None or self.history.labelled[row + 1]:
            return None, False
        if self.screen.is_spike(doubt, target):
            self.history.targets[row + 1] = doubt.before
            return None, True
        self.history.set_target(row + 1, doubt.value)
        return doubt, False

    def _lesson(self, step: int, target: np.ndarray, taught: bool, in_time: bool = False) -> Iterator[Lesson]:
        steps = step - self._back
        known = (steps >= 0) & (self._steps[steps % REMEMBERED] == steps)
        if np.count_nonzero(known) < len(known):
            steps = np.where(known, steps, step)
        places = steps % REMEMBERED
        changes = self.screen.clipped(target[:, None] - self._anchors[places].T)
        yield Lesson(step, target, steps, known, changes, taught, in_time)
        row = self.history.row_of(step)
        if row is not None:
            self.history.learn_season(row + 1)

    def save(self) -> dict[str, np.ndarray]:
        flags = np.array([self._cooling, self._stale, self._season])
        return {"flags": flags, "steps": self._steps, "anchors": self._anchors} | saved_parts(self._parts())

    def restore(self, fields) -> None:
        cooling, stale, season = fields.take("flags", (3,), dtype=np.int64, min=0).tolist()
        self._cooling, self._stale, self._season = cooling, bool(stale), season
        self._steps = fields.take("steps", self._steps.shape, dtype=np.int64, min=-1)
        self._anchors = fields.take("anchors", self._anchors.shape)
        restore_parts(self._parts(), fields)

    def _parts(self) -> list[tuple[str, Any]]:
        return [("history.", self.history), ("screen.", self.screen)]
