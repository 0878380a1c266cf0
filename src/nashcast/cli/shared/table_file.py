"""`nashcast run` and `nashcast evaluate` on the user's own table: options, the backtest, and the output."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from nashcast.cli.shared.printed import print_json
from nashcast.cli.shared.progress import Progress
from nashcast.errors import InvalidInput

_SHOWN_STEPS = (1, 2, 3, 6, 12, 24, 48, 96, 168)


def add_options(command: argparse.ArgumentParser, *, target: bool = True) -> None:
    """Add the options that assign roles to the columns of a file."""
    group = command.add_argument_group("a CSV or Parquet file of your own")
    if target:
        group.add_argument("--target", type=_names, metavar="COLUMNS", help="columns to forecast, separated by commas")
    group.add_argument(
        "--inputs", type=_names, metavar="COLUMNS", help="input columns, separated by commas (default: none)"
    )
    group.add_argument("--date", metavar="COLUMN", help="column of timestamps (default: none, rows are one step apart)")
    group.add_argument(
        "--horizon", type=int, metavar="N", help="steps ahead (default: 1, or that of the file of --agents)"
    )
    group.add_argument(
        "--every", metavar="LENGTH", help="length of a step, such as 15min, 1h or 1d (default: the commonest)"
    )
    group.add_argument(
        "--timezone",
        metavar="ZONE",
        help="time zone of timestamps without an offset, such as Europe/Vienna (default: none)",
    )
    group.add_argument(
        "--calendar",
        type=_names,
        default=[],
        metavar="LIST",
        help="calendar inputs such as hour,weekday (default: none)",
    )
    group.add_argument(
        "--delay", type=int, default=0, metavar="N", help="rows after which labels arrive (default: %(default)s)"
    )
    group.add_argument(
        "--burn-in", type=int, default=0, metavar="N", help="first rows that are not scored (default: %(default)s)"
    )
    group.add_argument(
        "--agents", type=Path, metavar="TOML", help="federation file with your agents (default: `default_agents`)"
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def backtest(path: str | Path, chosen: argparse.Namespace, target: list[str] | None) -> tuple[Any, Any]:
    """The federation after the last row of the file, and the backtest's result."""
    from nashcast.config.build import maker, text_columns
    from nashcast.config.config import load_live
    from nashcast.federation.federation import Federation
    from nashcast.frames.files import read_file
    from nashcast.frames.layout import TableLayout

    if not target:
        raise InvalidInput("--target", "nothing", "Name the column to forecast, for example --target load.")
    settings = {"calendar": chosen.calendar, "timezone": chosen.timezone, "every": chosen.every}
    changes = {} if chosen.horizon is None else {"horizon": chosen.horizon}
    config = load_live(chosen.agents, changes)
    layout = TableLayout(target, chosen.inputs, chosen.date, objects=text_columns(config), **settings)
    table = read_file(path)
    layout.read(table)  # reports a misspelt column before the federation is made
    federation = maker(config, len(target), input_names=sorted(layout.input_names))()
    if not isinstance(federation, Federation):
        raise InvalidInput("--agents", f"the paper's federation in {chosen.agents}", "Leave out its table [paper].")
    progress = Progress(shown=not chosen.json)
    try:
        result = federation.backtest(
            table.columns, target, chosen.inputs, chosen.date, delay=chosen.delay, burn_in=chosen.burn_in,
            progress=lambda done, total: progress("rows", done, total), **settings,
        )  # fmt: skip
    finally:
        progress.clear()
    return federation, result


def run(chosen: argparse.Namespace) -> None:
    """`nashcast run FILE --target …`: errors by steps ahead, the members' errors, and the next steps with bounds."""
    federation, result = backtest(chosen.file, chosen, chosen.target)
    ahead = federation.forecast()
    if chosen.json:
        print_json(_plain(result) | {"forecast": {name: _texts(values) for name, values in ahead.items()}})
        return
    print(repr(result))
    _print_metrics(result.metrics())
    _print_agents(result.agents())
    print(f"\nthe next {federation.horizon} steps")
    names = [name for name in ahead if not name.endswith(("90", "95"))]
    print("  " + "".join(f"{name[-22:]:>24}" for name in names))
    for h in range(federation.horizon):
        print("  " + "".join(f"{_texts(ahead[name])[h]!s:>24}" for name in names))


def evaluate(path: str, chosen: argparse.Namespace) -> None:
    """`nashcast evaluate --stream FILE --target …`: compare the federation with its members and naive forecasts."""
    from nashcast.frames.scores import mean, naive_scale

    _, result = backtest(path, chosen, _names(chosen.target) if chosen.target else None)
    H, y = result.horizon, result.targets
    scale = float(mean(naive_scale(y, result.season)))
    methods = {"federation": result.forecasts, "persistence": np.repeat(y[:, None], H, axis=1)}
    if result.season > 1:
        methods[f"last season of {result.season}"] = _last_season(y, H, result.season)
    methods |= {name: result.own[:, i] for i, name in enumerate(result.members)}
    rows = {name: mean(np.abs(result.errors(forecast)), axis=(0, 2)) for name, forecast in methods.items()}
    if chosen.json:
        print_json(
            {"season": result.season, "mae": {name: row.tolist() for name, row in rows.items()}, **_plain(result)}
        )
        return
    shown = [h for h in _SHOWN_STEPS if h < H] + [H]
    print(f"mean absolute error by steps ahead, and MASE over all of them (season {result.season})")
    print(f"  {'':28}" + "".join(f"{h:>11}" for h in shown) + f"{'MASE':>11}")
    for name, row in rows.items():
        print(f"  {name[:28]:28}" + "".join(f"{row[h - 1]:11.4g}" for h in shown) + f"{float(mean(row)) / scale:11.3f}")


def _last_season(y: np.ndarray, horizon: int, season: int) -> np.ndarray:
    forecasts = np.full((len(y), horizon, y.shape[1]), np.nan)
    for h in range(1, horizon + 1):
        back = season * (-(-h // season)) - h
        forecasts[back:, h - 1] = y[: len(y) - back]
    return forecasts


def _plain(result: Any) -> dict[str, Any]:
    metrics = {name: np.asarray(values).tolist() for name, values in result.metrics().items()}
    agents = {name: values if isinstance(values, list) else values.tolist() for name, values in result.agents().items()}
    return {"summary": result.summary, "metrics": metrics, "agents": agents}


def _texts(values: Any) -> list[Any]:
    array = np.asarray(values)
    if array.dtype.kind == "M":
        return [str(value) for value in array.astype("datetime64[s]")]
    return [float(f"{value:.6g}") if isinstance(value, float) else value for value in array.tolist()]


def _print_metrics(metrics: dict[str, np.ndarray]) -> None:
    names = [name for name in metrics if not name.startswith(("width", "step"))]
    print(f"\n  {'ahead':>6}" + "".join(f"{name:>20}" for name in names))
    H = len(metrics["step"])
    for h in [step for step in _SHOWN_STEPS if step < H] + [H]:
        print(f"  {h:>6}" + "".join(f"{metrics[name][h - 1]:20.4g}" for name in names))


def _print_agents(agents: dict[str, Any]) -> None:
    print("\n  " + f"{'member':28}" + "".join(f"{name:>14}" for name in list(agents)[1:]))
    for i, name in enumerate(agents["member"]):
        print(f"  {name[:28]:28}" + "".join(f"{agents[key][i]:14.4g}" for key in list(agents)[1:]))
