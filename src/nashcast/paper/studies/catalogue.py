"""Every study of the paper by name."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nashcast.paper.parallel_runs import Options
from nashcast.paper.runs import stream_of
from nashcast.paper.settings import DATASETS, Setting
from nashcast.paper.studies.ablations import frequency, lookback, weights
from nashcast.paper.studies.digits import digits_table
from nashcast.paper.studies.encoders import normalisation, relu_growth
from nashcast.paper.studies.errata import errata
from nashcast.paper.studies.grids import hyperparameters
from nashcast.paper.studies.published import (
    echo_table,
    searched_table,
    tanh_line,
    training_notes,
    transformer_table,
)
from nashcast.paper.studies.runtime import runtime
from nashcast.paper.studies.table import overlay_figures, settings_of, summary, table_rows, wide_table
from nashcast.paper.studies.validation import validation
from nashcast.records.study import Figure, Line, Panel, Study


class Found(NamedTuple):
    """A study, and its rows in machine-readable form."""

    study: Study
    rows: list[dict]


def _table1(options: Options) -> tuple[Study, list[dict]]:
    rows = table_rows("table1", options)
    tables, notes = [wide_table("Table 1", rows, options.as_published)], summary(rows)
    if options.as_published:
        searched = searched_table(rows, options)
        tables += [table for table in (searched, echo_table(rows), digits_table(rows, searched)) if table.rows]
        if "esn" in options.models:
            notes.append(tanh_line(options))
    if "transformer" in options.models:
        causal = transformer_table(options)
        tables += [] if causal is None else [causal]
        notes += training_notes()
    arrays: dict[str, np.ndarray] = {}
    figures = overlay_figures(options, arrays)
    title = "Table 1: errors with and without the game"
    return Study(
        "table1", title, "", seeds=list(options.seeds), settings=settings_of(rows), notes=notes, tables=tables,
        figures=figures, arrays=arrays,
    ), rows  # fmt: skip


def _datasets(options: Options) -> Study:
    """The five series."""
    arrays, panels = {}, []
    for number, dataset in enumerate(DATASETS, start=11):
        stream = stream_of(Setting("esn", dataset, 2, 0.0, 1.0, 1))
        axis, unit, targets, inputs = SERIES[dataset]
        lines, along = [], None
        if dataset == "concept":  # over x_1, as in the paper
            arrays["concept.x"], along = stream.inputs[:, 0], "concept.x"
        for k, name in enumerate(targets):
            arrays[f"{dataset}.{name}"] = stream.targets[:, k]
            lines.append(Line(name, f"{dataset}.{name}", along))
        for k, name in enumerate(inputs):
            arrays[f"{dataset}.{name}"] = stream.inputs[:, k]
            lines.append(Line(name, f"{dataset}.{name}", along))
        panels.append(Panel(f"{dataset} (the paper's Figure {number})", axis, unit, lines))
    caption = "What is to be forecast, named first, and the inputs of the same step, as the paper's code scales them."
    figure = Figure("datasets", "The five series", caption, panels, 1)
    return Study("datasets", "The paper's five series", "", figures=[figure], arrays=arrays)


# Axis, unit, names of the targets, and names of the first inputs.
SERIES = {
    "periodic": ("step", "value", ("y",), ()),
    "logistic": ("step", "value", ("y",), ()),
    "concept": ("x_1", "value", ("y_1", "y_2"), ()),
    "boc": ("day", "rate in CAD", ("USD",), ("AUD", "EUR", "GBP", "JPY")),
    "ett": ("hour", "share of the largest", ("OT",), ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL")),
}


STUDIES: dict[str, Callable[[Options], Study | tuple[Study, list[dict]]]] = {
    "datasets": _datasets,
    "table1": _table1,
    "validation": validation,
    "lookback": lookback,
    "frequency": frequency,
    "weights": weights,
    "runtime": runtime,
    "relu-growth": relu_growth,
    "normalisation": normalisation,
    "errata": errata,
    "hyperparameters": hyperparameters,
}


def carry_out(name: str, options: Options, command: str) -> Found:
    """Run a study, or finish one that was interrupted."""
    begun = time.perf_counter()
    result = STUDIES[name](options)
    study, rows = result if isinstance(result, tuple) else (result, [])
    seconds = time.perf_counter() - begun
    rows = rows or [dict(row) for table in study.tables for row in table.rows]
    return Found(replace(study, command=command, seconds=seconds), rows)
