"""The paper's complete search: every combination of every grid, and our winners compared with its bold settings."""

from __future__ import annotations

from dataclasses import replace

from nashcast.paper.parallel_runs import Options, Task, mean, outcomes
from nashcast.paper.runs import OURS
from nashcast.paper.settings import LABELS, Row, rows
from nashcast.paper.studies.published import described
from nashcast.paper.studies.table import baseline_errors, has_encoders, seeds_of
from nashcast.records.study import Column, Study, Table


def hyperparameters(options: Options) -> Study:
    """Tuned after the fact, as in the paper: the winner is the best on the same series it is scored on."""
    lines, runs = [], 0
    for model in options.models:
        for row in rows(model):
            if not has_encoders(model, row.dataset, row.agents):
                continue
            line, count = _searched(row, options)
            lines.append(line)
            runs += count
    columns = [
        Column("model", "model"), Column("agents", "agents", "int"), Column("dataset", "dataset"),
        Column("game", "game"), Column("settings", "settings", "int"), Column("bold", "bold, ours", "error"),
        Column("winner", "our winner", "error"), Column("ratio", "bold ÷ winner", "ratio"),
        Column("persistence", "persistence", "error"), Column("changes", "where our winner differs from bold"),
        Column("diverged", "diverged", "int"),
    ]  # fmt: skip
    notes = [
        f"{runs:,} runs. Winners are chosen after the fact, as in the paper: this says nothing of data to come.",
        "With a game at every step the agents' own window acts on the first few steps only.",
        "Winners that differ in it alone are alike to many digits: the smallest window is shown.",
    ]
    return Study(
        "hyperparameters", "The paper's complete grids", "", seeds=list(options.seeds), notes=notes,
        tables=[Table("Winners of the complete grids", columns, lines)],
    )  # fmt: skip


def _searched(row: Row, options: Options) -> tuple[dict, int]:
    grid, seeds = list(row.settings()), seeds_of(row.model, options)
    # The bold setting of one row is not in its grid: add it.
    everything = list(dict.fromkeys([*grid, row.setting()]))
    tasks = [Task(each, seed, OURS) for each in everything for seed in seeds]
    label = f"{row.model} {row.dataset} {row.agents} {'game' if row.game else 'no game'}"
    found = outcomes(tasks, options, label)
    errors = {each: mean(found, each, seeds) for each in everything}
    # Ties, up to rounding, go to the smaller window.
    winner = min(grid, key=lambda each: (float(f"{errors[each]:.6e}"), each.window))
    bold = errors[row.setting()]
    naive = baseline_errors(replace(row.setting()))[1]["persistence"]
    line = {
        "model": LABELS[row.model], "agents": row.agents, "dataset": row.dataset, "game": "yes" if row.game else "no",
        "settings": len(grid), "bold": bold, "winner": errors[winner], "ratio": bold / errors[winner],
        "persistence": naive, "changes": described(winner, row.setting()),
        "diverged": sum(error > 1e6 for error in errors.values()),
    }  # fmt: skip
    return line, len(tasks)
