"""Feeds a federation from a table: rows in their order, gaps as missing labels, late labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.frames.layout import GridRows, TableLayout, one_row
from nashcast.frames.table import Table, is_table, read_table, write_table

# The largest gap in steps between two tables; more is treated as an error in the dates.
_LONGEST_GAP = 100_000


class LiveTable:
    """layout: the table's.   place: that of the last row learnt, None before the first.   inputs, objects: of that row.

    The row at a place contains the label of the federation's step `offset` + place.
    """

    def __init__(self, layout: TableLayout):
        self.layout = layout
        self.place: int | None = None
        self.inputs = np.empty(0)
        self.objects = self._no_objects()
        self.offset = 0

    def read(self, rows: Any) -> GridRows:
        """New rows on the grid: a table, or one row as a dict or a Series."""
        found = self.layout.read(_table(rows, self.layout))
        if self.layout.grid is None and self.place is not None:  # rows without times are consecutive
            found = found._replace(places=found.places + self.place + 1)
        return found

    def observe(
        self, federation: Any, rows: GridRows, delay: int = 0, each: Callable[[int], None] | None = None
    ) -> None:
        """Learn rows, one after another. each: called with the place of every new row once its input is known."""
        places, targets = rows.places, rows.targets
        if self.place is None:
            self.offset = federation.step - int(places[0])
            self.inputs = np.full(rows.inputs.shape[1], np.nan)
            self.place = int(places[0]) - 1
        if places[0] - self.place > _LONGEST_GAP:
            got = f"a row {places[0] - self.place} steps after the last one"
            raise InvalidInput("table", got, "Check its timestamp, or begin a new federation.")
        for i, place in enumerate(places.tolist()):
            if place <= self.place:  # already learnt: its label may be new
                self._late(federation, place, targets[i])
                continue
            while place > self.place + 1:
                self._next(federation, np.full_like(self.inputs, np.nan), self._no_objects(), None)
            label = targets[i] if np.isfinite(targets[i]).all() else None
            if delay and i >= delay:
                self._late(federation, place - delay, targets[i - delay])
            self._next(federation, rows.inputs[i], rows.objects[i], None if delay else label)
            if each is not None:
                each(place)

    def predict(self, federation: Any) -> Any:
        """The forecast from the last row."""
        return federation.predict_one(self.row, time=self.time)

    @property
    def row(self) -> Any:
        """The input of the last row, as a federation reads it."""
        return self.layout.row(self.inputs, self.objects)

    @property
    def time(self) -> float:
        """Time of the last row, in seconds since 1970."""
        grid = self.layout.grid
        if grid is None or self.place is None:
            return np.nan
        return float(grid.times(np.array([self.place])).astype(np.int64)[0]) / 1e6

    def forecast_table(self, forecast: np.ndarray, bounds: np.ndarray, coverages) -> Any:
        """The next steps with their times: one column per target, and bounds at each coverage.

        forecast: (horizon, y_dim).   bounds: (coverages, 2, horizon, y_dim).
        """
        if self.place is None:
            raise InvalidInput("rows", "none yet", "Pass rows, or call backtest first.")
        layout, H = self.layout, len(forecast)
        name, when = layout.index(self.place + 1 + np.arange(H))
        columns: dict[str, Any] = {name: when}
        for j, target in enumerate(layout.targets):
            columns[target] = forecast[:, j]
            for coverage, (low, high) in zip(coverages, bounds, strict=True):
                columns[f"{target} low {100 * coverage:g}"] = low[:, j]
                columns[f"{target} high {100 * coverage:g}"] = high[:, j]
        return write_table(columns, layout.library, name)

    def save(self) -> dict[str, Any]:
        """The state in JSON types. Pictures of the last row are not saved: after a load their agents sit it out."""
        inputs = [None if np.isnan(value) else value for value in self.inputs.tolist()]
        texts = [value if isinstance(value, str) else None for value in self.objects]
        where = {"place": self.place, "offset": self.offset}
        return {"layout": self.layout.save(), "inputs": inputs, "texts": texts, **where}

    @classmethod
    def restored(cls, saved: Any) -> LiveTable:
        if not isinstance(saved, Mapping) or set(saved) != {"layout", "place", "inputs", "texts", "offset"}:
            raise InvalidInput("saved table", check.describe(saved), "Use an earlier copy.")
        made = cls(TableLayout.restored(saved["layout"]))
        made.place, made.offset = saved["place"], saved["offset"]
        made.inputs = np.array([np.nan if value is None else float(value) for value in saved["inputs"]])
        made.objects[:] = saved["texts"]
        return made

    def _no_objects(self) -> np.ndarray:
        return np.full(len(self.layout.objects), None, dtype=object)

    def _next(self, federation: Any, inputs: np.ndarray, objects: np.ndarray, label: np.ndarray | None) -> None:
        assert self.place is not None
        layout = self.layout
        named = None if label is None else _label(layout, label)
        federation.learn_one(self.row, named, time=self.time)
        if layout.calendar and np.isnan(inputs).all() and layout.grid is not None:  # a gap: the calendar is known
            calendar = layout._calendar(np.array([self.place + 1]))[0]
            inputs = np.concatenate([inputs[: len(inputs) - len(calendar)], calendar])
        self.place, self.inputs, self.objects = self.place + 1, inputs, objects

    def _late(self, federation: Any, place: int, target: np.ndarray) -> None:
        step = self.offset + place
        if np.isfinite(target).all() and 0 <= step < federation.step:
            federation.learn_late(step, _label(self.layout, target))


def _label(layout: TableLayout, target: np.ndarray) -> Any:
    return float(target[0]) if len(layout.targets) == 1 else dict(zip(layout.targets, target.tolist(), strict=True))


def _table(rows: Any, layout: TableLayout) -> Table:
    if isinstance(rows, Mapping) and not is_table(rows):
        return read_table(one_row(rows))
    if hasattr(rows, "to_dict") and hasattr(rows, "index") and not hasattr(rows, "columns"):
        return _of_series(rows, layout)
    return read_table(rows)


def _of_series(row: Any, layout: TableLayout) -> Table:
    """A row of a pandas table."""
    table = read_table({name: [value] for name, value in row.to_dict().items()})
    return _with_index(table, row.name) if layout.in_index and row.name is not None else table


def _with_index(table: Table, moment: Any) -> Table:
    """A row whose time is the name of its Series."""
    from nashcast.frames.times import instants

    exact, zone = instants("time of the row", [moment], None)
    zones = {} if zone is None else {None: "UTC"}
    return table._replace(row_times=exact, zones=zones)
