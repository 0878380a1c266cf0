"""The showcase as a study: errors, each member's contribution and the days ahead, as tables and figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nashcast.evaluation.showcase import COVERAGE, MIXTURE, PERSISTENCE, POOLED, TOGETHER, Ahead, Result
from nashcast.records.study import Column, Figure, Line, Panel, Study, Table

# Steps before the running errors are drawn: the first ones say little.
SKIPPED = 20


def study_of_showcase(results: Sequence[Result], ahead: Ahead, command: str, seed: int) -> Study:
    """The study of a demo; `ahead` belongs to the last result."""
    arrays = {
        f"{result.stream}: {name}": np.cumsum(squares)[SKIPPED:] / np.cumsum(result.squares[PERSISTENCE])[SKIPPED:]
        for result in results
        for name, squares in result.squares.items()
    }
    arrays |= {f"ahead: {name}": np.array(getattr(ahead, name)) for name in ("low", "forecast", "high")}
    arrays["ahead: day"] = np.arange(1.0, len(ahead.forecast) + 1)
    for result in results:
        arrays[f"{result.stream}: step"] = np.arange(SKIPPED, result.steps, dtype=float)
    return Study(
        "demo", "Owners with private inputs, alone and together", command, [seed],
        notes=[summary(result) for result in results],
        tables=[*(_errors(result) for result in results), _members(results[-1])],
        figures=[_running(results), _ahead(ahead)], arrays=arrays,
    )  # fmt: skip


def summary(result: Result) -> str:
    """One sentence on what was seen."""
    base, best = result.errors[PERSISTENCE], best_owner(result)
    together, alone = (result.errors[name] / base for name in (TOGETHER, best))
    return (
        f"{result.stream}: together {together:.3f} of persistence's error, {best} {alone:.3f}, their mixture "
        f"{result.errors[MIXTURE] / base:.3f}; one model over all inputs would have {result.errors[POOLED] / base:.3f}."
    )


def best_owner(result: Result) -> str:
    """The owner with the smallest error, chosen in hindsight."""
    return min((f"{name} alone" for name in result.owners), key=result.errors.__getitem__)


def _errors(result: Result) -> Table:
    base = result.errors[PERSISTENCE]
    columns = [Column("method", "method"), Column("mse", "MSE", "error"), Column("ratio", "÷ persistence", "ratio")]
    rows = [{"method": name, "mse": error, "ratio": error / base} for name, error in result.errors.items()]
    return Table(f"{result.stream}, {result.steps} steps", columns, rows)


def _members(result: Result) -> Table:
    base = result.errors[PERSISTENCE]
    columns = [
        Column("name", "member"),
        Column("own", "own error ÷ persistence", "ratio"),
        Column("weight", "weight", "ratio"),
        Column("without", "error without it ÷ error", "ratio"),
    ]
    rows = [
        {"name": each.name, "own": each.error / base, "weight": each.weight, "without": 1.0 + each.loss_without}
        for each in result.trust
    ]
    return Table(f"{result.stream}: contribution of each member", columns, rows)


def _running(results: Sequence[Result]) -> Figure:
    panels = []
    for result in results:
        shown = (best_owner(result), MIXTURE, TOGETHER, POOLED)
        lines = [Line(name, f"{result.stream}: {name}", f"{result.stream}: step") for name in shown]
        panels.append(Panel(result.stream, "step", "error so far ÷ persistence's", lines, reference=1.0))
    caption = "Mean squared error of all steps so far, divided by that of persistence. Below 1 is better."
    return Figure("together", "Best owner, mixture, federation and pooled limit", caption, panels)


def _ahead(ahead: Ahead) -> Figure:
    names = (
        ("low", f"lower bound, {COVERAGE:.0%}"),
        ("forecast", "forecast"),
        ("high", f"upper bound, {COVERAGE:.0%}"),
    )
    lines = [Line(label, f"ahead: {name}", "ahead: day") for name, label in names]
    panel = Panel(ahead.stream, "days ahead", "value", lines)
    return Figure("ahead", "The days ahead with bounds", f"The last value was {ahead.last:.4f}.", [panel])
