"""Inputs and targets as users pass them: checked, copied and put in order before the mathematics reads them.

A row is an array, a list, one number, a dict or a pandas Series. A row with names is read by name, in any order. The
first row that is accepted fixes the number of columns and their names; a refused row changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.suggest import near

Input = np.ndarray | Sequence[float] | Mapping[str, float] | float
Target = np.ndarray | Sequence[float] | Mapping[str, float] | float
Forecast = np.ndarray | float | dict[str, float] | dict[str, np.ndarray]

# Squares and products of accepted values stay below the largest float64, 1.8e308.
LARGEST = 1e150
_EXACT = 2**53  # integers below are floats without rounding
_LISTED = 8  # names that a message lists


class Layout(NamedTuple):
    """The columns of the inputs, or of the targets, as far as they are known."""

    kind: str  # "input" or "target", for messages
    dim: int | None  # number of columns; None until the first row
    names: tuple[str, ...] | None = None  # sorted; None while no row had names
    unnamed: bool = False  # whether a row without names has been read

    @property
    def size(self) -> str:
        """The name of the number of columns."""
        return "x_dim" if self.kind == "input" else "y_dim"

    def column(self, label: str, index: int) -> str:
        """One column's name in a message."""
        if self.names is not None:
            return f"{label}[{self.names[index]!r}]"
        return label if self.dim == 1 else f"{label}[{index}]"


class Columns:
    """Reads rows of inputs and targets, and shows forecasts in the form of the targets.

    x_dim: numbers in an input; None for as many as the first input has.   y_dim: numbers in a target.

    >>> columns = Columns(x_dim=None, y_dim=1)
    >>> columns.read_input({"wind": 3, "sun": 0.5})
    array([0.5, 3. ])
    >>> columns.read_input({"wind": 4})
    array([nan,  4.])
    >>> columns.x_names
    ['sun', 'wind']
    """

    def __init__(self, x_dim: int | None, y_dim: int):
        self._declared = None if x_dim is None else check.integer("x_dim", x_dim, min=0)
        self._x = Layout("input", self._declared)
        self._y = Layout("target", check.integer("y_dim", y_dim, min=1))

    @property
    def x_dim(self) -> int | None:
        """How many numbers an input has; None if that is not known yet."""
        return self._x.dim

    @property
    def y_dim(self) -> int:
        """How many numbers a target has."""
        assert self._y.dim is not None
        return self._y.dim

    @property
    def x_names(self) -> list[str] | None:
        """Names of the inputs in the order of the array; None if they have none."""
        return None if self._x.names is None else list(self._x.names)

    @property
    def y_names(self) -> list[str] | None:
        """Names of the targets in the order of the array; None if they have none."""
        return None if self._y.names is None else list(self._y.names)

    def read_input(self, x: Any) -> np.ndarray:
        """One input as a read-only copy of shape (x_dim,); NaN where a value is missing."""
        values, self._x = _input(x, self._x)
        return values

    def read_target(self, name: str, y: Any, missing_allowed: bool = False) -> np.ndarray | None:
        """One target as a read-only copy of shape (y_dim,); None if it is missing, in full or in part.

        name: the argument's name in messages.   missing_allowed: whether None and NaN are accepted.
        """
        values, self._y = _target(name, y, self._y, missing_allowed)
        return values

    def read_row(self, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """An input and its target, which may be missing. If either is refused, neither changes anything."""
        inputs, x_layout = _input(x, self._x)
        target, self._y = _target("y", y, self._y, missing_allowed=True)
        self._x = x_layout
        return inputs, target

    def show(self, forecast: np.ndarray) -> Forecast:
        """A forecast (y_dim,), or (horizon, y_dim), in the form of the targets; arrays are copies."""
        if forecast.ndim == 1:
            if self._y.names is not None:
                return dict(zip(self._y.names, map(float, forecast), strict=True))
            return float(forecast[0]) if self.y_dim == 1 else forecast.copy()
        if self._y.names is not None:
            return {name: column.copy() for name, column in zip(self._y.names, forecast.T, strict=True)}
        return forecast[:, 0].copy() if self.y_dim == 1 else forecast.copy()

    def save(self) -> dict[str, Any]:
        """Numbers and names of the columns, in JSON types."""
        return {"inputs": _saved(self._x), "targets": _saved(self._y)}

    def restore(self, saved: Any) -> None:
        """Restore what `save` returned. Refused in full if it does not fit x_dim and y_dim."""
        if not isinstance(saved, dict) or set(saved) != {"inputs", "targets"}:
            raise InvalidInput("saved columns", check.describe(saved), "Pass what Columns.save() returned.")
        x, y = _restored("input", saved["inputs"]), _restored("target", saved["targets"])
        if self._declared is not None and x.dim != self._declared:
            remedy = f"Restore columns with x_dim = {self._declared}."
            raise InvalidInput("saved columns", f"x_dim {x.dim}", remedy)
        if y.dim != self.y_dim:
            raise InvalidInput("saved columns", f"y_dim {y.dim}", f"Restore columns with y_dim = {self.y_dim}.")
        self._x, self._y = x, y


def _input(x: Any, layout: Layout) -> tuple[np.ndarray, Layout]:
    if x is None:
        if layout.dim:
            remedy = f"Pass {layout.dim} numbers, NaN where one is missing."
            raise InvalidInput("x", f"None, but x_dim is {layout.dim}", remedy)
        x = ()
    values, layout = _row("x", x, layout)
    if np.count_nonzero(np.abs(values) <= LARGEST) < values.size:
        _refuse_beyond("x", values, layout)
    values.setflags(write=False)
    return values, layout


def _target(name: str, y: Any, layout: Layout, missing_allowed: bool) -> tuple[np.ndarray | None, Layout]:
    if y is None:
        if missing_allowed:
            return None, layout
        raise InvalidInput(name, "None", f"Pass y_dim = {layout.dim} numbers.")
    values, layout = _row(name, y, layout)
    if np.count_nonzero(np.abs(values) <= LARGEST) < values.size:
        _refuse_beyond(name, values, layout)
        if missing_allowed:
            return None, layout
        missing = int(np.flatnonzero(np.isnan(values))[0])
        raise InvalidInput(layout.column(name, missing), "nan, which is not finite", "Pass a finite number.")
    values.setflags(write=False)
    return values, layout


def _row(label: str, value: Any, layout: Layout) -> tuple[np.ndarray, Layout]:
    """The row in the order of the columns, as an array of its own, and the layout once it is accepted."""
    if layout.unnamed and layout.names is None:  # most rows are like the one before: they need no further checks
        if type(value) is np.ndarray and value.dtype == np.float64 and value.shape == (layout.dim,):
            return value.copy(), layout
        if isinstance(value, float) and layout.dim == 1:
            return np.array([value]), layout
    named = _by_name(label, value)
    if named is not None and (named or layout.names is not None or layout.dim):
        return _named_row(label, named, layout)
    if named is not None:
        value = ()
    elif hasattr(value, "to_numpy"):
        value = value.to_numpy()  # pyright: ignore[reportAttributeAccessIssue]
    values = np.atleast_1d(np.array(check.numbers(label, value, f"({layout.size},)")))
    if layout.names is not None and layout.dim != 1:
        raise InvalidInput(label, "an array without names", f"Pass a dict with the keys {_listed(layout.names)}.")
    if values.ndim != 1 or layout.dim not in (None, len(values)):
        wanted = "" if layout.dim is None else f" = ({layout.dim},)"
        remedy = f"Pass an array of shape ({layout.size},){wanted}."
        raise InvalidInput(label, f"shape {check.shape_text(values.shape)}", remedy)
    return values, layout._replace(dim=len(values), unnamed=True)


def _named_row(label: str, row: dict[str, Any], layout: Layout) -> tuple[np.ndarray, Layout]:
    names = layout.names
    if names is None:
        if layout.dim == 0:
            raise InvalidInput(label, f"keys {_listed(sorted(row))}", "Pass None: the stream has no inputs.")
        if layout.unnamed and layout.dim != 1:
            raise InvalidInput(label, f"keys {_listed(sorted(row))}", "Pass an array as before.")
        if layout.dim not in (None, len(row)):
            remedy = f"Pass a dict with {layout.size} = {layout.dim} keys first; it fixes their names."
            raise InvalidInput(label, f"{len(row)} keys ({_listed(sorted(row))})", remedy)
        names = tuple(sorted(row))
    for name in row:
        if name not in names:
            remedy = f"{near(name, names)}Pass the keys {_listed(names)}."
            raise InvalidInput(label, f"the unknown key {name!r}", remedy)
    absent = [name for name in names if name not in row]
    if absent and layout.kind == "target":
        raise InvalidInput(label, f"no value of {_listed(absent)}", f"Pass the keys {_listed(names)}.")
    values = np.array([_number(f"{label}[{name!r}]", row.get(name)) for name in names], dtype=np.float64)
    return values, layout._replace(dim=len(names), names=names)


def _by_name(label: str, value: Any) -> dict[str, Any] | None:
    """The values of a dict or of a Series by name; None for rows without names.

    pandas is recognised by its attributes, so that it need not be installed.
    """
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif hasattr(value, "to_numpy") and hasattr(value, "columns"):
        remedy = "Pass one row at a time, e.g. table.iloc[i] or a dict."
        raise InvalidInput(label, f"a table ({type(value).__name__})", remedy)
    elif hasattr(value, "to_numpy") and hasattr(value, "index"):
        index = list(value.index)
        entries = value.to_numpy()
        if all(isinstance(name, int | np.integer) for name in index) and index == list(range(len(index))):
            return None  # the default index 0 … n-1 carries no names
        pairs = list(zip(index, entries, strict=True))
    else:
        return None
    named = dict(pairs)
    for name in named:
        if not isinstance(name, str):
            raise InvalidInput(label, f"the key {check.describe(name)}", "Name every column by a string.")
    if len(named) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in named if names.count(name) > 1)
        raise InvalidInput(label, f"the key {twice!r} twice", "Give every column a name of its own.")
    return named


def _number(label: str, value: Any) -> float:
    """One value of a named row; NaN if it is missing."""
    if isinstance(value, int) and abs(value) < _EXACT:
        return float(value)
    if isinstance(value, float):
        return value
    if value is None or type(value).__name__ == "NAType":  # pandas.NA
        return np.nan
    found = check.numbers(label, value, "()")
    if found.shape != ():
        raise InvalidInput(label, f"shape {check.shape_text(found.shape)}", "Pass one number.")
    return float(found)


def _refuse_beyond(label: str, values: np.ndarray, layout: Layout) -> None:
    beyond = np.flatnonzero(np.abs(values) > LARGEST)  # false for NaN
    if len(beyond) == 0:
        return
    place, value = layout.column(label, int(beyond[0])), float(values[beyond[0]])
    if np.isinf(value):
        remedy = "Pass a finite number, or NaN if it is missing."
        raise InvalidInput(place, f"{value}, which is not finite", remedy)
    got = f"{value:g}, which is beyond 1e150, the largest {layout.kind} accepted"
    raise InvalidInput(place, got, f"Rescale the {layout.kind}s.")


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _saved(layout: Layout) -> dict[str, Any]:
    names = None if layout.names is None else list(layout.names)
    return {"dim": layout.dim, "names": names, "unnamed": layout.unnamed}


def _restored(kind: str, saved: Any) -> Layout:
    place = f"saved {kind}s"
    if not isinstance(saved, dict) or set(saved) != {"dim", "names", "unnamed"}:
        raise InvalidInput(place, check.describe(saved), "Pass what Columns.save() returned.")
    dim, names, unnamed = saved["dim"], saved["names"], saved["unnamed"]
    if dim is not None:
        check.integer(f"{place}.dim", dim, min=0)
    if not isinstance(unnamed, bool):
        raise InvalidInput(f"{place}.unnamed", check.describe(unnamed), "Pass True or False.")
    if names is not None:
        sound = isinstance(names, list) and all(isinstance(name, str) for name in names)
        if not sound or names != sorted(set(names)) or len(names) != dim:
            raise InvalidInput(f"{place}.names", check.describe(names), f"Pass {dim} different strings in order.")
        names = tuple(names)
    return Layout(kind, dim, names, unnamed)
