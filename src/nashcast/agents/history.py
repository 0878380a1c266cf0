"""The stored rows of a stream: targets, inputs, their scales and the season.

Row s is the target y_s and the input that came with it, from which the target of row s + 1 is forecast. The arrays
are filled from the front; when they are full, the last KEPT rows move to the front. The first PAD rows repeat the
first target, so that every lag exists from the first step on.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from nashcast.agents.season import LONGEST_SEASON, Season
from nashcast.encoders.base import Context, Noise
from nashcast.encoders.families.rows import Rows, Scales, Span
from nashcast.errors import InvalidInput

PAD = LONGEST_SEASON + 8
KEPT = 2048
_CAPACITY = PAD + 2 * KEPT
# Scales are revised at every one of the first steps, then at 1.5 times and at powers of two …
_EVERY_STEP = 8
# … and later than this only if one has moved by this factor.
_SETTLED, _SHIFT, _RATIO = 64, 0.5, 1.5
_NO_OBJECTS: Mapping[str, Any] = MappingProxyType({})


class History:
    """x_dim: numbers in an input.   start: the first known target.   season: its length, if it is known.

    first_step: the step of the first row.
    """

    def __init__(self, x_dim: int, start: np.ndarray, season: int | None = None, first_step: int = 0):
        y_dim = len(start)
        self.targets = np.zeros((_CAPACITY, y_dim))
        try:
            self.inputs = np.zeros((_CAPACITY, x_dim))
        except MemoryError:
            remedy = "They are remembered for thousands of steps: pass a picture or a sound as one column (column=…)."
            raise InvalidInput("x", f"{x_dim} numbers", remedy) from None
        self.times = np.full(_CAPACITY, np.nan)
        self.labelled = np.zeros(_CAPACITY, dtype=bool)  # whether a row's target is known, or stood in for
        self.targets[: PAD + 1] = start
        self.labelled[PAD] = True
        # Read-only views for the encoders.
        self._views = [array.view() for array in (self.inputs, self.targets, self.times)]
        for view in self._views:
            view.flags.writeable = False
        self.rows, self.offset, self.step, self._begun_at = PAD + 1, first_step, first_step, first_step
        self.scales, self.input_scales = Scales.unknown(y_dim), Scales.unknown(x_dim)
        self.season = Season(y_dim, season)
        self._next_revision = 0
        self.objects = _NO_OBJECTS

    @property
    def now(self) -> int:
        """The present row."""
        return self.rows - 1

    @property
    def length(self) -> int:
        """How many rows have ended since the stream began."""
        return self.step - self._begun_at

    def beginning(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """All rows so far, as long as all are stored: targets, whether each is known, inputs, times."""
        rows = slice(self.known_from, self.rows)
        targets, labelled, inputs, times = self.targets, self.labelled, self.inputs, self.times
        return targets[rows].copy(), labelled[rows].copy(), inputs[rows].copy(), times[rows].copy()

    @property
    def first(self) -> int:
        """The first row that memories are learnt from."""
        return max(PAD, self.now - KEPT)

    @property
    def known_from(self) -> int:
        """The first row after the padding."""
        return max(0, PAD + self._begun_at - self.offset)

    def row_of(self, step: int) -> int | None:
        """The row in which a step's forecast was made, if it is still stored."""
        row = PAD + step - self.offset
        return row if self.known_from <= row < self.rows else None

    def put_input(self, x: np.ndarray, time: float = np.nan, objects: Mapping[str, Any] = _NO_OBJECTS) -> None:
        """Set the present row's input. Missing numbers keep their last value. objects: its texts and pictures."""
        self.objects = objects
        now, known = self.now, np.isfinite(x)
        if np.count_nonzero(known) < known.size:
            x = np.where(known, x, self.inputs[now - 1])
        if self.step == self._begun_at:  # the rows before the first repeat it
            self.inputs[:now] = x
        self.inputs[now], self.times[now] = x, time

    def append(self, target: np.ndarray, known: bool) -> None:
        """The present row ends; the next begins with `target`, a label if `known`, else a value that stands in."""
        if self.rows == _CAPACITY:
            last = KEPT + PAD
            for rows in (self.targets, self.inputs, self.times, self.labelled):
                rows[:last] = rows[_CAPACITY - last :].copy()
            self.rows, self.offset = last, self.offset + _CAPACITY - last
        self.targets[self.rows], self.labelled[self.rows] = target, known
        self.rows, self.step = self.rows + 1, self.step + 1

    def learn_season(self, row: int) -> None:
        """Update the season with the label of a row."""
        self.season.learn(self.targets[self.known_from : row + 1], self.step - self._begun_at)

    def set_target(self, row: int, target: np.ndarray) -> None:
        """Replace the value that stood in for a late label."""
        self.targets[row], self.labelled[row] = target, True

    def revise_scales(self) -> bool:
        """Measure the scales again when due. Returns whether they changed, so that standardised features change too."""
        step = self.step - self._begun_at
        if _EVERY_STEP < step < self._next_revision:
            return False
        if step >= _EVERY_STEP:
            self._next_revision = 2 * step if step >= 2 * _EVERY_STEP else step + _EVERY_STEP // 2
        scales = Scales.of(self.targets[self.first : self.rows])
        # The present row's input is not known yet.
        input_scales = self.input_scales
        if self.now > self.first:
            input_scales = Scales.of(self.inputs[self.first : self.now])
        moved = _moved(scales, self.scales) or _moved(input_scales, self.input_scales)
        if step > _SETTLED and not moved:
            return False
        self.scales, self.input_scales = scales, input_scales
        return True

    def revise_soon(self) -> None:
        """After a change of level: measure scales again at the next call of `revise_scales`, at any step."""
        self._next_revision = 0

    @property
    def standard(self) -> tuple[Scales, Scales]:
        """The scales by which targets and inputs are standardised at present."""
        return self.scales, self.input_scales

    def rows_between(self, first: int, last: int, standard=None, season: int | None = None) -> Rows:
        """Rows first … last - 1 in standardised form: by the present scales and season, or by those given."""
        first_step = self.offset + first - PAD
        season = self.season.length if season is None else season
        span = Span(first, last, self.known_from, first_step, season)
        scales, input_scales = standard or self.standard
        return Rows(self.targets, self.inputs, scales, input_scales, span)

    def changes_after(self, first: int, last: int, horizon: int) -> tuple[np.ndarray, np.ndarray]:
        """Changes that followed rows first … last - 1, (rows, y_dim, horizon), in usual changes; which have a label."""
        scale, targets, labelled = self.scales.inverse_change, self.targets, self.labelled
        changes = np.zeros((last - first, len(scale), horizon))
        for h in range(1, horizon + 1):
            ends = np.minimum(np.arange(first + h, last + h), self.now)
            known = labelled[ends] & (np.arange(first + h, last + h) <= self.now)
            changes[:, :, h - 1] = np.where(known[:, None], (targets[ends] - targets[first:last]) * scale, 0.0)
            if h > 1:  # an unknown target is assumed to stay at its value for the shorter horizon
                changes[~known, :, h - 1] = changes[~known, :, h - 2]
        return changes, labelled[first + 1 : last + 1]

    def context(self, rows: Rows, x: np.ndarray, columns: np.ndarray | None, wants, noise: Noise) -> Context:
        """The present step as an encoder sees it. x: the raw input.   columns: the inputs it may see.

        wants: how many earlier inputs, and how many targets.
        """
        now, (past_inputs, past_targets) = self.now, wants
        first, (inputs, targets, times) = self.known_from, self._views
        inputs = inputs[max(first, now - past_inputs) : now]
        targets = targets[max(first, self.rows - max(past_targets, 1)) : self.rows]
        times = times[max(first, now - past_inputs) : self.rows]
        input_scales = self.input_scales
        if columns is not None:
            x, inputs, input_scales = x[columns], inputs[:, columns], input_scales.take(columns)
            inputs.flags.writeable = False
        if x.flags.writeable:
            x = x.view()
            x.flags.writeable = False
        return Context(x, inputs, targets, times, self.scales, input_scales, self.season.length, rows, noise)

    def save(self) -> dict[str, np.ndarray]:
        season = {f"season.{name}": value for name, value in self.season.save().items()}
        return {
            "targets": self.targets[: self.rows],
            "inputs": self.inputs[: self.rows],
            "times": self.times[: self.rows],
            "labelled": self.labelled[: self.rows],
            "counts": np.array([self.offset, self.step, self._begun_at, self._next_revision]),
            "scales": np.stack(self.scales),
            "input_scales": np.stack(self.input_scales),
            **season,
        }

    def restore(self, fields) -> None:
        """Continue as saved. Raises InvalidInput and may leave this object unusable: restore into a new one."""
        rows = fields.length("targets", min=PAD + 1, max=_CAPACITY)
        for array, name in ((self.targets, "targets"), (self.inputs, "inputs")):
            array[:rows] = fields.take(name, (rows, array.shape[1]), max=1e200, min=-1e200)
        self.times[:rows] = fields.take("times", (rows,), finite=False)
        self.labelled[:rows] = fields.take("labelled", (rows,), dtype=bool)
        counts = fields.take("counts", (4,), dtype=np.int64, min=0)
        self.offset, self.step, self._begun_at, self._next_revision = counts.tolist()
        self.rows = rows
        fields.require("counts", PAD + 1 + self.step - self.offset == rows, "steps that do not fit the rows")
        self.scales = Scales(*fields.take("scales", (3, self.targets.shape[1])))
        self.input_scales = Scales(*fields.take("input_scales", (3, self.inputs.shape[1])))
        self.season.restore(fields.part("season."))


def _moved(new: Scales, old: Scales) -> bool:
    near = np.abs(new.mean - old.mean) <= _SHIFT * old.spread
    for now, before in ((new.spread, old.spread), (new.change, old.change)):
        near &= (now <= _RATIO * before) & (_RATIO * now >= before)
    return not near.all()
