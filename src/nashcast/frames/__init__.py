"""Tables as input and output: pandas, polars, dicts of columns and arrays; a regular grid of time; backtests."""

from nashcast.frames.backtest import Backtest
from nashcast.frames.grid import Grid
from nashcast.frames.layout import TableLayout
from nashcast.frames.scores import crps, pinball

__all__ = ["Backtest", "Grid", "TableLayout", "crps", "pinball"]
