"""The result of a sweep: its ranked settings, with persistence and the federation without its game for comparison."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from nashcast.config.build import without_game
from nashcast.config.config import Config
from nashcast.config.paper_settings import OF_GAME
from nashcast.runs.single_run import diverged, skill
from nashcast.runs.sweep import Plan, persistence

# Rows of a sweep's table in its record; the record also has all settings and errors.
MOST_ROWS = 200
# Labels of the parts of a stream in a table.
_OF_GAME = {"game", "paper.anchored", *(f"paper.{name}" for name in OF_GAME)}
LABELS = {"tuning": "tuning part", "rest": "scored rest", "all": "all steps"}


class Row(NamedTuple):
    """One setting. errors: by part of the stream, mean over seeds and worst seed.   diverged: number of such runs."""

    choice: dict[str, Any]
    config: Config
    errors: dict[str, tuple[float, float]]
    persistence: dict[str, float]
    diverged: int


class Ranking(NamedTuple):
    """rows: best first.   parts: of the stream, the ranking one first.   runs: their number."""

    rows: list[Row]
    parts: tuple[str, ...]
    runs: int
    diverged: int


def gameless_runs(plan: Plan, row: Row):
    """The runs of one setting's agents without the game; the paper's agents are then anchored."""
    return plan.runs(without_game(row.config, anchored=True))


def rank(plan: Plan, done: Mapping[str, Mapping]) -> Ranking:
    """Rank by the mean error over seeds on the first part; settings with a non-finite run come last."""
    rows = [row_of(plan, choice, config, done) for choice, config in zip(plan.choices, plan.configs, strict=True)]
    parts = tuple(rows[0].errors)
    # Relative to persistence, since streams of different lags may have targets of different sizes.
    rows.sort(key=lambda row: row.errors[parts[0]][0] / (row.persistence[parts[0]] or 1.0))
    return Ranking(rows, parts, len(rows) * len(plan.sweep.seeds), sum(row.diverged for row in rows))


def row_of(plan: Plan, choice: dict[str, Any], config: Config, done: Mapping[str, Mapping]) -> Row:
    base = persistence(plan.scored(config))
    results = [done[run.key] for run in plan.runs(config)]
    errors = {part: np.array([_number(result[part]) for result in results]) for part in base}
    lost = sum(any(diverged(errors[part][k], base[part]) for part in base) for k in range(len(results)))
    summary = {part: (float(values.mean()), float(values.max())) for part, values in errors.items()}
    return Row(choice, config, summary, base, lost)


def table(plan: Plan, ranking: Ranking, gameless: Row, top: int | None = None) -> dict[str, Any]:
    """The ranking as a table of a study's record."""
    columns = [{"key": "rank", "label": "rank", "kind": "text"}]
    columns += [{"key": path, "label": path, "kind": "text"} for path in plan.sweep.varied]
    for part in ranking.parts:
        columns.append({"key": part, "label": f"{LABELS[part]}, mean", "kind": "error"})
        columns.append({"key": f"{part}_worst", "label": "worst seed", "kind": "error"})
    columns.append({"key": "skill", "label": f"skill, {LABELS[ranking.parts[-1]]}", "kind": "ratio"})
    columns.append({"key": "diverged", "label": "diverged", "kind": "int"})
    rows = [{"rank": str(k + 1), **_cells(plan, row)} for k, row in enumerate(ranking.rows[:top])]
    kind = "no game" if plan.base.paper is None else "anchored, no game"
    no_game = {path: None for path in plan.sweep.varied if path in _OF_GAME}
    rows.append({"rank": f"1, {kind}", **_cells(plan, gameless), **no_game})
    base = ranking.rows[0].persistence
    same = all(row.persistence == base for row in ranking.rows)
    label = "persistence" if same else "persistence on rank 1's stream"
    still = {"rank": label, **dict.fromkeys(plan.sweep.varied), "skill": 0.0, "diverged": None}
    for part, error in base.items():
        still |= {part: error, f"{part}_worst": error}
    return {"title": title(plan, ranking), "columns": columns, "rows": [*rows, still]}


def title(plan: Plan, ranking: Ranking) -> str:
    count, seeds = len(ranking.rows), len(plan.sweep.seeds)
    return f"{count} settings, {seeds} seed{'s' if seeds > 1 else ''} each, {how_ranked(plan, ranking)}"


def how_ranked(plan: Plan, ranking: Ranking) -> str:
    stream, split, _ = plan.scored(ranking.rows[0].config)
    steps = len(stream.targets)
    if split is None:
        return f"tuned after the fact: ranked and reported on the same {steps} steps"
    return f"ranked on steps 1 to {split}, scored on steps {split + 1} to {steps}"


def record(plan: Plan, ranking: Ranking, gameless: Row, command: str, seconds: float) -> tuple[dict, dict]:
    """The record of a finished sweep: about, with `choices` in ranked order, and their errors, (settings,)."""
    how = how_ranked(plan, ranking)
    about = {
        "name": plan.base.name,
        "title": f"{plan.base.name}: sweep",
        "command": command,
        "seeds": list(plan.sweep.seeds),
        "settings": {"federation": plan.base.settings(), "sweep": plan.sweep.settings()},
        "seconds": round(seconds, 3),
        "notes": [f"{how[0].upper()}{how[1:]}.", f"{ranking.diverged} of {ranking.runs} runs diverged."],
        "tables": [table(plan, ranking, gameless, MOST_ROWS)],
        "figures": [],
        "choices": [row.choice for row in ranking.rows],
    }
    arrays = {part: np.array([row.errors[part][0] for row in ranking.rows]) for part in ranking.parts}
    arrays |= {f"{part}_worst": np.array([row.errors[part][1] for row in ranking.rows]) for part in ranking.parts}
    return about, arrays


def _cells(plan: Plan, row: Row) -> dict[str, Any]:
    cells = {path: setting_text(row.choice.get(path)) for path in plan.sweep.varied}
    for part, (mean, worst) in row.errors.items():
        cells |= {part: mean, f"{part}_worst": worst}
    last = list(row.errors)[-1]
    gained = skill(row.errors[last][0], row.persistence[last])
    lost = diverged(row.errors[last][0], row.persistence[last])
    return {**cells, "skill": None if lost else gained, "diverged": row.diverged}


def setting_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(value: float | None) -> float:
    return float("inf") if value is None or math.isnan(value) else float(value)
