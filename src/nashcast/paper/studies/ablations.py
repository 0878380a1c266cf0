"""The paper's ablations: look-back length, frequency of the game, mixture weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nashcast.errors import InvalidInput
from nashcast.paper.parallel_runs import Options, Task, mean, outcomes, spread
from nashcast.paper.runs import OURS, PUBLISHED, run
from nashcast.paper.settings import LABELS, Setting, expected, row
from nashcast.paper.studies.published import described
from nashcast.paper.studies.table import baseline_errors, bold, has_encoders, seeds_of
from nashcast.records.study import Column, Figure, Line, Panel, Study, Table

RECORDED = ("boc", "ett")


def lookback(options: Options) -> Study:
    """Random features, five agents: error against look-back. The paper shows its best of three seeds."""
    values, seeds = expected()["lookback"]["values"], list(options.seeds)
    settings = {
        (dataset, T): replace(bold("rfn", dataset, 5, True), lookback=T) for dataset in RECORDED for T in values
    }
    ways = {"ours": OURS} | ({"as published": PUBLISHED} if options.as_published else {})
    tasks = [Task(each, seed, way) for each in settings.values() for seed in seeds for way in ways.values()]
    found = outcomes(tasks, options, "lookback")
    arrays, panels, rows = {"lookback": np.array(values, dtype=float)}, [], []
    for dataset in RECORDED:
        naive = baseline_errors(settings[dataset, values[0]])[1]["persistence"]
        lines = []
        for name, way in ways.items():
            best = [spread(found, settings[dataset, T], seeds, way)[0] for T in values]
            average = [mean(found, settings[dataset, T], seeds, way) for T in values]
            for kind, errors in (("best seed", best), ("mean", average)):
                key = f"{dataset}.{name}.{kind}"
                arrays[key] = np.array(errors)
                lines.append(Line(f"{name}, {kind}", key, "lookback", "line+points"))
            for T, least, middle in zip(values, best, average, strict=True):
                failed = sum(found[Task(settings[dataset, T], seed, way)].fallbacks for seed in seeds)
                rows.append(
                    {"dataset": dataset, "way": name, "lookback": T, "best": least, "mean": middle,
                     "persistence": naive, "fallbacks": failed, "mark": "best" if least == min(best) else ""}
                )  # fmt: skip
        arrays[f"{dataset}.persistence"] = np.full(len(values), naive)
        lines.append(Line("persistence", f"{dataset}.persistence", "lookback"))
        panels.append(Panel(dataset, "look-back of the game", "mean squared error", lines, log_y=True))
    columns = [
        Column("dataset", "dataset"), Column("way", "way"), Column("lookback", "look-back", "int"),
        Column("best", "best seed", "error"), Column("mean", "mean", "error"),
        Column("persistence", "persistence", "error"), Column("fallbacks", "games not solved", "int"),
        Column("mark", ""),
    ]  # fmt: skip
    notes = [
        f"{dataset}: the paper's best look-back is {best}; the best of ours is "
        f"{min(values, key=lambda T: spread(found, settings[dataset, T], seeds)[0])}."
        for dataset, best in expected()["lookback"]["best"].items()
    ]
    caption = "Errors over the look-back of the game, five random-feature agents; all other settings as in Table 1. "
    caption += "The paper's Figure 9, which shows its best seed."
    return Study(
        "lookback", "Effect of the look-back length", "", seeds=seeds, notes=notes,
        tables=[Table("Error over look-back", columns, rows)],
        figures=[Figure("lookback", "Error over look-back", caption, panels, 2)], arrays=arrays,
    )  # fmt: skip


def frequency(options: Options) -> Study:
    """Random features: error against the steps between games, and settings tuned for a game every tenth step."""
    values, seeds = expected()["frequency"]["values"], list(options.seeds)
    cases = [(dataset, agents) for dataset in RECORDED for agents in (2, 5)]
    settings = {(*case, every): replace(bold("rfn", *case, True), every=every) for case in cases for every in values}
    ways = {"ours": OURS} | ({"as published": PUBLISHED} if options.as_published else {})
    tasks = [Task(each, seed, way) for each in settings.values() for seed in seeds for way in ways.values()]
    found = outcomes(tasks, options, "frequency")
    arrays, panels, rows = {"every": np.array(values, dtype=float)}, [], []
    for dataset in RECORDED:
        naive = baseline_errors(settings[dataset, 2, 1])[1]["persistence"]
        lines = []
        for agents in (2, 5):
            for name, way in ways.items():
                key = f"{dataset}.{agents}.{name}"
                errors = [mean(found, settings[dataset, agents, every], seeds, way) for every in values]
                arrays[key] = np.array(errors)
                lines.append(Line(f"{agents} agents, {name}", key, "every", "line+points"))
                for every, error in zip(values, errors, strict=True):
                    failed = sum(found[Task(settings[dataset, agents, every], seed, way)].fallbacks for seed in seeds)
                    rows.append(
                        {"dataset": dataset, "agents": agents, "way": name, "every": every, "error": error,
                         "naive": naive, "fallbacks": failed}
                    )  # fmt: skip
        arrays[f"{dataset}.persistence"] = np.full(len(values), naive)
        lines.append(Line("persistence", f"{dataset}.persistence", "every"))
        panels.append(Panel(dataset, "steps between games", "mean squared error", lines, log_y=True))
    columns = [
        Column("dataset", "dataset"), Column("agents", "agents", "int"), Column("way", "way"),
        Column("every", "steps between games", "int"), Column("error", "mean", "error"),
        Column("naive", "persistence", "error"), Column("fallbacks", "games not solved", "int"),
    ]  # fmt: skip
    tuned = tuned_table(options)
    return Study(
        "frequency", "Effect of playing the game more rarely", "", seeds=seeds,
        notes=["Settings are those of a game at every step, as in the paper; the second table has tuned ones."],
        tables=[Table("Error over the steps between games", columns, rows), tuned],
        figures=[Figure("frequency", "Error over the steps between games",
                        "Mean errors of random-feature agents as the game is played every so many steps. The paper's "
                        "Figure 10.", panels, 2)],
        arrays=arrays,
    )  # fmt: skip


def tuned_table(options: Options) -> Table:
    """The grid of the exchange-rate row with a game at every tenth step: its best setting and the paper's."""
    printed = expected()["frequency"]["tuned"]
    of = row("rfn", printed["dataset"], printed["agents"], True)
    grid = list(replace(of, grid={**of.grid, "every": [printed["every"]]}).settings())
    ways = {"ours": OURS} | ({"as published": PUBLISHED} if options.as_published else {})
    seeds = list(options.seeds)
    tasks = [Task(each, seed, way) for each in grid for seed in seeds for way in ways.values()]
    found = outcomes(tasks, options, "frequency, tuned")
    rows = []
    for name, way in ways.items():
        best = min(grid, key=lambda each: mean(found, each, seeds, way))
        seconds = float(np.mean([found[Task(best, seed, way)].seconds for seed in seeds]))
        rows.append(
            {"way": name, "settings": described(best), "error": mean(found, best, seeds, way), "seconds": seconds}
        )
    rows.append({"way": "printed", "settings": "–", "error": printed["game"], "seconds": printed["seconds"]})
    naive = baseline_errors(grid[0])[1]["persistence"]
    rows.append({"way": "persistence", "settings": "–", "error": naive, "seconds": None})
    columns = [
        Column("way", "way"), Column("error", "mean", "error"), Column("seconds", "a run", "seconds"),
        Column("settings", "settings, tuned after the fact"),
    ]  # fmt: skip
    title = f"Random features, {printed['agents']} agents, {printed['dataset']}, a game every {printed['every']} steps"
    return Table(title, columns, rows)


def weights(options: Options) -> Study:
    """The mixture weights on the concept shift and on the periodic signal, with and without the game."""
    arrays, figures, rows = {}, [], []
    if not {"transformer", "esn"} & set(options.models):
        raise InvalidInput("models", ",".join(options.models), "The paper shows weights of transformer and esn.")
    for dataset in ("concept", "periodic"):
        panels = []
        for model in [m for m in ("transformer", "esn") if m in options.models and has_encoders(m, dataset, 5)]:
            for game in (False, True):
                setting = bold(model, dataset, 5, game)
                options.tell("weights", len(rows), 8)
                w = run(setting, seeds_of(model, options)[0]).weights
                stem = f"{dataset}.{model}.{'game' if game else 'none'}"
                lines = []
                for i in range(w.shape[1]):
                    arrays[f"{stem}.{i}"] = w[:, i]
                    lines.append(Line(f"agent {i + 1}", f"{stem}.{i}"))
                panels.append(Panel(f"{LABELS[model]}, {'game' if game else 'no game'}", "step", "weight", lines))
                rows.append(_weights_row(dataset, model, game, w, setting))
        if panels:
            number = {"concept": 7, "periodic": 8}[dataset]
            caption = (
                f"Mixture weights of five agents; they sum to one and may be negative. The paper's Figure {number}."
            )
            figures.append(Figure(f"weights-{dataset}", f"Mixture weights, {dataset}", caption, panels, 2))
    columns = [
        Column("dataset", "dataset"), Column("model", "model"), Column("game", "game"),
        Column("moves", "mean change a step", "error"), Column("late", "the same, last half", "error"),
        Column("largest", "largest |w|", "ratio"), Column("settings", "settings"),
    ]  # fmt: skip
    return Study(
        "weights", "Mixture weights with and without the game", "", seeds=list(options.seeds)[:1],
        notes=["The paper says weights are steadier with the game; the table measures it on the runs of one seed."],
        tables=[Table("How much the weights move", columns, rows)], figures=figures, arrays=arrays,
    )  # fmt: skip


def _weights_row(dataset: str, model: str, game: bool, w: np.ndarray, setting: Setting) -> dict:
    moves = np.abs(np.diff(w, axis=0)).mean(axis=1)
    return {
        "dataset": dataset, "model": LABELS[model], "game": "yes" if game else "no", "moves": float(moves.mean()),
        "late": float(moves[len(moves) // 2 :].mean()), "largest": float(np.abs(w).max()),
        "settings": described(setting),
    }  # fmt: skip
