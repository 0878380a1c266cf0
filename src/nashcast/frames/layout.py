"""The roles of the columns of a user's table, and its rows on a regular grid, for a federation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.frames.calendar_inputs import calendar_inputs, checked_holidays, checked_names, column_names
from nashcast.frames.grid import Grid
from nashcast.frames.table import DICT, Table
from nashcast.frames.times import INSTANT, instants, native_datetimes, seconds, step_length, zone_name, zone_named
from nashcast.suggest import near

# The largest number of places per row of the table; more means that `every` does not fit.
_SPARSEST = 50
_LISTED = 12


class GridRows(NamedTuple):
    """A table on its grid, from its first place to its last, none left out."""

    places: np.ndarray  # (rows,)
    inputs: np.ndarray  # (rows, x_dim), NaN where missing
    targets: np.ndarray  # (rows, y_dim), NaN where missing
    times: np.ndarray  # seconds since 1970, NaN without timestamps, (rows,)
    objects: np.ndarray  # texts and pictures that agents read, (rows, columns), None where missing


class TableLayout:
    """target, inputs, date: names of columns; without a date the rows are one step apart.

    calendar: inputs made from the time of the next target, some of `calendar_inputs.NAMES`.   holidays: dates.
    timezone: zone of timestamps that have none.   every: length of a step; the commonest if left out.
    objects: columns of texts and pictures that agents read directly; "" if the input is a single one.

    All other texts are categories: one input of 0 and 1 for each value in the first table. Later values that are not
    among them count as missing.
    """

    def __init__(
        self,
        target: str | Sequence[str],
        inputs: str | Sequence[str] | None = None,
        date: str | None = None,
        *,
        calendar: Sequence[str] = (),
        holidays: Iterable[Any] = (),
        timezone: str | None = None,
        every: Any = None,
        objects: Sequence[str] = (),
    ):
        self.targets = _names("target", target)
        named = [] if inputs is None else _names("inputs", inputs, least=0)
        self.whole = tuple(objects) == ("",)
        if self.whole and (len(named) != 1 or calendar):
            got = f"{check.describe(inputs)}{' and a calendar' if calendar else ''}"
            remedy = "An agent reads one text or picture: name its column alone, or make its encoder with column='…'."
            raise InvalidInput("inputs", got, remedy)
        self.objects = named if self.whole else sorted(objects)
        for name in self.objects:
            if name not in named:
                raise InvalidInput("inputs", f"no column {name!r}", f"An agent reads it: pass inputs=[…, {name!r}].")
        self.inputs = [name for name in named if name not in self.objects]
        if date is not None and not isinstance(date, str):
            raise InvalidInput("date", check.describe(date), "Pass the name of a column.")
        self.date = date
        self.calendar, self.holidays = checked_names(calendar), checked_holidays(holidays)
        self.timezone = zone_name(zone_named(timezone))
        self.every = step_length(every)
        self.categories: dict[str, list[str]] = {}
        self.grid: Grid | None = None
        self.library, self.in_index, self.dated = DICT, False, False
        self._fixed = False

    @property
    def input_names(self) -> list[str]:
        """Names of the numbers in an input, in order."""
        found: list[str] = []
        for name in self.inputs:
            found += [f"{name}={value}" for value in self.categories[name]] if name in self.categories else [name]
        return found + column_names(self.calendar)

    def read(self, table: Table) -> GridRows:
        """The table on the grid. The first table fixes the grid, the categories and the library of results."""
        dates = [self.date] if self.date and table.row_times is None else []
        for name in (*self.targets, *self.inputs, *self.objects, *dates):
            if name not in table.columns:
                remedy = f"{near(name, table.columns)}The columns are {_listed(list(table.columns))}."
                raise InvalidInput("table", f"no column {name!r}", remedy)
        if not table.rows:
            raise InvalidInput("table", "no rows", "Pass at least one row.")
        exact = self._instants(table)
        if not self._fixed:
            self._fix(table, exact)
        if self.dated != (exact is not None):
            self._refuse_change()
        places = np.arange(table.rows) if exact is None else self._places(exact)
        valid = np.flatnonzero(places >= 0) if exact is None else np.flatnonzero(~np.isnat(exact))
        if not len(valid):
            raise InvalidInput("date", "no timestamp that exists", "Pass the times of the rows.")
        # The last row of a place is used.
        order = valid[np.argsort(places[valid], kind="stable")]
        last = np.append(places[order][1:] != places[order][:-1], True)
        order = order[last]
        first, count = int(places[order[0]]), int(places[order[-1]] - places[order[0]]) + 1
        if count > _SPARSEST * table.rows + 1000:
            got = f"{table.rows} rows over {count} steps of {self._step_text()}"
            raise InvalidInput("every", got, "Pass the length of a step, for example every='1d'.")
        at = places[order] - first
        inputs, targets = np.full((count, len(self.input_names)), np.nan), np.full((count, len(self.targets)), np.nan)
        measured = self._input_columns(table)
        inputs[at, : measured.shape[1]] = measured[order]
        targets[at] = np.column_stack([_numbers(name, table.columns[name]) for name in self.targets])[order]
        objects = np.full((count, len(self.objects)), None, dtype=object)
        for j, name in enumerate(self.objects):
            objects[at, j] = _objects(table.columns[name])[order]
        every_place = first + np.arange(count)
        if self.calendar:
            inputs[:, measured.shape[1] :] = self._calendar(every_place)
        times = np.full(count, np.nan) if self.grid is None else seconds(self.grid.times(every_place))
        return GridRows(every_place, inputs, targets, times, objects)

    def row(self, inputs: np.ndarray, objects: np.ndarray) -> Any:
        """One input as a federation reads it, by name; or the single text or picture."""
        if self.whole:
            return objects[0]
        numbers = dict(zip(self.input_names, inputs.tolist(), strict=True))
        return {**numbers, **dict(zip(self.objects, objects, strict=True))} or None

    def index(self, places: np.ndarray) -> tuple[str, Sequence[Any] | np.ndarray]:
        """Name and values of the time column: timestamps in their zone, or row numbers."""
        if self.grid is None:
            return self.date or "row", np.asarray(places)
        zone = zone_named(self.grid.zone)
        exact = self.grid.times(places)
        return self.date or "time", exact if zone is None else native_datetimes(exact, zone)

    def save(self) -> dict[str, Any]:
        """The layout in JSON types."""
        names = ("targets", "date", "calendar", "holidays", "timezone", "every", "categories")
        found = {name: getattr(self, name) for name in names}
        found |= {"inputs": self.inputs + self.objects, "objects": [""] if self.whole else self.objects}
        grid = None if self.grid is None else self.grid.save()
        return found | {"grid": grid, "library": self.library, "in_index": self.in_index, "dated": self.dated}

    @classmethod
    def restored(cls, saved: Any) -> TableLayout:
        """Restored from what `save` returned. Raises InvalidInput for anything else."""
        try:
            made = cls(
                saved["targets"], saved["inputs"], saved["date"], calendar=tuple(saved["calendar"]),
                holidays=saved["holidays"], timezone=saved["timezone"], objects=saved["objects"],
            )  # fmt: skip
            made.every, made.categories = saved["every"], {k: list(v) for k, v in saved["categories"].items()}
            made.grid = None if saved["grid"] is None else Grid(**saved["grid"])
            made.library, made.in_index = str(saved["library"]), bool(saved["in_index"])
            made.dated, made._fixed = bool(saved["dated"]), True
        except (KeyError, TypeError, AttributeError):
            raise InvalidInput("saved table", check.describe(saved), "Use an earlier copy.") from None
        return made

    def _fix(self, table: Table, exact: np.ndarray | None) -> None:
        for name in self.inputs:
            column = table.columns[name]
            if column.dtype == object and not _all_numbers(column):
                self.categories[name] = sorted({str(value) for value in column if not _missing(value)})
        if exact is not None:
            self.grid = Grid.of(exact, self.every, self.timezone)
            self.dated = True
        elif self.calendar:
            raise InvalidInput("calendar", "a table without timestamps", "Name their column: date='…'.")
        self.library = table.library
        self._fixed = True

    def _instants(self, table: Table) -> np.ndarray | None:
        """Instants of the rows in UTC; None if the table has no times."""
        name = self.date
        if name is None and table.row_times is None:
            dated = [each for each, column in table.columns.items() if column.dtype.kind == "M"]
            if len(dated) > 1:
                remedy = f"Pass date= one of {_listed(dated)}."
                raise InvalidInput("date", f"{len(dated)} columns of timestamps", remedy)
            if not dated:
                return None
            name = self.date = dated[0]
        if name is None or name not in table.columns:
            values, zone = table.row_times, table.zones.get(None)
            self.in_index, self.date = True, table.index_name or self.date
        else:
            values, zone = table.columns[name], table.zones.get(name)
        assert values is not None
        if zone is not None:
            self.timezone = self.timezone or zone
            return values.astype(INSTANT)
        exact, found = instants(f"date column {name!r}", values, zone_named(self.timezone))
        if found is not None and self.timezone is None:
            self.timezone = zone_name(found)
        return exact

    def _places(self, exact: np.ndarray) -> np.ndarray:
        assert self.grid is not None
        known = np.where(np.isnat(exact), exact[~np.isnat(exact)][:1] if (~np.isnat(exact)).any() else exact, exact)
        return self.grid.places(known)

    def _refuse_change(self) -> None:
        had, has = ("timestamps", "none") if self.dated else ("no timestamps", "some")
        raise InvalidInput("table", f"rows with {has}", f"The first table had {had}: pass the same columns.")

    def _input_columns(self, table: Table) -> np.ndarray:
        parts = [np.empty((table.rows, 0))]
        for name in self.inputs:
            column = table.columns[name]
            if name in self.categories:
                texts = np.array(["" if _missing(value) else str(value) for value in column], dtype=object)
                known = self.categories[name]
                hot = (texts[:, None] == np.array(known, dtype=object)).astype(np.float64)
                hot[~hot.any(axis=1)] = np.nan
                parts.append(hot)
            else:
                parts.append(_numbers(name, column)[:, None])
        return np.hstack(parts)

    def _calendar(self, places: np.ndarray) -> np.ndarray:
        assert self.grid is not None
        return calendar_inputs(self.grid.clock(places + 1), self.calendar, self.holidays)

    def _step_text(self) -> str:
        every = None if self.grid is None else self.grid.every
        return every if isinstance(every, str) else f"{(every or 0) / 1e6:g} s"


def one_row(row: Mapping[str, Any]) -> dict[str, list]:
    """A row as a table of one row."""
    return {name: [value] for name, value in row.items()}


def _names(argument: str, value: Any, least: int = 1) -> list[str]:
    names: list[Any] = [value] if isinstance(value, str) else list(value) if isinstance(value, Sequence) else [None]
    if len(names) < least or not all(isinstance(name, str) for name in names):
        raise InvalidInput(argument, check.describe(value), "Pass the name of a column, or a list of names.")
    if len(set(names)) < len(names):
        raise InvalidInput(argument, check.describe(value), "Name every column once.")
    return names


def _missing(value: Any) -> bool:
    return value is None or value != value or type(value).__name__ in ("NAType", "NaTType")


def _objects(column: np.ndarray) -> np.ndarray:
    """Texts and pictures, None where missing."""
    found = np.full(len(column), None, dtype=object)
    for i, value in enumerate(column):
        if not isinstance(value, float | None) and type(value).__name__ != "NAType":
            found[i] = value
    return found


def _all_numbers(column: np.ndarray) -> bool:
    return all(_missing(value) or isinstance(value, int | float | np.number) for value in column)


def _numbers(name: str, column: np.ndarray) -> np.ndarray:
    """A column of numbers, NaN where missing."""
    if column.dtype.kind == "f":
        values = column
    elif column.dtype == object and _all_numbers(column):
        values = np.array([np.nan if _missing(value) else float(value) for value in column])
    else:
        odd = next((value for value in column if not isinstance(value, int | float) and not _missing(value)), None)
        raise InvalidInput(f"column {name!r}", check.describe(odd), "Pass a column of numbers.")
    if np.isinf(values).any():
        raise InvalidInput(f"column {name!r}", "a number that is infinite", "Pass NaN where a number is missing.")
    return values


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(repr, names[:_LISTED])) + more
