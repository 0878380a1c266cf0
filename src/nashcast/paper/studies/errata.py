"""The effect of each erratum on the tables: the published code's deviations corrected one by one, on the same draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nashcast.datasets import open_stream
from nashcast.paper.parallel_runs import Options, Task, mean, outcomes
from nashcast.paper.published.departures import Departures
from nashcast.paper.published.draws import draw, random_features
from nashcast.paper.runs import OURS, PUBLISHED, Way, encoders_of, federate, run, stream_of
from nashcast.paper.settings import LABELS, expected
from nashcast.paper.studies.table import bold, has_encoders, seeds_of
from nashcast.records.study import Column, Study, Table

NO_RESHAPE = Way("published", Departures(reshaped=False))
ASSEMBLED = Way("published", Departures(scrambled=False, reshaped=False))
THEOREM = Way("published", Departures(printed=False, scrambled=False, reshaped=False))
CARRIED = Way("published", Departures(detached=False))


def errata(options: Options) -> Study:
    return Study(
        "errata", "What each erratum does to the tables", "", seeds=list(options.seeds),
        notes=["Numbers of errata as on the page docs/explanation/errata.md; draws are the published ones throughout."],
        tables=[_game_table(options), _mixture_table(options), _carry_table(options), _window_table(options),
                *_transformer_tables(options), _scale_table(options)],
    )  # fmt: skip


def _game_table(options: Options) -> Table:
    """Errata 5, 4, 1 and 12, one after the other, in the rows with a game."""
    rows = []
    ways = {"published": PUBLISHED, "mixture": NO_RESHAPE, "assembled": ASSEMBLED, "theorem": THEOREM, "ours": OURS}
    lines = [line for line in expected()["table1"] if line["model"] in options.models]
    lines = [line for line in lines if has_encoders(line["model"], line["dataset"], line["agents"])]
    settings = [bold(line["model"], line["dataset"], line["agents"], True) for line in lines]
    tasks = [
        Task(each, seed, way) for each in settings for seed in seeds_of(each.model, options) for way in ways.values()
    ]  # fmt: skip
    found = outcomes(tasks, options, "errata of the game")
    for line, each in zip(lines, settings, strict=True):
        errors = {name: mean(found, each, seeds_of(each.model, options), way) for name, way in ways.items()}
        rows.append({"model": LABELS[each.model], "agents": each.agents, "dataset": each.dataset,
                     "printed": line["game"], **errors, "ratio": errors["published"] / errors["ours"]})  # fmt: skip
    columns = [
        Column("model", "model"), Column("agents", "agents", "int"), Column("dataset", "dataset"),
        Column("printed", "printed", "error"), Column("published", "as published", "error"),
        Column("mixture", "5: mixture transposed", "error"), Column("assembled", "4: blocks in place", "error"),
        Column("theorem", "1: recursion discounted", "error"), Column("ours", "12: one sample set = ours", "error"),
        Column("ratio", "published ÷ ours", "ratio"),
    ]  # fmt: skip
    return Table("Rows with a game, each correction on top of those before it", columns, rows)


def _mixture_table(options: Options) -> Table:
    """Errata 5 and 6, in rows without game and more than one target."""
    rows = []
    for model in ("transformer", "esn"):
        for agents in (2, 5):
            if model not in options.models or not has_encoders(model, "concept", agents):
                continue
            setting, seeds = bold(model, "concept", agents, False), seeds_of(model, options)
            tasks = [Task(setting, seed, way) for seed in seeds for way in (PUBLISHED, OURS)]
            found = outcomes(tasks, options, "errata of the mixture")
            published, ours = (mean(found, setting, seeds, way) for way in (PUBLISHED, OURS))
            y_dim = stream_of(setting).targets.shape[1]
            rows.append({"model": LABELS[model], "agents": agents, "published": published, "ours": ours,
                         "norm": ours * y_dim})  # fmt: skip
    columns = [
        Column("model", "model"), Column("agents", "agents", "int"),
        Column("published", "as published", "error"), Column("ours", "5: mixture transposed", "error"),
        Column("norm", "6: the paper's definition of MSE", "error"),
    ]  # fmt: skip
    return Table("Concept shift with two targets, no game", columns, rows)


def _carry_table(options: Options) -> Table:
    """Erratum 8, where the game is not played at every step."""
    rows, seeds = [], list(options.seeds)
    for dataset in ("boc", "ett"):
        for every in (2, 5, 10):
            setting = replace(bold("rfn", dataset, 5, True), every=every)
            tasks = [Task(setting, seed, way) for seed in seeds for way in (PUBLISHED, CARRIED, OURS)]
            found = outcomes(tasks, options, "errata of the state")
            published, carried, ours = (mean(found, setting, seeds, way) for way in (PUBLISHED, CARRIED, OURS))
            rows.append({"dataset": dataset, "every": every, "published": published, "carried": carried, "ours": ours})
    columns = [
        Column("dataset", "dataset"), Column("every", "steps between games", "int"),
        Column("published", "as published", "error"), Column("carried", "8: forecast carried on", "error"),
        Column("ours", "ours", "error"),
    ]  # fmt: skip
    return Table("Random features, five agents, rarer games", columns, rows)


def _window_table(options: Options) -> Table:
    """Erratum 9: the agents' own window does nothing once the game is played at every step."""
    rows = []
    for dataset in ("periodic", "boc"):
        setting = bold("rfn", dataset, 5, True)
        runs = [run(replace(setting, window=window), options.seeds[0], PUBLISHED).forecasts for window in (2, 5)]
        rows.append({"dataset": dataset, "difference": float(np.abs(runs[0] - runs[1]).max())})
    columns = [Column("dataset", "dataset"), Column("difference", "largest difference", "error")]
    return Table("9: forecasts with a game at every step, Client T of 2 and of 5", columns, rows)


def _transformer_tables(options: Options) -> list[Table]:
    """Erratum 10: a layer norm over two numbers leaves almost only two values."""
    rows = []
    for dataset in ("periodic", "logistic", "boc", "ett"):
        if "transformer" not in options.models or not has_encoders("transformer", dataset, 5):
            continue
        encoders = encoders_of(bold("transformer", dataset, 5, True), 0)
        # Two values: every feature lies near one of its extremes.
        near = []
        for each in encoders:
            Z = each.series[:, 0]
            low, high = Z.min(axis=0), Z.max(axis=0)
            span = np.maximum(high - low, 1e-12)
            near.append(np.mean(np.minimum(Z - low, high - Z) <= 0.02 * span))
        rows.append({"dataset": dataset, "share": float(np.mean(near))})
    if not rows:
        return []
    columns = [Column("dataset", "dataset"), Column("share", "share within 2 % of an extreme", "ratio")]
    return [Table("10: features of the transformers, two to an agent, one target", columns, rows)]


def _scale_table(options: Options) -> Table:
    """Erratum 11: ETT divided by its future maximum, or by the maximum known at the time."""
    rows = []
    for agents in (2, 5):
        setting = bold("rfn", "ett", agents, True)
        slice_error = float(np.mean([run(setting, seed).mse for seed in options.seeds]))
        naive = stream_of(setting).persistence_mse
        causal = open_stream("ett", scale="causal")
        errors = []
        for seed in options.seeds:
            draws = draw("rfn", seed, agents, causal.inputs.shape[1], 1, setting.features, len(causal.inputs))
            encoders = random_features(draws, causal.inputs, float(setting.noise))
            errors.append(federate(causal, encoders, setting, seed).mse)
        rows.append({"agents": agents, "slice": slice_error / naive,
                     "causal": float(np.mean(errors)) / causal.persistence_mse})  # fmt: skip
    columns = [
        Column("agents", "agents", "int"), Column("slice", "divided by the slice's maxima", "ratio"),
        Column("causal", "divided by what was known", "ratio"),
    ]  # fmt: skip
    return Table("11: random features with game on ETT, error ÷ persistence", columns, rows)
