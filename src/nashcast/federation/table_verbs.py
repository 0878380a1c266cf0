"""A federation's verbs for tables and probabilities: backtest, forecast, predict_quantiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput, NashcastError
from nashcast.federation.views.federation_views import Views
from nashcast.frames.backtest import Backtest, run_backtest
from nashcast.frames.layout import TableLayout
from nashcast.frames.live import LiveTable
from nashcast.frames.scores import checked_levels, quantiles
from nashcast.frames.table import is_table


class TableVerbs(Views):
    """The methods of `Federation` for tables, built on predict_one, learn_one and learn_late."""

    _table: LiveTable | None = None
    if TYPE_CHECKING:
        _coverages: tuple[float, ...]

        def predict_one(self, x: Any, *, time: float = np.nan) -> Any: ...

    @property
    def coverages(self) -> tuple[float, ...]:
        """Coverages of its intervals."""
        return self._coverages

    def backtest(
        self,
        table: Any,
        target: str | Sequence[str] | None = None,
        inputs: Any = None,
        date: str | None = None,
        *,
        delay: int = 0,
        burn_in: int = 0,
        progress: bool | Callable[[int, int], None] | None = None,
        **layout: Any,
    ) -> Backtest:
        """Forecast the next `horizon` rows from every row of a history, learning as it goes, as in live use.

        table: a pandas or polars frame or a dict of columns; or an array of targets, with `inputs` an array too.
        target, inputs, date: names of columns. An input is known when its row is; the targets after it are forecast.
        delay: how many rows late labels are learnt.   burn_in: first rows that are not scored.
        progress: True, False, or a function of (done, total); by default a line in the terminal.
        layout: `calendar`, `holidays`, `timezone`, `every`; see docs/how-to/use-a-table.md.

        Afterwards the federation goes on from the last row: `forecast()`.

        >>> import nashcast as nc
        >>> federation = nc.Federation([nc.Agent(nc.encoders.Seasonal())], horizon=3, season=3)
        >>> result = federation.backtest({"load": [1.0, 3.0, 2.0] * 20}, target="load", burn_in=30)
        >>> round(result.summary["MAE"], 2)
        0.0
        >>> federation.forecast()["load"].round(2).tolist()
        [1.0, 3.0, 2.0]
        """
        with self._lock:
            if isinstance(table, str | PathLike):
                remedy = "Read the file first, for example by pandas.read_csv, or use `nashcast run FILE`."
                raise InvalidInput("table", check.describe(table), remedy)
            if not is_table(table):
                table, target, inputs = _of_arrays(table, inputs)
            live = self._opened(target, inputs, date, layout)
            rows = live.read(table)
            found = run_backtest(self, live, rows, delay=delay, burn_in=burn_in, progress=progress)
            self._table = live
            return found

    def forecast(self, rows: Any = None, target: str | Sequence[str] | None = None, **layout: Any) -> Any:
        """Learn new rows, if any, and forecast the next `horizon` steps: a table with their times and bounds.

        rows: a table, or one row as a dict or a pandas Series. A row that came before without its label may come again
        with it. The first rows also need `target`, and accept the arguments of `backtest` that describe the columns.
        """
        with self._lock:
            if rows is None:
                if self._table is None:
                    raise InvalidInput("rows", "None", "Pass rows first, or call backtest.")
                live = self._table
            else:
                live = self._opened(target, layout.pop("inputs", None), layout.pop("date", None), layout)
                live.observe(self, live.read(rows))
                self._table = live
            live.predict(self)
            present = self.present
            if present is None:  # no label yet: there is nothing to forecast from
                H, p = self.horizon, self.y_dim
                nothing = np.full((len(self._coverages), 2, H, p), np.nan)
                return live.forecast_table(np.full((H, p), np.nan), nothing, self._coverages)
            return live.forecast_table(present.forecast, self.bounds_now(), self._coverages)

    def predict_quantiles(self, levels: Sequence[float], x: Any = None) -> Any:
        """Quantiles of the next targets, the levels last: (horizon, y_dim, levels), without axes of length 1.

        levels: between 0 and 1. A level q is calibrated if |2q - 1| is among the federation's coverages, or q = 0.5;
        others lie between these as in a normal distribution.   x: as in `predict_one`, or None for the forecast that
        was made last.
        """
        tau = checked_levels(levels)
        with self._lock:
            if x is not None or self.present is None:
                self.predict_one(x)
            present = self.present
            if present is None:
                raise NashcastError("the stream has not begun: no target is known yet.")
            halves = self.bounds_now()[:, 1] - present.forecast
            found = quantiles(present.forecast, halves, self._coverages, tau)
            found = found[:, 0] if self.y_dim == 1 else found
            return found[0] if self.horizon == 1 else found

    def bounds_now(self) -> np.ndarray:
        """Low and high round the present forecast at all coverages, (coverages, 2, horizon, y_dim)."""
        present = self.present
        if present is None:
            raise NashcastError("there is no forecast to put an interval round: call predict_one(x) first.")
        if self._bounds is None:
            return np.empty((0, 2, *present.forecast.shape))
        return self._bounds.around_all(present.forecast)

    def own_forecasts(self) -> np.ndarray:
        """Each member's own part of the present forecast, (members, horizon, y_dim)."""
        if self._loop is None or self.present is None:
            raise NashcastError("there is no forecast: call predict_one(x) first.")
        return self._loop.own_forecasts()

    def _opened(self, target: Any, inputs: Any, date: Any, layout: dict[str, Any]) -> LiveTable:
        """The table that goes on, or a new one if this is the first; nothing is changed."""
        if self._table is not None:
            if target is None or self._same(target, inputs, date, layout):
                return self._table
            remedy = "Make a new federation for another table, or leave target and the other settings out."
            raise InvalidInput("target", check.describe(target), remedy)
        if target is None:
            raise InvalidInput("target", "None", "Name the column to forecast: target='…'.")
        known = ("calendar", "holidays", "timezone", "every")
        unknown = next((name for name in layout if name not in known), None)
        if unknown is not None:
            raise InvalidInput(unknown, "an unknown setting", f"The settings of a table are {', '.join(known)}.")
        made = TableLayout(target, inputs, date, objects=self._factory.objects, **layout)
        if len(made.targets) != self.y_dim:
            got = f"{len(made.targets)} columns, but y_dim is {self.y_dim}"
            raise InvalidInput("target", got, f"Make the federation with y_dim={len(made.targets)}.")
        return LiveTable(made)

    def _same(self, target: Any, inputs: Any, date: Any, settings: dict[str, Any]) -> bool:
        assert self._table is not None
        layout, again = self._table.layout, TableLayout(target, inputs, date, objects=self._factory.objects, **settings)
        return (again.targets, again.inputs, again.objects) == (layout.targets, layout.inputs, layout.objects)


def _of_arrays(targets: Any, inputs: Any) -> tuple[dict[str, np.ndarray], list[str], list[str]]:
    """A table of arrays: columns y, or y0, y1, …, and x0, x1, …"""
    Y = check.numbers("table", targets, "(rows,) or (rows, y_dim)")
    if Y.ndim not in (1, 2) or not len(Y):
        remedy = "Pass a frame, a dict of columns, or targets of shape (rows,) or (rows, y_dim)."
        raise InvalidInput("table", f"shape {check.shape_text(Y.shape)}", remedy)
    Y = Y.reshape(len(Y), -1)
    names = ["y"] if Y.shape[1] == 1 else [f"y{j}" for j in range(Y.shape[1])]
    columns = dict(zip(names, Y.T, strict=True))
    X = np.empty((len(Y), 0)) if inputs is None else check.numbers("inputs", inputs, "(rows, x_dim)")
    X = X[:, None] if X.ndim == 1 else X
    if X.ndim != 2 or len(X) != len(Y):
        remedy = f"Pass an array of shape (rows, x_dim) with {len(Y)} rows."
        raise InvalidInput("inputs", f"shape {check.shape_text(X.shape)}", remedy)
    # Padded, so that the order of the names is that of the columns.
    digits = len(str(max(X.shape[1] - 1, 0)))
    x_names = [f"x{j:0{digits}d}" for j in range(X.shape[1])]
    return columns | dict(zip(x_names, X.T, strict=True)), names, x_names
