"""A federation run over a history, step by step as in live use, and scores of its forecasts and bounds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from nashcast import validation as check
from nashcast.errors import InvalidInput
from nashcast.frames.layout import TableLayout
from nashcast.frames.live import LiveTable
from nashcast.frames.scores import CRPS_LEVELS, crps, mean, naive_scale, quantiles
from nashcast.frames.table import DICT, best_library, write_table

_PROGRESS_S = 1.0


@dataclass(repr=False)
class Backtest:
    """The result of `Federation.backtest`. All numbers are in the units of the targets.

    Row t is a place on the grid of time; forecasts[t] were made when row t was known, for rows t + 1 … t + horizon.
    """

    layout: TableLayout
    places: np.ndarray  # (rows,)
    targets: np.ndarray  # (rows, y_dim), NaN where missing
    forecasts: np.ndarray  # (rows, horizon, y_dim), NaN before the first label
    bounds: np.ndarray  # (rows, coverages, 2, horizon, y_dim)
    own: np.ndarray  # each member's own forecasts, (rows, members, horizon, y_dim)
    weights: np.ndarray  # (rows, members)
    coverages: tuple[float, ...]
    members: list[str]
    trust: list[Any]
    season: int
    burn_in: int = 0
    absences: dict[str, int] = field(default_factory=dict)

    @property
    def horizon(self) -> int:
        return self.forecasts.shape[1]

    def errors(self, forecasts: np.ndarray | None = None) -> np.ndarray:
        """Forecast minus target, (rows, horizon, y_dim); NaN where either is missing and before `burn_in`."""
        made = self.forecasts if forecasts is None else forecasts
        found = made - self._ahead()
        found[: self.burn_in] = np.nan
        return found

    def metrics(self) -> dict[str, np.ndarray]:
        """By steps ahead, averaged over targets: MAE, RMSE, MASE, CRPS, persistence's MAE; coverage and mean width."""
        e, H = self.errors(), self.horizon
        size, scale = np.abs(e), naive_scale(self.targets, self.season)
        last = np.repeat(self.targets[:, None], H, axis=1)
        found = {
            "step": np.arange(1, H + 1),
            "MAE": mean(size, axis=(0, 2)),
            "RMSE": np.sqrt(mean(e**2, axis=(0, 2))),
            "MASE": mean(size / scale, axis=(0, 2)),
            "CRPS": self._crps(),
            "MAE of persistence": mean(np.abs(self.errors(last)), axis=(0, 2)),
        }
        ahead, scored = self._ahead(), np.isfinite(e)
        for c, coverage in enumerate(self.coverages):
            low, high = self.bounds[:, c, 0], self.bounds[:, c, 1]
            scored_here = scored & np.isfinite(low)
            inside = np.where(scored_here, (low <= ahead) & (ahead <= high), np.nan)
            width = np.where(scored_here, high - low, np.nan)
            found[f"coverage {100 * coverage:g} %"] = mean(inside, axis=(0, 2))
            found[f"width {100 * coverage:g} %"] = mean(width, axis=(0, 2))
        return found

    def agents(self) -> dict[str, Any]:
        """For each member: own MAE over all steps ahead, last weight, what the federation would lose without it (as a
        share of its recent squared error one step ahead), and the steps it sat out.
        """
        own = [float(mean(np.abs(self.errors(self.own[:, i])))) for i in range(len(self.members))]
        return {
            "member": list(self.members),
            "own MAE": np.array(own),
            "weight": np.array([one.weight for one in self.trust]),
            "loss without": np.array([one.loss_without for one in self.trust]),
            "absences": np.array([self.absences.get(name, 0) for name in self.members]),
        }

    @property
    def summary(self) -> dict[str, float]:
        """Means over all steps ahead."""
        metrics = {name: float(mean(values)) for name, values in self.metrics().items() if name != "step"}
        return {"rows": float(len(self.places)), "forecasts": float(np.isfinite(self.errors()).sum()), **metrics}

    def to_frame(self, table: str = "forecasts", library: str | None = None) -> Any:
        """One of the tables "forecasts", "metrics" and "agents" as a frame of the library the history came in.

        The forecasts: one row for each row of the history and step ahead, with the times of both.
        """
        made = {"forecasts": self._forecast_columns, "metrics": self.metrics, "agents": self.agents}
        if table not in made:
            raise InvalidInput("table", repr(table), f"Pass one of {', '.join(made)}.")
        known = self.layout.library
        return write_table(made[table](), library or (known if known != DICT else best_library()))

    def plot(self, engine: str = "matplotlib", *, last: int = 168, target: str | None = None) -> Any:
        """Forecast with bounds, errors by steps ahead, weights over time, trust in members: a figure.

        engine: "matplotlib" or "plotly".   last: how many rows of the history to show.   target: the first by default.
        """
        if target is not None and target not in self.layout.targets:
            raise InvalidInput("target", check.describe(target), f"Pass one of {', '.join(self.layout.targets)}.")
        if not np.isfinite(self.errors()).any():
            got = f"no forecast with a label after the first {self.burn_in} of {len(self.places)} rows"
            raise InvalidInput("result", got, "Backtest more rows, or with a smaller burn_in.")
        if engine == "matplotlib":
            from nashcast.frames.plot_matplotlib import figure
        elif engine == "plotly":
            from nashcast.frames.plot_plotly import figure
        else:
            raise InvalidInput("engine", check.describe(engine), "Pass 'matplotlib' or 'plotly'.")
        return figure(self, last, target)

    def __repr__(self) -> str:
        s = self.summary
        head = f"Backtest({len(self.places)} rows, horizon {self.horizon}: MAE {s['MAE']:.4g}"
        return f"{head}, MASE {s['MASE']:.3g}, CRPS {s['CRPS']:.4g}, persistence MAE {s['MAE of persistence']:.4g})"

    def _repr_html_(self) -> str:
        names = [name for name in self.metrics() if not name.startswith("width")]
        some = [h for h in (1, 2, 3, 6, 12, 24, 48, 96, 168) if h < self.horizon] + [self.horizon]
        metrics = self.metrics()
        rows = [[f"{metrics[name][h - 1]:.4g}" for name in names] for h in some]
        agents = self.agents()
        people = [
            [name, *(f"{agents[key][i]:.3g}" for key in list(agents)[1:])] for i, name in enumerate(agents["member"])
        ]
        return f"<p>{escape(repr(self))}</p>{_html(names, rows)}{_html(list(agents), people)}"

    def _ahead(self) -> np.ndarray:
        """The target of each forecast, (rows, horizon, y_dim)."""
        found = np.full(self.forecasts.shape, np.nan)
        for h in range(1, min(self.horizon, len(self.targets) - 1) + 1):
            found[:-h, h - 1] = self.targets[h:]
        return found

    def _crps(self) -> np.ndarray:
        if not self.coverages:
            return np.full(self.horizon, np.nan)
        halves = np.moveaxis(self.bounds[:, :, 1], 1, 0) - self.forecasts
        found = quantiles(self.forecasts, halves, self.coverages, CRPS_LEVELS)
        losses = crps(self._ahead(), found, CRPS_LEVELS)
        losses[: self.burn_in] = np.nan
        return mean(losses, axis=(0, 2))

    def _forecast_columns(self) -> dict[str, Any]:
        n, H, _ = self.forecasts.shape
        name, made = self.layout.index(np.repeat(self.places, H))
        _, of = self.layout.index((self.places[:, None] + 1 + np.arange(H)).ravel())
        found = {f"{name} made": made, name: of, "step": np.tile(np.arange(1, H + 1), n)}
        ahead = self._ahead()
        for j, target in enumerate(self.layout.targets):
            found[f"{target} actual"] = ahead[:, :, j].ravel()
            found[target] = self.forecasts[:, :, j].ravel()
            for c, coverage in enumerate(self.coverages):
                found[f"{target} low {100 * coverage:g}"] = self.bounds[:, c, 0, :, j].ravel()
                found[f"{target} high {100 * coverage:g}"] = self.bounds[:, c, 1, :, j].ravel()
        return found


def run_backtest(
    federation: Any, live: LiveTable, rows, *, delay: int, burn_in: int, progress: bool | Callable | None
) -> Backtest:
    """Forecast from every row, then learn the next; `federation` goes on from the last row."""
    check.integer("delay", delay, min=0)
    check.integer("burn_in", burn_in, min=0)
    if live.place is not None and rows.places[-1] <= live.place:
        got = f"{len(rows.places)} rows that were learnt before"
        raise InvalidInput("table", got, "Make a new federation to test it again, or pass later rows.")
    n, H, p, C = len(rows.places), federation.horizon, federation.y_dim, len(federation.coverages)
    forecasts, bounds = np.full((n, H, p), np.nan), np.full((n, C, 2, H, p), np.nan)
    recorded: list[tuple[int, np.ndarray, np.ndarray]] = []
    first, report = int(rows.places[0]), _reporter(progress, n)

    def each(place: int) -> None:
        at = place - first
        live.predict(federation)
        present = federation.present
        if present is not None:
            forecasts[at] = present.forecast
            bounds[at] = federation.bounds_now()
            recorded.append((at, present.weights, federation.own_forecasts()))
        report(at + 1)

    live.observe(federation, rows, delay, each)
    report(n, done=True)
    members = federation.members
    own, weights = np.full((n, len(members), H, p), np.nan), np.full((n, len(members)), np.nan)
    for at, weight, forecast in recorded:
        weights[at], own[at] = weight, forecast
    return Backtest(
        live.layout, rows.places, rows.targets, forecasts, bounds, own, weights, federation.coverages, members,
        federation.trust() if members else [], federation.season or 1, burn_in, federation.health["absences"],
    )  # fmt: skip


def _reporter(progress: bool | Callable | None, total: int) -> Callable[..., None]:
    """Calls a function of (done, total), or writes a line to the terminal about once a second."""
    if callable(progress):
        return lambda at, **_: progress(at, total)
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return lambda *_, **__: None
    begun = last = time.monotonic()

    def show(at: int, *, done: bool = False) -> None:
        nonlocal last
        now = time.monotonic()
        if done:
            sys.stderr.write("\r" + " " * 60 + "\r" if last > begun else "")
        elif now - last > _PROGRESS_S:
            last, left = now, (now - begun) / at * (total - at)
            sys.stderr.write(f"\rbacktest: {at} of {total} rows, {left:.0f} s left ")
            sys.stderr.flush()

    return show


def _html(names: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
